"""FlowStats and FlowClassifier, and the table of flows with aging that functions which count flows have."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.reference.nfs.headers import ICMP, TCP, UDP, Flow, flow_of, read_headers, with_tos
from tests.reference.nfs.model import Bounds, FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent

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


@dataclass(slots=True)
class SeenFlow:
    """A flow, and what a function has noted of it."""

    last_us: int
    mark: int = 0


@dataclass(slots=True)
class FlowTable:
    """A table in which a flow that was silent for a timeout starts again with its next packet.

    When a silent flow is removed is free: within another timeout, if bursts are frequent enough to look at all entries.
    So `aged` has bounds.
    """

    timeout_us: int
    capacity: int
    """Packets of further flows are counted as untracked; which ones these are is exact while none is removed."""
    seen: dict[Flow, SeenFlow] = field(default_factory=dict)
    counted: Counter[str] = field(default_factory=Counter)
    now_us: int = 0

    @classmethod
    def of(cls, model: FunctionModel) -> FlowTable:
        """The table that settings describe."""
        return cls(model.seconds("timeout_s", 60), model.number("flows", 1 << 19))

    def count(self, key: Flow, length: int, now_us: int) -> SeenFlow:
        """Count a packet of a flow; returns the flow."""
        self.now_us = now_us
        flow = self.seen.get(key)
        if flow is None and len(self.seen) >= self.capacity:
            self.counted["untracked"] += 1
            return SeenFlow(now_us)
        if flow is None or now_us - flow.last_us >= self.timeout_us:
            self.counted["restarted"] += flow is not None
            self.counted["started"] += 1
            flow = self.seen[key] = SeenFlow(now_us)
        flow.last_us = now_us
        self.counted["packets"] += 1
        self.counted["bytes"] += length
        return flow

    def counters(self) -> dict[str, int | Bounds]:
        """The counters of a function with such a table, in which all flows fit."""
        silent = [self.now_us - flow.last_us for flow in self.seen.values()]
        again = self.counted["restarted"]
        least = again + sum(pause > 2 * self.timeout_us for pause in silent)
        most = again + sum(pause >= self.timeout_us for pause in silent)
        exact = {name: self.counted[name] for name in ("packets", "bytes", "started", "untracked")}
        return {**exact, "aged": (least, most)}


class FlowStatsModel(FunctionModel):
    """All packets pass but malformed ones; a flow is one direction of addresses, protocol and ports."""

    nf = "FlowStats"
    variants = ({"timeout_s": "2"}, {"timeout_s": "0.05", "flows": "32768"}, {"flows": "900"})

    def prepare(self) -> None:
        self.flows = FlowTable.of(self)

    def mix(self) -> Mix:
        return Mix(flows=30000)

    def take(self, sent: Sent) -> Left:
        headers = read_headers(sent.frame)
        if headers.kind != "ipv4":
            return [sent.frame] * self.passes(headers.kind), []
        self.flows.count(flow_of(sent.frame, headers), len(sent.frame), sent.time_us)
        return [sent.frame], []

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, **self.flows.counters()}


class FlowClassifierModel(FunctionModel):
    """Marks packets with the codepoint of their service class (RFC 4594, RFC 2474).

    ICMP belongs to management; other protocols, and later fragments, to the standard class. ECN bits stay.
    """

    nf = "FlowClassifier"
    variants = ({"timeout_s": "2"}, {"mark": "0"})

    def prepare(self) -> None:
        self.flows = FlowTable.of(self)
        self.counted.update(dict.fromkeys(CODEPOINTS, 0))

    def mix(self) -> Mix:
        return Mix(flows=30000)

    def service(self, flow: Flow) -> str:
        """The class of a flow."""
        _, _, protocol, source, destination = flow
        if protocol == ICMP:
            return "management"
        known = BY_PORT.get(protocol, {})
        return min((known.get(source, "standard"), known.get(destination, "standard")), key=FIRST.index)

    def take(self, sent: Sent) -> Left:
        frame, headers = sent.frame, read_headers(sent.frame)
        if headers.kind != "ipv4":
            return [frame] * self.passes(headers.kind), []
        flow, l3 = flow_of(frame, headers), headers.l3
        self.flows.count(flow, len(frame), sent.time_us)
        service = self.service(flow)
        self.counted[service] += 1
        marked = CODEPOINTS[service] << 2 | frame[l3 + 1] & 3
        return [with_tos(frame, l3, marked) if self.number("mark", 1) else frame], []

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, **self.flows.counters()}
