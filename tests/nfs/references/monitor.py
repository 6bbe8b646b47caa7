"""Monitor: packets and bytes by protocol, and bounds of the flows with the most bytes."""

from __future__ import annotations

import csv
from collections import Counter
from ipaddress import IPv4Address

from tests.nfs.references.headers import ICMP, TCP, UDP, flow, read
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.traffic import Mix, Sent

NAMES = {TCP: "tcp", UDP: "udp", ICMP: "icmp"}
Key = tuple[int, int, int, int, int]


class MonitorReference(Reference):
    """Counters are exact. Which flows have one of the k counters is free, within what Space-Saving promises.

    Of N bytes (Metwally, Agrawal and El Abbadi, ICDT 2005): a flow with more than N/k is reported, no error is above
    N/k, and the bytes of a reported flow are within its bounds.
    """

    nf = "Monitor"
    variants = (
        {"talkers": "500", "report": "{folder}/report.csv", "reported": "500"},
        {"talkers": "65536", "report": "{folder}/report.csv", "reported": "65536"},
    )

    def prepare(self) -> None:
        self.bytes: Counter[Key] = Counter()
        self.packets: Counter[Key] = Counter()

    def mix(self) -> Mix:
        return Mix(flows=8000)

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        headers, length = read(sent.frame), len(sent.frame)
        if headers.kind == "malformed":
            self.counted["malformed"] += 1
            return [], []
        if headers.kind == "ipv4":
            name = NAMES.get(headers.protocol, "rest")
            self.counted[f"{name}_packets"] += 1
            self.counted[f"{name}_bytes"] += length
            key = flow(sent.frame, headers)
            self.bytes[key] += length
            self.packets[key] += 1
        else:
            self.counted["other"] += 1
            self.counted["other_bytes"] += length
        return [sent.frame], []

    def counters(self) -> dict[str, int | Bounds]:
        counters: dict[str, int | Bounds] = dict(self.counted)
        if len(self.bytes) <= self.number("talkers", 1024):
            counters["replaced"] = 0
        return counters

    def finish(self) -> list[str]:
        """What is wrong with the report."""
        with (self.folder / "report.csv").open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        share = sum(self.bytes.values()) / self.number("talkers", 1024)
        wrong, reported, before = [], set[Key](), None
        for line in lines:
            ends = int(IPv4Address(line["source"])), int(IPv4Address(line["destination"]))
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
