"""Mixed frames from a seed, fast enough for a million: flows of TCP, UDP and ICMP, and what disturbs functions."""

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.reference.nfs.headers import (
    ACK,
    DONT_FRAGMENT,
    FIN,
    ICMP,
    INSIDE,
    INSIDE_MAC,
    IPV4,
    IPV6,
    MORE_FRAGMENTS,
    OUTSIDE,
    OUTSIDE_MAC,
    RST,
    SCTP,
    SYN,
    TCP,
    UDP,
    internet_checksum,
    ipv4_header,
    l4_checksum,
    with_header_checksum,
)
from tests.reference.nfs.ipv6 import (
    ICMPV6,
    ipv6_checksum,
    ipv6_fragments,
    ipv6_header,
    protocol_in_ipv6,
    with_extensions,
)

NUMBERS = 1 << 32
PORTS = (20, 22, 25, 53, 80, 110, 123, 161, 443, 873, 993, 5060, 8080, 16400, 33000)


@dataclass(frozen=True, slots=True)
class Sent:
    """A frame, the side from which it comes, and when, in microseconds."""

    time_us: int
    side: int
    frame: bytes


@dataclass(slots=True)
class Mix:
    """What a capture consists of; shares are of all frames."""

    flows: int = 4000
    ipv6: float = 0  # share of flows
    outside: float = 0.3  # share of frames from outside
    hosts: int = 500
    burst: int = 8  # most frames of one time, which functions get at once
    gap_us: int = 800  # mean time between bursts
    odd: float = 0.08
    """Share of frames that are not plain: tagged, cut off, fragments, with options, wrong checksums, IPv6, ARP."""
    protocols: tuple[int, ...] = (TCP, TCP, TCP, UDP, UDP, UDP, ICMP, 47)
    payload: Callable[[random.Random], bytes] | None = None  # the bytes of a payload; random ones without it
    flags: tuple[int, ...] = (SYN, SYN | ACK, ACK, ACK, ACK, ACK, FIN | ACK, RST, RST | ACK, 0, SYN | FIN)
    numbers: tuple[int, int] | None = None  # sequence number and acknowledgement of segments; random ones without it
    tags: bool = True
    jumbo: float = 0.0005  # share of payloads that do not fit one buffer of a function
    own: list[tuple[int, bytes]] = field(default_factory=list)
    """Frames and their sides that a function gets as they are, now and then."""


@dataclass(frozen=True, slots=True)
class FlowEnds:
    """Ends of a flow, the inside one first."""

    protocol: int
    client: bytes
    server: bytes
    ports: tuple[int, int]


def make_flows(rng: random.Random, mix: Mix) -> list[FlowEnds]:
    """Flows between hosts inside and servers outside."""
    clients = [bytes([10, rng.randrange(4), rng.randrange(256), rng.randrange(1, 255)]) for _ in range(mix.hosts)]
    servers = [bytes([rng.randrange(11, 120), *rng.randbytes(2), rng.randrange(1, 255)]) for _ in range(mix.hosts)]
    made = []
    for _ in range(mix.flows):
        service = rng.choice(PORTS) if rng.random() < 0.8 else rng.randrange(1, 65536)
        pair = (rng.randrange(1024, 65536), service)
        flow = FlowEnds(rng.choice(mix.protocols), rng.choice(clients), rng.choice(servers), pair)
        made.append(in_ipv6(flow) if mix.ipv6 and rng.random() < mix.ipv6 else flow)
    return made


def in_ipv6(flow: FlowEnds) -> FlowEnds:
    """The same flow between addresses of IPv6."""
    client, server = (bytes.fromhex("20010db8") + bytes(8) + address for address in (flow.client, flow.server))
    return FlowEnds(protocol_in_ipv6(flow.protocol), client, server, flow.ports)


def random_payload(rng: random.Random) -> bytes:
    """Mostly short, some as long as Ethernet allows."""
    size = rng.random()
    if size < 0.15:
        return b""
    return rng.randbytes(rng.randrange(1, 200) if size < 0.95 else rng.randrange(200, 1400))


def l4_of(rng: random.Random, flow: FlowEnds, outward: bool, payload: bytes, mix: Mix) -> bytes:
    """Header and payload of UDP, TCP or ICMP in one direction; other protocols have a payload only."""
    source, destination = (flow.client, flow.server) if outward else (flow.server, flow.client)
    ends = flow.ports if outward else flow.ports[::-1]
    checksum_of = l4_checksum if len(source) == 4 else ipv6_checksum
    if flow.protocol == UDP:
        segment = struct.pack("!HHHH", *ends, 8 + len(payload), 0) + payload
        if len(source) == 4 and rng.random() < 0.1:
            return segment
        checksum = checksum_of(source, destination, UDP, segment) or 0xFFFF
        return segment[:6] + checksum.to_bytes(2, "big") + payload
    if flow.protocol == TCP:
        options = b"\x02\x04\x05\xb4" if rng.random() < 0.1 else b""
        if mix.flags[0] & SYN and mix.numbers and mix.numbers[0] % 4:
            options += bytes([1, 3, 3, mix.numbers[0] % 16])
        numbers = mix.numbers or (rng.getrandbits(32), rng.getrandbits(32))
        words = (*ends, *numbers, (5 + len(options) // 4) << 4, rng.choice(mix.flags))
        segment = struct.pack("!HHIIBBHHH", *words, 65535, 0, 0) + options + payload
        checksum = checksum_of(source, destination, TCP, segment)
        return segment[:16] + checksum.to_bytes(2, "big") + segment[18:]
    if flow.protocol == ICMP:
        message = struct.pack("!BBHHH", 8 if outward else 0, 0, 0, flow.ports[0], rng.getrandbits(16)) + payload
        return message[:2] + internet_checksum(message).to_bytes(2, "big") + message[4:]
    if flow.protocol == ICMPV6:
        message = struct.pack("!BBHHH", 128 if outward else 129, 0, 0, flow.ports[0], rng.getrandbits(16)) + payload
        checksum = ipv6_checksum(source, destination, ICMPV6, message)
        return message[:2] + checksum.to_bytes(2, "big") + message[4:]
    if flow.protocol == SCTP:
        return struct.pack("!HHII", *ends, 7, 0) + payload
    return payload


def ethernet(outward: bool) -> bytes:
    """The addresses of a frame in one direction."""
    return OUTSIDE_MAC + INSIDE_MAC if outward else INSIDE_MAC + OUTSIDE_MAC


def plain(rng: random.Random, flow: FlowEnds, outward: bool, payload: bytes, mix: Mix, number: int) -> bytes:
    """A whole frame of a flow."""
    source, destination = (flow.client, flow.server) if outward else (flow.server, flow.client)
    segment = l4_of(rng, flow, outward, payload, mix)
    if len(source) == 16:
        fields = {"traffic": rng.getrandbits(8) if rng.random() < 0.3 else 0, "ttl": rng.choice((1, 64, 255))}
        header = ipv6_header(source, destination, flow.protocol, len(segment), **fields)
        return ethernet(outward) + IPV6.to_bytes(2, "big") + header + segment
    dont = DONT_FRAGMENT if rng.random() < 0.5 else 0
    service = rng.getrandbits(8) if rng.random() < 0.3 else 0
    ttl = rng.choice((0, 1, 2)) if rng.random() < 0.02 else rng.choice((32, 64, 128))
    fields = {"tos": service, "id": number & 0xFFFF, "flags": dont, "ttl": ttl}
    header = ipv4_header(source, destination, flow.protocol, len(segment), **fields)
    return ethernet(outward) + IPV4.to_bytes(2, "big") + header + segment


def tagged(rng: random.Random, frame: bytes) -> list[bytes]:
    """With one, two or three VLAN tags."""
    depth = rng.choice((1, 1, 1, 2, 2, 3))
    kinds = [0x8100] * depth if rng.random() < 0.5 else [0x88A8, *[0x8100] * (depth - 1)]
    tags = b"".join(struct.pack("!HH", kind, rng.choice((100, 200, rng.getrandbits(16)))) for kind in kinds)
    return [frame[:12] + tags + frame[12:]]


def cut(rng: random.Random, frame: bytes) -> list[bytes]:
    """Cut off anywhere, so that bytes are missing that its headers promise."""
    return [frame[: rng.randrange(1, len(frame))]]


def padded(rng: random.Random, frame: bytes) -> list[bytes]:
    """With padding behind the datagram."""
    return [frame + rng.randbytes(rng.randrange(1, 40))]


def is_ipv6(frame: bytes) -> bool:
    """Whether a frame without tags says that it has IPv6."""
    return frame[12:14] == IPV6.to_bytes(2, "big")


def with_options(rng: random.Random, frame: bytes) -> list[bytes]:
    """With options of IPv4: one that is copied to fragments, one that is not, and an end; extensions of IPv6."""
    if is_ipv6(frame):
        return with_extensions(rng, frame)
    options = rng.choice((b"\x94\x04\0\0", b"\x07\x07\x04" + bytes(4) + b"\0", b"\x01\x01\x94\x04\0\0\0\0"))
    header = bytearray(frame[14:34] + options)
    header[0] = 0x40 | len(header) // 4
    header[2:4] = (len(frame) - 14 + len(options)).to_bytes(2, "big")
    return [frame[:14] + with_header_checksum(bytes(header)) + frame[34:]]


def wrong_byte(rng: random.Random, frame: bytes) -> list[bytes]:
    """With another byte somewhere behind the Ethernet header, such as in a checksum or a length."""
    at = rng.randrange(14, min(len(frame), 60)) if len(frame) > 14 else 0
    return [frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1 :]]


def piece(frame: bytes, begin: int, end: int) -> bytes:
    """The fragment with some bytes behind the IPv4 header of a frame, which has no options."""
    segment = frame[34:]
    header = bytearray(frame[14:34])
    header[2:4] = (20 + len(segment[begin:end])).to_bytes(2, "big")
    header[6:8] = ((MORE_FRAGMENTS if end < len(segment) else 0) | begin // 8).to_bytes(2, "big")
    return frame[:14] + with_header_checksum(bytes(header)) + segment[begin:end]


def fragments(rng: random.Random, frame: bytes) -> list[bytes]:
    """In two to four fragments, in order or not, sometimes with one missing, twice, or overlapping."""
    if is_ipv6(frame):
        return ipv6_fragments(rng, frame)
    length = len(frame) - 34
    size = max(8, (length // rng.randrange(2, 4) + 7) // 8 * 8)
    made = [piece(frame, at, at + size) for at in range(0, length, size)]
    chance = rng.random()
    if chance < 0.3 or not made:
        rng.shuffle(made)
    elif chance < 0.4:
        made.pop(rng.randrange(len(made)))
    elif chance < 0.45:
        made.insert(rng.randrange(len(made)), rng.choice(made))
    elif chance < 0.6:
        begin = rng.randrange(length // 8 + 1) * 8
        other = piece(frame, begin, begin + 8 * rng.randrange(1, 40))
        same = rng.random() < 0.7 or len(other) == 34
        made.insert(rng.randrange(len(made)), other if same else other[:-1] + bytes([other[-1] ^ 1]))
    return made


def foreign(rng: random.Random, frame: bytes) -> list[bytes]:
    """IPv6, ARP, or anything else than IPv4."""
    kind = rng.choice((0x86DD, 0x86DD, 0x0806, 0x88CC, rng.getrandbits(16)))
    return [frame[:12] + kind.to_bytes(2, "big") + rng.randbytes(rng.randrange(80))]


def tiny(rng: random.Random, frame: bytes) -> list[bytes]:
    """Shorter than an Ethernet header."""
    return [frame[: rng.randrange(1, 15)]]


def odd_of(rng: random.Random, frame: bytes, mix: Mix) -> list[bytes]:
    """Frames that are not plain, made of one that is."""
    ways = (cut, padded, with_options, with_options, wrong_byte, fragments, fragments, foreign, tiny)
    return rng.choice((*ways, tagged, tagged) if mix.tags else ways)(rng, frame)


def mixed_frames(seed: int, n: int, mix: Mix) -> Iterator[Sent]:
    """`n` frames in the order of their times; those of a burst have one side and one time."""
    rng = random.Random(seed)
    flows, now_us, number, done = make_flows(rng, mix), 1_000_000, 0, 0
    make_payload = mix.payload or random_payload
    while done < n:
        now_us += 1 + int(rng.expovariate(1 / mix.gap_us))
        side = OUTSIDE if rng.random() < mix.outside else INSIDE
        burst: list[bytes] = []
        for _ in range(rng.randrange(1, mix.burst + 1)):
            number += 1
            flow = flows[int(len(flows) * rng.random() ** 2)]
            payload = rng.randbytes(2500) if rng.random() < mix.jumbo else make_payload(rng)
            frame = plain(rng, flow, side == INSIDE, payload, mix, number)
            burst.extend(odd_of(rng, frame, mix) if rng.random() < mix.odd else [frame])
        if mix.own and rng.random() < 0.05:
            chosen = rng.choice(mix.own)
            if chosen[0] == side:
                burst.append(chosen[1])
        for frame in burst[: min(32, n - done)]:
            yield Sent(now_us, side, frame)
        done += len(burst[: min(32, n - done)])


# Traffic of TCP connections that mostly open and close as RFC 9293 has it, mixed with other frames.


SCRIPTS = (
    ((0, SYN), (1, SYN | ACK), (0, ACK), (1, ACK), (0, FIN | ACK), (1, ACK), (1, FIN | ACK), (0, ACK)),
    ((0, SYN), (0, SYN), (1, SYN | ACK), (0, ACK), (1, FIN | ACK), (0, FIN | ACK), (1, ACK), (0, SYN)),
    ((0, SYN), (1, SYN | ACK), (0, ACK), (0, ACK), (1, ACK), (0, RST), (0, SYN), (1, RST | ACK)),
    ((1, SYN), (0, SYN), (1, SYN | ACK), (0, SYN | ACK), (1, ACK), (0, ACK), (1, FIN | ACK), (0, ACK)),
    ((0, SYN), (1, ACK), (0, RST), (0, SYN), (1, SYN | ACK), (0, FIN | ACK), (1, FIN | ACK), (0, ACK)),
)
"""Sides and flags of a connection's segments, in order."""


@dataclass(slots=True)
class Dialogue:
    """How far a flow is in its script."""

    flow: FlowEnds
    script: tuple[tuple[int, int], ...]
    next: list[int]  # sequence numbers of both ends
    at: int = 0

    def step(self, side: int, rng: random.Random) -> int | None:
        """The flags of the next segment from a side; None if the other one is to send."""
        if rng.random() < 0.05:
            return rng.choice((SYN, SYN | ACK, ACK, FIN | ACK, RST, 0, SYN | FIN, FIN))
        if self.script[self.at][0] != side:
            return None
        flags = self.script[self.at][1]
        self.at = (self.at + 1) % len(self.script)
        return flags

    def take_numbers(self, side: int, flags: int, length: int, rng: random.Random) -> tuple[int, int]:
        """Numbers of a segment, mostly right; a reset's often nearly."""
        sequence, acknowledged = self.next[side], self.next[1 - side]
        if rng.random() < (0.5 if flags & RST else 0.06):
            shift = rng.choice((-1, 1, -60, 60, 1500, -1500, 1 << 20, 1 << 30, 1 << 31, rng.getrandbits(32)))
            return (sequence + shift) % NUMBERS, acknowledged
        if rng.random() < 0.06:
            acknowledged += rng.choice((-1, 1, -70, 70, -70_000, 1 << 31, rng.getrandbits(32)))
        if not flags & RST:
            self.next[side] = (sequence + length + bool(flags & SYN) + bool(flags & FIN)) % NUMBERS
        return sequence, acknowledged % NUMBERS


def connection_frames(seed: int, n: int, mix: Mix) -> Iterator[Sent]:
    """`n` frames of connections, and of other flows as they come."""
    rng = random.Random(seed)
    dialogues = [
        Dialogue(flow, rng.choice(SCRIPTS), [rng.getrandbits(32), rng.getrandbits(32)]) for flow in make_flows(rng, mix)
    ]
    now_us, done, number = 1_000_000, 0, 0
    while done < n:
        now_us += 1 + int(rng.expovariate(1 / mix.gap_us))
        side = OUTSIDE if rng.random() < 0.5 else INSIDE
        burst: list[bytes] = []
        for _ in range(rng.randrange(1, mix.burst + 1)):
            dialogue = dialogues[int(len(dialogues) * rng.random() ** 2)]
            tcp = dialogue.flow.protocol == TCP
            flags = dialogue.step(side, rng) if tcp else 0
            if flags is None:
                continue
            number += 1
            payload = random_payload(rng)
            numbers = dialogue.take_numbers(side, flags, len(payload), rng) if tcp else None
            frame = plain(rng, dialogue.flow, side == INSIDE, payload, Mix(flags=(flags,), numbers=numbers), number)
            burst.extend(odd_of(rng, frame, mix) if rng.random() < mix.odd else [frame])
        for frame in burst[: min(32, n - done)]:
            yield Sent(now_us, side, frame)
        done += len(burst[: min(32, n - done)])
