"""FlowStats and FlowClassifier, and the table of flows with aging that functions which count flows have."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.reference.nfs.headers import ACK, FIN, ICMP, RST, SYN, TCP, UDP, End, Flow, flow_of, with_tos
from tests.reference.nfs.ipv6 import ICMPV6, read_ip_headers
from tests.reference.nfs.model import Bounds, FirstRun, FunctionModel, Left
from tests.reference.nfs.traffic import NUMBERS, Mix, Sent, connection_frames

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
        """Only IPv4 where the table becomes full: of a burst IPv4 is counted first, so the last places are its own."""
        return Mix(flows=30000, ipv6=0.5 if self.flows.capacity > 1000 else 0.0)

    def take(self, sent: Sent) -> Left:
        headers = read_ip_headers(sent.frame)
        if headers.kind not in ("ipv4", "ipv6"):
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
        return Mix(flows=30000, ipv6=0.5)

    def service(self, flow: Flow, icmp: int) -> str:
        _, _, protocol, source, destination = flow
        if protocol == icmp:
            return "management"
        known = BY_PORT.get(protocol, {})
        return min((known.get(source, "standard"), known.get(destination, "standard")), key=FIRST.index)

    def take(self, sent: Sent) -> Left:
        frame, headers = sent.frame, read_ip_headers(sent.frame)
        if headers.kind not in ("ipv4", "ipv6"):
            return [frame] * self.passes(headers.kind), []
        flow, l3 = flow_of(frame, headers), headers.l3
        self.flows.count(flow, len(frame), sent.time_us)
        service = self.service(flow, ICMP if headers.kind == "ipv4" else ICMPV6)
        self.counted[service] += 1
        if not self.number("mark", 1):
            return [frame], []
        if headers.kind == "ipv6":
            word = int.from_bytes(frame[l3 : l3 + 2], "big") & 0xF03F | CODEPOINTS[service] << 6
            return [frame[:l3] + word.to_bytes(2, "big") + frame[l3 + 2 :]], []
        return [with_tos(frame, l3, CODEPOINTS[service] << 2 | frame[l3 + 1] & 3)], []

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, **self.flows.counters()}


SEGMENTS = {SYN: "syn", SYN | ACK: "syn-ack", ACK: "ack", FIN | ACK: "fin", RST: "rst", RST | ACK: "rst"}
"""What a segment is by its flags, of which PSH and URG do not count; others are invalid."""

TIMEOUTS = {
    "syn_sent": ("opening_s", 120),
    "syn_received": ("opening_s", 120),
    "established": ("established_s", 7440),
    "fin_wait": ("closing_s", 240),
    "last_ack": ("closing_s", 240),
    "time_wait": ("over_s", 60),
    "closed": ("over_s", 60),
    "udp_new": ("udp_new_s", 30),
    "udp_replied": ("udp_s", 180),
}
"""State, its setting and default."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The numbers of a segment."""

    flags: int
    first: int
    acknowledged: int
    length: int
    window: int = 0
    shift: int | None = None  # of windows, as a SYN says it

    @property
    def end(self) -> int:
        """Behind its bytes, SYN and FIN."""
        return self.first + self.length + bool(self.flags & SYN) + bool(self.flags & FIN)


def numbers_from(first: int, n: int) -> range:
    """The number of a byte, and those behind each of the next ones."""
    return range(first % NUMBERS, first % NUMBERS + n % NUMBERS + 1)


def read_shift(options: bytes) -> int | None:
    """The shift of windows among the options of a SYN (RFC 7323, section 2.3); None without one."""
    while options and options[0]:
        length = 1 if options[0] == 1 else options[1] if len(options) > 1 else 0
        if length == 0 or length > len(options) or (length == 1 and options[0] != 1):
            return None
        if options[0] == 3 and length == 3:
            return min(options[2], 14)
        options = options[length:]
    return None


def is_due(due: range, number: int) -> bool:
    """Whether a number is one of them, all modulo 2^32."""
    return (number - due[0]) % NUMBERS <= due[-1] - due[0]


@dataclass(slots=True)
class Tracked:
    """A connection."""

    state: str
    opener: End
    last_us: int = 0
    closed: list[End] = field(default_factory=list)  # ends that have sent FIN, in that order
    due: dict[End, range] = field(default_factory=dict)
    """By end: the number acknowledged last, and the others up to the one behind what was sent."""
    shifts: dict[End, int | None] = field(default_factory=dict)
    windows: dict[End, int] = field(default_factory=dict)
    """By end: the most bytes that it ever had room for."""
    refused: set[int] = field(default_factory=set)
    """What was acknowledged last to an opener that has sent no such number: its reset has that (RFC 9293, 3.5.1)."""

    def close(self, end: End) -> None:
        """Note a FIN."""
        if end not in self.closed:
            self.closed.append(end)
        self.state = "last_ack" if len(self.closed) == 2 else "fin_wait"

    def fits(self, end: End, segment: str) -> bool:
        """Whether a segment from an end fits the state, which it changes."""
        if self.state == "syn_sent":
            return self.answered(end, segment)
        if self.state in ("time_wait", "closed"):
            if segment == "syn":
                self.state, self.opener, self.closed = "syn_sent", end, []
            return segment != "syn-ack"
        if segment == "fin":
            self.close(end)
        elif segment == "ack" and self.state == "syn_received" and end == self.opener:
            self.state = "established"
        elif segment == "ack" and self.state == "last_ack" and end != self.closed[-1]:
            self.state = "time_wait"
        elif segment == "syn-ack" and self.state != "syn_received":
            return end != self.opener
        return True

    def note(self, end: End, other: End, segment: Segment) -> None:
        """Learn the numbers of a segment that fits; who does not see the connection cannot know what to acknowledge."""
        syn, known = bool(segment.flags & SYN), end in self.due
        if syn and self.state == "syn_sent":
            self.due, self.refused, known = {}, set(), False
        answers = bool(segment.flags & ACK) and other in self.due
        right = answers and is_due(self.due[other], segment.acknowledged)
        if answers and ((self.state == "syn_sent" and not syn) or (syn and not known and not right)):
            self.refused = {segment.acknowledged}
            return
        if syn and known and self.state != "syn_received":
            return
        if syn and not known:
            self.due[end] = numbers_from(segment.first + 1, segment.length)
            self.shifts[end], self.windows[end] = segment.shift, max(segment.window, 65535)
        if right:
            left = self.due[other][-1] - self.due[other][0]
            passed = (segment.acknowledged - self.due[other][0]) % NUMBERS
            self.due[other] = numbers_from(segment.acknowledged, left - passed)
        if len(self.due) < 2 or not answers:
            return
        if not right and (self.due[other][0] - segment.acknowledged) % NUMBERS >= 1 << 16:
            return
        sent = (segment.end - self.due[end][0]) % NUMBERS
        if sent <= self.windows[other]:
            self.due[end] = numbers_from(self.due[end][0], max(sent, self.due[end][-1] - self.due[end][0]))
            shifts = [self.shifts[of] for of in (end, other)]
            shift = shifts[0] if not syn and None not in shifts else 0
            self.windows[end] = max(self.windows[end], segment.window << (shift or 0))

    def reset(self, end: End, other: End, segment: Segment) -> str:
        """The counter of a reset, which closes with a number that the other end may await (RFC 5961, section 3.2)."""
        if end not in self.due:
            closes = bool(segment.flags & ACK) and is_due(self.due.get(other, range(1)), segment.acknowledged)
            near = False
        else:
            closes = is_due(self.due[end], segment.first)
            near = (segment.first - self.due[end][0]) % NUMBERS < 1 << 30 or segment.first in self.refused
        if closes:
            self.state = "closed"
        return "tracked" if closes else "challenged" if near else "invalid"

    def answered(self, end: End, segment: str) -> bool:
        """The opener may only send SYN again; the other end answers, opens, too, or still has an old connection."""
        if end == self.opener:
            return segment == "syn"
        if segment in ("syn-ack", "syn"):
            self.state = "syn_received"
        return segment in ("syn-ack", "syn", "ack")


class FlowTrackerModel(FunctionModel):
    """Segments that fit no connection are freed. ICMP, other protocols and later fragments pass untracked."""

    nf = "FlowTracker"
    variants = (
        {"opening_s": "3", "established_s": "9", "closing_s": "4", "over_s": "2", "udp_new_s": "1", "udp_s": "5"},
        {"pass_invalid": "1", "over_s": "0.5"},
        {},
    )

    def prepare(self) -> None:
        self.timeouts = {state: self.seconds(*setting) for state, setting in TIMEOUTS.items()}
        self.tracked: dict[tuple[int, End, End], Tracked] = {}
        self.now_us = 0

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        return connection_frames(seed, n, Mix(flows=4000, ipv6=0.5))

    def connection(self, key: tuple[int, End, End]) -> Tracked | None:
        """The connection of a key, unless it was silent for too long."""
        found = self.tracked.get(key)
        if found is not None and self.now_us - found.last_us >= self.timeouts[found.state]:
            self.counted["aged"] += 1
            del self.tracked[key]
            return None
        return found

    def track(self, protocol: int, end: End, other: End, numbers: Segment) -> str:
        """The counter of a packet from one end to the other."""
        key = (protocol, min(end, other), max(end, other))
        found = self.connection(key)
        segment = "udp" if protocol == UDP else SEGMENTS.get(numbers.flags & (SYN | ACK | FIN | RST))
        if found is None:
            if segment not in ("syn", "udp"):
                return "invalid"
            found = self.tracked[key] = Tracked("syn_sent" if segment == "syn" else "udp_new", end)
            self.counted["started"] += 1
            found.note(end, other, numbers)
        elif segment == "rst":
            counter = found.reset(end, other, numbers)
            if counter != "tracked":
                self.counted["challenged"] += counter == "challenged"
                return "tracked" if counter == "challenged" else counter
        elif segment == "udp":
            found.state = "udp_replied" if end != found.opener else found.state
        else:
            before = found.state
            if segment is None or not found.fits(end, segment):
                return "invalid"
            found.note(end, other, numbers)
            again = before != "syn_sent" and found.state == "syn_sent"
            self.counted["started"] += again
            self.counted["restarted"] += again
        found.last_us = self.now_us
        return "tracked"

    def take(self, sent: Sent) -> Left:
        frame, headers = sent.frame, read_ip_headers(sent.frame)
        self.now_us = sent.time_us
        if headers.kind not in ("ipv4", "ipv6"):
            return [frame] * self.passes(headers.kind), []
        if not headers.has_ports:
            self.counted["untracked"] += 1
            return [frame], []
        source, destination, protocol, source_port, destination_port = flow_of(frame, headers)
        numbers = Segment(0, 0, 0, 0)
        if protocol != UDP:
            first, acknowledged, flags, window = struct.unpack_from("!IIxBH", frame, headers.l4 + 4)
            shift = read_shift(frame[headers.l4 + 20 : headers.payload]) if flags & SYN else None
            numbers = Segment(flags, first, acknowledged, headers.end - headers.payload, window, shift)
        counter = self.track(protocol, (source, source_port), (destination, destination_port), numbers)
        self.counted[counter] += 1
        return [frame] if counter == "tracked" or self.number("pass_invalid", 0) else [], []

    def counters(self) -> dict[str, int | Bounds]:
        """Which of the silent connections are removed, and no longer in a state's count, is free."""
        states = dict.fromkeys(TIMEOUTS, 0)
        live = dict.fromkeys(TIMEOUTS, 0)
        for tracked in self.tracked.values():
            states[tracked.state] += 1
            live[tracked.state] += self.now_us - tracked.last_us < self.timeouts[tracked.state]
        bounds: dict[str, int | Bounds] = {state: (live[state], states[state]) for state in states}
        silent = sum(states.values()) - sum(live.values())
        return {**self.counted, **bounds, "aged": (self.counted["aged"], self.counted["aged"] + silent), "full": 0}
