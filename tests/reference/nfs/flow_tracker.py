"""FlowTracker: TCP connections by the flags of their segments (RFC 9293, section 3.3.2), UDP flows by replies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.reference.nfs.headers import ACK, FIN, ICMP, RST, SYN, UDP, End, flow_of, read_headers
from tests.reference.nfs.model import Bounds, FirstRun, FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent, connection_frames

SEGMENTS = {
    SYN: "syn",
    SYN | ACK: "syn-ack",
    ACK: "ack",
    FIN | ACK: "fin",
    RST: "rst",
    RST | ACK: "rst",
}
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


@dataclass(slots=True)
class Tracked:
    """A connection."""

    state: str
    opener: End
    last_us: int = 0
    closed: list[End] = field(default_factory=list)
    """Ends that have sent FIN, in that order."""

    def close(self, end: End) -> None:
        """Note a FIN."""
        if end not in self.closed:
            self.closed.append(end)
        self.state = "last_ack" if len(self.closed) == 2 else "fin_wait"

    def fits(self, end: End, segment: str) -> bool:
        """Whether a segment from an end fits the state, which it changes."""
        if segment == "rst":
            self.state = "closed"
            return True
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
        return connection_frames(seed, n, Mix(flows=4000))

    def connection(self, key: tuple[int, End, End]) -> Tracked | None:
        """The connection of a key, unless it was silent for too long."""
        found = self.tracked.get(key)
        if found is not None and self.now_us - found.last_us >= self.timeouts[found.state]:
            self.counted["aged"] += 1
            del self.tracked[key]
            return None
        return found

    def track(self, protocol: int, end: End, other: End, flags: int) -> str:
        """The counter of a packet from one end to the other."""
        key = (protocol, min(end, other), max(end, other))
        found = self.connection(key)
        segment = "udp" if protocol == UDP else SEGMENTS.get(flags & (SYN | ACK | FIN | RST))
        if found is None:
            if segment not in ("syn", "udp"):
                return "invalid"
            found = self.tracked[key] = Tracked("syn_sent" if segment == "syn" else "udp_new", end)
            self.counted["started"] += 1
        elif segment == "udp":
            found.state = "udp_replied" if end != found.opener else found.state
        else:
            before = found.state
            if segment is None or not found.fits(end, segment):
                return "invalid"
            again = before != "syn_sent" and found.state == "syn_sent"
            self.counted["started"] += again
            self.counted["restarted"] += again
        found.last_us = self.now_us
        return "tracked"

    def take(self, sent: Sent) -> Left:
        frame, headers = sent.frame, read_headers(sent.frame)
        self.now_us = sent.time_us
        if headers.kind == "malformed":
            return self.drop("malformed")
        if headers.l4 == 0 or headers.protocol == ICMP:
            self.counted["untracked" if headers.kind == "ipv4" else "other"] += 1
            return [frame], []
        source, destination, protocol, source_port, destination_port = flow_of(frame, headers)
        flags = frame[headers.l4 + 13] if protocol != UDP else 0
        counter = self.track(protocol, (source, source_port), (destination, destination_port), flags)
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
