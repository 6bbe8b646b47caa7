"""IPTunnel: IPv4 in IPv4 (RFC 2003), fragmented before it, with ECN of RFC 6040."""

import random
from collections.abc import Iterator
from ipaddress import IPv4Address

from tests.reference.nfs.fragments import CONGESTED, NOT_CAPABLE, Reassembly, cut_datagram, join_marks
from tests.reference.nfs.headers import (
    DONT_FRAGMENT,
    ETHERNET,
    ICMP,
    ICMP_ERRORS,
    INSIDE,
    OFFSET,
    Headers,
    Reporter,
    find_quoted,
    header_is_right,
    internet_checksum,
    ipv4_header,
    read_headers,
    read_ipv4,
    with_hop_taken,
    with_tos,
    word_at,
)
from tests.reference.nfs.model import Bounds, FirstRun, FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent, fragments, random_payload, wrong_byte

IP_IN_IP = 4
LOCAL, REMOTE = IPv4Address("192.0.2.1").packed, IPv4Address("192.0.2.2").packed
TTL_EXCEEDED, FRAGMENTATION_NEEDED = (11, 0), (3, 4)
RELAYED = {(3, 0): (3, 0), (3, 1): (3, 1), (3, 2): (3, 0), (3, 4): (3, 4), (11, 0): (3, 1), (11, 1): (3, 1)}
"""What a sender gets about an error of a router in the tunnel (RFC 2003, section 4); about others nothing."""
PLATEAUS = (8166, 4352, 2002, 1492, 1006, 508, 296, 68)  # RFC 1191, section 7.1
HELD_US = 600_000_000


class IpTunnelModel(FunctionModel):
    """Outer identifications count from 0: the function's free choice, which this reference takes over."""

    nf = "IPTunnel"
    variants = (
        {"mtu": "600", "pending_s": "1"},
        {"mtu": "1500", "pending_s": "0.01", "errors_per_s": "10", "errors_at_once": "5"},
        {"mtu": "1280", "unknown": "pass", "arp": "pass"},
    )
    unknown = arp = "drop"

    def prepare(self) -> None:
        self.mtu = self.most = self.number("mtu", 1500) - 20
        self.until_us = 0
        self.reporter = Reporter(LOCAL, self.settings)
        self.reassembly = Reassembly(self.seconds("pending_s", 30))
        self.encapsulated = 0

    def mix(self) -> Mix:
        return Mix(flows=20000, outside=0.4, payload=self.payload)

    @staticmethod
    def payload(rng: random.Random) -> bytes:
        """Often longer than the tunnel's MTU."""
        return random_payload(rng) if rng.random() < 0.8 else rng.randbytes(rng.randrange(400, 1440))

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        """Frames from outside come through the tunnel, some in fragments; some from inside are from its ends."""
        rng, done = random.Random(seed), 0
        for number, sent in enumerate(super().traffic(seed, n, run)):
            headers = read_headers(sent.frame)
            frames = [sent.frame]
            if sent.side == INSIDE and rng.random() < 0.005 and headers.l3 == ETHERNET and headers.has_ipv4:
                header = ipv4_header(rng.choice((LOCAL, REMOTE)), bytes([20, 0, 0, 1]), 47, 8)
                frames = [sent.frame[:14] + header + bytes(8)]
            elif sent.side != INSIDE and headers.has_ipv4 and headers.l3 == ETHERNET and rng.random() < 0.95:
                frames = self.through(rng, sent.frame, number)
                if rng.random() < 0.03 and len(sent.frame) > 42:
                    frames = [tunnel_error(rng, sent.frame)]
            for frame in frames[: n - done]:
                yield Sent(sent.time_us, sent.side, frame)
            done += len(frames[: n - done])

    @staticmethod
    def through(rng: random.Random, frame: bytes, number: int) -> list[bytes]:
        """A frame as the remote end sends it."""
        source = REMOTE if rng.random() < 0.98 else LOCAL
        fields = {"tos": rng.getrandbits(8) & rng.choice((3, 255)), "id": number & 0xFFFF}
        outer = frame[:14] + ipv4_header(source, LOCAL, IP_IN_IP, len(frame) - 14, **fields) + frame[14:]
        chance = rng.random()
        if chance < 0.15:
            made = fragments(rng, outer)
            return [with_mark(rng, part) for part in made] if rng.random() < 0.3 else made
        return wrong_byte(rng, outer) if chance < 0.2 else [outer]

    def take(self, sent: Sent) -> Left:
        frame, headers = sent.frame, read_headers(sent.frame)
        if sent.time_us >= self.until_us:
            self.mtu = self.most
        if not headers.has_ipv4:
            return [frame] * self.passes(headers.kind), []
        if not header_is_right(frame, headers.l3):
            return self.drop("bad_checksum")
        if sent.side == INSIDE:
            return self.from_inside(frame, headers, sent.time_us)
        errors = self.relayed(frame, headers, sent.time_us)
        return (self.from_outside(frame, headers, sent) if errors is None else errors), []

    def relayed(self, frame: bytes, headers: Headers, now_us: int) -> list[bytes] | None:
        """What senders get about an ICMP error on the way through the tunnel; None if it is not one."""
        l4, l3 = headers.l4, headers.l3
        if headers.protocol != ICMP or not l4 or headers.fragment or frame[l3 + 16 : l3 + 20] != LOCAL:
            return None
        quoted = find_quoted(frame, headers) if frame[l4] in ICMP_ERRORS else None
        if (
            quoted is None
            or frame[quoted[0] + 9] != IP_IN_IP
            or frame[quoted[0] + 12 : quoted[1]][:8] != LOCAL + REMOTE
        ):
            return None
        self.counted["tunnel_errors"] += 1
        kind = RELAYED.get((frame[l4], frame[l4 + 1]))
        if kind == FRAGMENTATION_NEEDED:
            length = word_at(frame, quoted[0] + 2)
            named = word_at(frame, l4 + 6) or next((size for size in PLATEAUS if size < length), 68)
            self.mtu, self.until_us = min(self.mtu, max(68, named - 20)), now_us + HELD_US
        inner = inner_quoted(frame, quoted[1], headers.end)
        counter, errors = "errors_suppressed", list[bytes]()
        if kind is not None and inner is not None:
            mtu = self.mtu if kind == FRAGMENTATION_NEEDED else 0
            counter, errors = self.reporter.report(frame, inner, kind, now_us, mtu)
            errors = [frame[:l3] + error[inner.l3 :] for error in errors]
        self.counted[counter] += 1
        return errors

    def from_inside(self, frame: bytes, headers: Headers, now_us: int) -> Left:
        """Encapsulate a packet, in fragments if it is too long, or report why not."""
        l3 = headers.l3
        if frame[l3 + 12 : l3 + 16] in (LOCAL, REMOTE):
            return self.drop("looping")
        too_long = headers.end - l3 > self.mtu
        if frame[l3 + 8] <= 1:
            return [], self.report(frame, headers, TTL_EXCEEDED, now_us)
        if too_long and frame[l3 + 6] & DONT_FRAGMENT >> 8:
            return [], self.report(frame, headers, FRAGMENTATION_NEEDED, now_us)
        parts = cut_datagram(with_hop_taken(frame, l3)[: headers.end], headers, self.mtu)
        if parts is None:
            return self.drop("malformed")
        if too_long:
            self.counted["fragmented"] += 1
            self.counted["fragments"] += len(parts)
        return [self.enclose(part, l3) for part in parts], []

    def report(self, frame: bytes, headers: Headers, kind: tuple[int, int], now_us: int) -> list[bytes]:
        """Count a packet that is freed, and the error about it."""
        too_big = kind == FRAGMENTATION_NEEDED
        self.counted["too_big" if too_big else "expired"] += 1
        counter, errors = self.reporter.report(frame, headers, kind, now_us, self.mtu if too_big else 0)
        self.counted[counter] += 1
        return errors

    def enclose(self, frame: bytes, l3: int) -> bytes:
        """A frame with an outer header, which has the inner one's type of service and DF (RFC 2003, section 3.1)."""
        flags = word_at(frame, l3 + 6) & DONT_FRAGMENT
        fields = {"tos": frame[l3 + 1], "id": self.encapsulated & 0xFFFF, "flags": flags}
        self.encapsulated += 1
        self.counted["encapsulated"] += 1
        return frame[:l3] + ipv4_header(LOCAL, REMOTE, IP_IN_IP, len(frame) - l3, **fields) + frame[l3:]

    def from_outside(self, frame: bytes, headers: Headers, sent: Sent) -> list[bytes]:
        """Decapsulate a packet of the tunnel, once it is whole."""
        l3 = headers.l3
        if headers.protocol != IP_IN_IP or frame[l3 + 12 : l3 + 20] != REMOTE + LOCAL:
            self.counted["foreign"] += 1
            return []
        if headers.fragment:
            self.counted["fragments_received"] += 1
            whole = self.reassembly.add(frame, headers, sent.side, sent.time_us)
            if whole is None:
                return []
            l3 = read_headers(whole.frame).l3
            joined = join_marks(whole, l3)
            if joined is None:
                self.counted["congested"] += 1
                return []
            frame, headers = joined, read_headers(joined)
        inner = frame[:l3] + frame[l3 + (frame[l3] & 15) * 4 : headers.end]
        counter, made = self.open_inner(inner, read_ipv4(inner, l3), frame[l3 + 1] & 3)
        self.counted[counter] += 1
        return [] if made is None else [made]

    @staticmethod
    def open_inner(inner: bytes, headers: Headers, outer: int) -> tuple[str, bytes | None]:
        """The counter of a decapsulated frame, and the frame with its ECN mark (RFC 6040, section 4.2)."""
        l3 = headers.l3
        if not headers.has_ipv4:
            return "malformed", None
        if not header_is_right(inner, l3):
            return "bad_checksum", None
        if inner[l3 + 8] == 0:
            return "expired", None
        mark = inner[l3 + 1] & 3
        if mark == NOT_CAPABLE and outer == CONGESTED:
            return "congested", None
        if mark in (1, 2) and outer in (1, CONGESTED) and outer != mark:
            inner = with_tos(inner, l3, inner[l3 + 1] & ~3 | outer)
        return "decapsulated", inner[: headers.end]

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, **self.reassembly.counters(), "no_room": 0}


def inner_quoted(frame: bytes, at: int, end: int) -> Headers | None:
    """The headers of the packet that a quoted one carries; None if too little of it is quoted."""
    length = (frame[at] & 15) * 4 if end - at >= 20 else 0
    if length < 20 or frame[at] >> 4 != 4 or end - at < length + 8 or not header_is_right(frame, at):
        return None
    later = word_at(frame, at + 6) & OFFSET != 0
    return Headers("ipv4", at, at + length, end, end, frame[at + 9], later, later)


def tunnel_error(rng: random.Random, frame: bytes) -> bytes:
    """An ICMP error of a router in the tunnel about a frame without tags, which quotes some of it."""
    inner = frame[14 : 14 + rng.choice((8, 20, 28, 60, 500))]
    ends = (LOCAL, REMOTE) if rng.random() < 0.9 else (REMOTE, LOCAL)
    outer = ipv4_header(*ends, IP_IN_IP if rng.random() < 0.9 else 47, len(frame) - 14)
    kind = rng.choice((*RELAYED, (3, 4), (3, 4), (3, 3), (4, 0), (5, 0), (12, 0)))
    message = bytes([*kind, 0, 0, 0, 0]) + rng.choice((0, 576, 1280, 1400)).to_bytes(2, "big") + outer + inner
    message = message[:2] + internet_checksum(message).to_bytes(2, "big") + message[4:]
    return frame[:14] + ipv4_header(bytes([192, 0, 2, 77]), LOCAL, ICMP, len(message)) + message


def with_mark(rng: random.Random, frame: bytes) -> bytes:
    """A frame with another ECN mark."""
    return with_tos(frame, ETHERNET, frame[15] & ~3 | rng.choice((1, 2, 2, 3)))
