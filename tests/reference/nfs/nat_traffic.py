"""Traffic of a NAT: replies, errors and hairpinned packets need the ends that it chose, so it runs twice."""

import random
import struct
from collections.abc import Iterator

from tests.reference.nfs.headers import (
    DESTINATION,
    ETHERNET,
    ICMP,
    INSIDE,
    INSIDE_MAC,
    IPV4,
    OUTSIDE,
    OUTSIDE_MAC,
    SCTP,
    SOURCE,
    TCP,
    UDP,
    End,
    addresses,
    end_of,
    error_about,
    ipv4_header,
    read_headers,
    with_address,
    with_end,
)
from tests.reference.nfs.model import FirstRun
from tests.reference.nfs.traffic import Mix, Sent, connection_frames

Key = tuple[int, End]  # protocol and inside end
TRANSLATED = (TCP, UDP, ICMP)


def is_translated(frame: bytes) -> bool:
    """Whether a frame has ends that a NAT translates."""
    headers = read_headers(frame)
    return headers.kind == "ipv4" and headers.l4 != 0 and headers.protocol in TRANSLATED


def is_portless(frame: bytes) -> bool:
    """Whether a NAT translates only a frame's addresses."""
    headers = read_headers(frame)
    return headers.kind == "ipv4" and headers.protocol in (47, 50, SCTP)


def ends(frame: bytes, end: int) -> Key:
    """Protocol and an end of a translated frame."""
    headers = read_headers(frame)
    return headers.protocol, end_of(frame, headers.l3, headers.l4, end)


class NatTraffic:
    """Makes the second run's frames from those of the first."""

    def __init__(self, seed: int, n: int, mix: Mix, run: FirstRun) -> None:
        self.rng, self.n = random.Random(seed), n
        self.sent = list(connection_frames(seed, n, mix))
        # what the NAT chose for the packets from inside, by the time of the burst
        by_time: dict[int, list[bytes]] = {}
        for time_us, frame in run(arrival for arrival in self.sent if arrival.side == INSIDE):
            by_time.setdefault(time_us, []).append(frame)
        found: dict[int, list[tuple[Key, End]]] = {}
        for arrival in self.sent:
            if arrival.side != INSIDE or not is_translated(arrival.frame):
                continue
            key, l3 = ends(arrival.frame, SOURCE), read_headers(arrival.frame).l3
            for frame in by_time.get(arrival.time_us, ()):
                if is_translated(frame) and frame[l3 + 4 : l3 + 6] == arrival.frame[l3 + 4 : l3 + 6]:
                    found.setdefault(arrival.time_us, []).append((key, ends(frame, SOURCE)[1]))
        self.chosen = found
        self.known: dict[Key, End] = {}
        self.sources: list[tuple[Key, End]] = []
        self.address_of: dict[int, int] = {}  # external addresses of inside hosts
        self.forwards: list[tuple[int, End, End]] = []

    def frames(self) -> Iterator[Sent]:
        """Replies to the ends that the NAT chose; errors and hairpinned packets between the bursts."""
        done, time_us = 0, 0
        for arrival in self.sent:
            if arrival.time_us != time_us and done < self.n and self.rng.random() < 0.15 and self.sources:
                extra = self.extra(arrival.time_us - 1)
                if extra is not None and time_us < arrival.time_us - 1:
                    yield extra
                    done += 1
            time_us = arrival.time_us
            if done == self.n:
                return
            yield Sent(
                arrival.time_us, arrival.side, self.reply(arrival.frame) if arrival.side == OUTSIDE else arrival.frame
            )
            done += 1
            for key, end in self.chosen.pop(arrival.time_us, ()) if arrival.side == INSIDE else ():
                self.known[key] = end
                self.address_of[key[1][0]] = end[0]
                self.sources.append((key, end))

    def reply(self, frame: bytes) -> bytes:
        """A frame to the external end of its receiver."""
        if is_portless(frame):
            headers = read_headers(frame)
            host = addresses(frame, headers)[1]
            return with_address(frame, headers.l3, DESTINATION, self.address_of.get(host, host))
        if not is_translated(frame):
            return frame
        headers, key = read_headers(frame), ends(frame, DESTINATION)
        if key not in self.known or headers.l3 != ETHERNET:
            return frame
        return with_end(frame, headers.l3, headers.l4, DESTINATION, self.known[key])

    def extra(self, time_us: int) -> Sent | None:
        """An error from either side, or a hairpinned packet."""
        rng = self.rng
        if self.forwards and rng.random() < 0.4:
            return self.forwarded(time_us)
        (protocol, inside), outside = rng.choice(self.sources[-300:])
        server = bytes([20, 1, rng.randrange(256), rng.randrange(1, 255)])
        router = server if rng.random() < 0.5 else bytes([30, 0, 0, 1])
        ports = struct.pack("!HH", outside[1], 443)
        if protocol == ICMP:
            ports = b"\x08\0\0\0" + struct.pack("!H", outside[1]) + bytes(2)
        segment = ports + (b"" if protocol == ICMP else struct.pack("!HH", 40, rng.choice((0, 0x1234)))) + bytes(32)
        chance = rng.random()
        address = struct.pack("!I", outside[0])
        if chance < 0.4:
            quote = ipv4_header(address, server, protocol, len(segment)) + segment
            return Sent(time_us, OUTSIDE, error_about(rng, quote, router, address, False))
        inner = struct.pack("!I", inside[0])
        if chance < 0.7:
            ports = struct.pack("!HH", 443, inside[1])
            if protocol == ICMP:
                ports = b"\0\0\0\0" + struct.pack("!H", inside[1]) + bytes(2)
            segment = ports + segment[len(ports) :]
            quote = ipv4_header(server, inner, protocol, len(segment)) + segment
            return Sent(time_us, INSIDE, error_about(rng, quote, inner, server, True))
        return self.hairpinned(time_us)

    def forwarded(self, time_us: int) -> Sent:
        """A packet to a forwarded end from outside, or from its inside end or another one of its host."""
        protocol, outside, (host, port) = self.rng.choice(self.forwards)
        inside = host, port + self.rng.choice((0, 0, 7))
        remote = int.from_bytes(bytes([20, 1, 0, self.rng.randrange(1, 9)]), "big"), 5000
        inward = self.rng.random() < 0.5
        source, destination = (remote, outside) if inward else (inside, remote)
        rest = struct.pack("!HH", 28, 0) + bytes(20) if protocol == UDP else bytes(8) + b"\x50\x02" + bytes(26)
        segment = struct.pack("!HH", source[1], destination[1]) + rest
        ends = struct.pack("!I", source[0]), struct.pack("!I", destination[0])
        header = ipv4_header(*ends, protocol, len(segment), id=self.rng.getrandbits(16))
        return Sent(time_us, OUTSIDE if inward else INSIDE, bytes(12) + IPV4.to_bytes(2, "big") + header + segment)

    def hairpinned(self, time_us: int) -> Sent | None:
        """A packet from a mapped end inside to the external end of another one."""
        (protocol, inside), _ = self.rng.choice(self.sources[-300:])
        (other, _), target = self.rng.choice(self.sources[-300:])
        if protocol != other or protocol not in (TCP, UDP):
            return None
        ports = struct.pack("!HH", inside[1], target[1])
        rest = struct.pack("!HH", 28, 0) + bytes(20)
        if protocol == TCP:
            rest = bytes(8) + bytes([5 << 4, self.rng.choice((2, 16, 18, 17, 4))]) + bytes(6)
        segment = ports + rest
        addresses = struct.pack("!I", inside[0]), struct.pack("!I", target[0])
        header = ipv4_header(*addresses, protocol, len(segment), id=self.rng.getrandbits(16))
        return Sent(time_us, INSIDE, OUTSIDE_MAC + INSIDE_MAC + IPV4.to_bytes(2, "big") + header + segment)
