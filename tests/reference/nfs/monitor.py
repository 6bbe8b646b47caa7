"""Monitor: packets and bytes by protocol, and bounds of the flows with the most bytes."""

import csv
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

from tests.reference.nfs.headers import ICMP, TCP, UDP, Flow, Headers, flow_of, read_headers
from tests.reference.nfs.ipv6 import ICMPV6, read_ip_headers
from tests.reference.nfs.model import Bounds, FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent

NAMES = {TCP: "tcp", UDP: "udp", ICMP: "icmp", ICMPV6: "icmp"}


class MonitorModel(FunctionModel):
    """Counters are exact. Which flows have one of the k counters is free, within what Space-Saving promises.

    Of N bytes (Metwally, Agrawal and El Abbadi, ICDT 2005): a flow with more than N/k is reported, no error is above
    N/k, and the bytes of a reported flow are within its bounds.
    """

    nf = "Monitor"
    variants = (
        {"talkers": "500", "report": "{folder}/report.csv", "reported": "500"},
        {"talkers": "500", "report": "{folder}/report.csv", "reported": "500", "ipv6": "pass"},
        {"talkers": "65536", "report": "{folder}/report.csv", "reported": "65536"},
    )

    def prepare(self) -> None:
        self.bytes: Counter[Flow] = Counter()
        self.packets: Counter[Flow] = Counter()

    def mix(self) -> Mix:
        return Mix(flows=8000, ipv6=0.5)

    def take(self, sent: Sent) -> Left:
        headers, length = read_headers(sent.frame), len(sent.frame)
        if self.settings.get("ipv6", "read") == "read":
            headers = read_ip_headers(sent.frame)
        elif headers.kind == "ipv6":
            headers = Headers("other")
        if headers.kind not in ("ipv4", "ipv6"):
            passes = self.passes(headers.kind)
            self.counted["other_bytes"] += length * passes
            return [sent.frame] * passes, []
        name, key = NAMES.get(headers.protocol, "rest"), flow_of(sent.frame, headers)
        self.counted[f"{name}_packets"] += 1
        self.counted[f"{name}_bytes"] += length
        self.bytes[key] += length
        self.packets[key] += 1
        return [sent.frame], []

    def counters(self) -> dict[str, int | Bounds]:
        counters: dict[str, int | Bounds] = dict(self.counted)
        if len(self.bytes) <= self.number("talkers", 1024):
            counters["replaced"] = 0
        return counters

    def finish(self) -> list[str]:
        """What is wrong with the report."""
        with Path(self.settings["report"]).open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        share = sum(self.bytes.values()) / self.number("talkers", 1024)
        wrong, reported, before = [], set[Flow](), None
        for line in lines:
            ends = number_of(line["source"]), number_of(line["destination"])
            key = (*ends, int(line["protocol"]), int(line["source_port"]), int(line["destination_port"]))
            least, most = int(line["bytes_at_least"]), int(line["bytes_at_most"])
            if key in reported or not least <= self.bytes[key] <= most or most - least > share:
                wrong.append(f"report: {line}, but the flow has {self.bytes[key]} bytes")
            if int(line["packets_at_least"]) > self.packets[key] or (before is not None and most > before):
                wrong.append(f"report: {line}, but the flow has {self.packets[key]} packets, or is not in order")
            reported.add(key)
            before = most
        missing = [key for key, size in self.bytes.items() if size > share and key not in reported]
        return wrong + [f"report: no {key} with {self.bytes[key]} bytes" for key in missing]


def number_of(text: str) -> int:
    """An address as flows have it."""
    address = ip_address(text)
    return int(address) | (1 << 128) * (address.version == 6)
