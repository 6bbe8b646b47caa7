"""FlowClassifier: marks packets with the codepoint of their service class (RFC 4594, RFC 2474)."""

from __future__ import annotations

from tests.nfs.references.flows import Flows
from tests.nfs.references.headers import ICMP, TCP, UDP, flow, read, updated
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.traffic import Mix, Sent

CODEPOINTS = {"standard": 0, "telephony": 46, "signaling": 40, "low_latency": 18, "bulk": 10, "management": 16}
"""CS0, EF, CS5, AF21, AF11 and CS2 (RFC 4594, figure 3)."""

SIP, DNS, SNMP, HTTPS = {5060, 5061}, {53}, {161, 162}, {443}
BY_PORT: dict[int, dict[int, str]] = {TCP: {}, UDP: {}}
"""Class by protocol and port of either end; which one counts where both have one is the function's order."""
for _protocol in (TCP, UDP):
    BY_PORT[_protocol] |= dict.fromkeys(SIP, "signaling") | dict.fromkeys(DNS | SNMP, "management")
    BY_PORT[_protocol] |= dict.fromkeys(HTTPS, "low_latency")
BY_PORT[UDP] |= {123: "management"} | dict.fromkeys(range(16384, 32768), "telephony")
BY_PORT[TCP] |= dict.fromkeys((22, 23), "management") | dict.fromkeys((80, 8080), "low_latency")
BY_PORT[TCP] |= dict.fromkeys((20, 21, 25, 110, 143, 873, 993, 994, 995), "bulk")
FIRST = ("signaling", "management", "low_latency", "bulk", "telephony", "standard")


class FlowClassifierReference(Reference):
    """ICMP belongs to management; other protocols, and later fragments, to the standard class. ECN bits stay."""

    nf = "FlowClassifier"
    variants = ({"timeout_s": "2"}, {"mark": "0"})

    def prepare(self) -> None:
        self.flows = Flows(self.seconds("timeout_s", 60))
        self.counted.update(dict.fromkeys(CODEPOINTS, 0))

    def mix(self) -> Mix:
        return Mix(flows=30000)

    def service(self, key: tuple[int, int, int, int, int]) -> str:
        """The class of a flow."""
        _, _, protocol, source, destination = key
        if protocol == ICMP:
            return "management"
        known = BY_PORT.get(protocol, {})
        return min((known.get(source, "standard"), known.get(destination, "standard")), key=FIRST.index)

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        frame, headers = sent.frame, read(sent.frame)
        if headers.kind == "malformed":
            self.counted["malformed"] += 1
            return [], []
        if headers.kind != "ipv4":
            self.counted["other"] += 1
            return [frame], []
        key, l3 = flow(frame, headers), headers.l3
        self.flows.count(key, len(frame), sent.time_us)
        service = self.service(key)
        self.counted[service] += 1
        if not self.number("mark", 1):
            return [frame], []
        word = bytes([frame[l3], CODEPOINTS[service] << 2 | frame[l3 + 1] & 3])
        checksum = updated(int.from_bytes(frame[l3 + 10 : l3 + 12], "big"), frame[l3 : l3 + 2], word)
        return [frame[:l3] + word + frame[l3 + 2 : l3 + 10] + checksum.to_bytes(2, "big") + frame[l3 + 12 :]], []

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, **self.flows.counters()}
