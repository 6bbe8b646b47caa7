"""Packets for the chains of a plan: of each aggregate and each match, what NFs look for, and strays."""

import random
from collections.abc import Iterator, Sequence

from placer.rack.chain import Chain
from placer.rack.compiler.library.url_filter import UrlFilterNf
from placer.rack.compiler.traffic.entries import Bits, entries_of, parse
from placer.rack.compiler.traffic.expression import And, Everything, Expression
from tests.placer.rack.compiler.library.frames import (
    GRE,
    ICMP,
    MACS,
    MORE_FRAGMENTS,
    PORTS,
    QINQ,
    TCP,
    UDP,
    VLAN,
    framed,
    ipv4_frame,
    random_frames,
)
from tests.reference.nfs.dedup import repeated_payload
from tests.reference.nfs.traffic import Mix, make_flows, odd_of, plain
from tests.reference.nfs.url_filter import web_payload
from tests.reference.peel import fields_of, holds

GAP_US = 10  # between packets
FORGED = MACS + bytes.fromhex("894f0fc20203")
EDGES = (1023, 1024, 40000, 40001)  # of the range of ports that matches of random chains name
KNOWN = (0x0A000001, 0x0A800001, 0xC0000207, 0xC6120101, 0x08080808)
TEXTS = tuple(random.Random(at).randbytes(600) for at in range(2))


def rack_packets(
    chains: Sequence[Chain], seed: int, of_each: int = 1, others: int = 20, urls: Sequence[str] = ()
) -> list[bytes]:
    """Frames in a random order, but flows come again.

    `of_each`: frames for each pair of an aggregate and a match of the same chain. `others`: random frames besides.
    `urls`: of operators' own lists.
    """
    rng = random.Random(seed)
    frames = [
        *random_frames(seed, others),
        *strays(rng),
        *frames_without_ipv4(random.Random(f"{seed} without IPv4")),
        *icmp_queries(rng),
    ]
    for chain in chains:
        frames += chain_packets(chain, rng, of_each, urls)
    rng.shuffle(frames)
    return frames + [frame for frame in frames if rng.random() < 0.15]


def timed(frames: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """Frames with the times at which they arrive, us: those of `write_capture`."""
    return [(1_000_000 + GAP_US * at, frame) for at, frame in enumerate(frames)]


def chain_packets(chain: Chain, rng: random.Random, of_each: int, urls: Sequence[str] = ()) -> Iterator[bytes]:
    """Frames of each aggregate, and of each match where the aggregate allows it; with payloads that NFs look for."""
    aggregates = [parse(text) for text in chain.aggregates] or [Everything()]
    matches = [parse(edge.match) for edge in chain.edges if edge.match]
    kinds = {nf.nf for nf in chain.nfs}
    payloads = _payloads(chain, kinds, rng) + [web_payload(rng, urls) for _ in range(3 * of_each if urls else 0)]
    for aggregate in aggregates:
        for match in [Everything(), *dict.fromkeys(matches)]:
            for _ in range(of_each):
                yield from fitting_frame(And((aggregate, match)), rng, rng.choice(payloads))
        if kinds & {"UrlFilter", "Dedup"}:
            for payload in payloads[1:]:
                yield from fitting_frame(And((aggregate, parse("tcp"))), rng, payload)


def _payloads(chain: Chain, kinds: set[str], rng: random.Random) -> list[bytes]:
    payloads = [rng.randbytes(rng.randrange(80))]
    for nf in chain.nfs:
        if nf.nf == "UrlFilter":
            kind = UrlFilterNf()
            urls = kind.data(kind.completed(nf.parameters, nf.id))
            payloads += [web_payload(rng, urls) for _ in range(3 if urls else 0)]
    if "Dedup" in kinds:
        payloads += [repeated_payload(rng, TEXTS) for _ in range(3)]
    return payloads


def fitting_frame(expression: Expression, rng: random.Random, payload: bytes = b"") -> Iterator[bytes]:
    """A frame for which an expression holds; none if no frame was found."""
    ways = [one.bits for one in entries_of([expression]) if one.verdict == 0]
    for _ in range(4 if ways else 0):
        frame = _frame_with(rng.choice(ways), rng, payload)
        if holds(expression, fields_of(frame)):
            yield frame
            return


def _frame_with(bits: Bits, rng: random.Random, payload: bytes) -> bytes:
    """A frame whose fields have these bits, and others as chance will have it."""

    def value(name: str, other: int) -> int:
        wanted, mask = bits.get(name, (0, 0))
        return wanted | other & ~mask

    tagged = value("tagged", int(rng.random() < 0.15)) & 1
    tags = (value("vlan", rng.randrange(4096)) & 0xFFF, *([rng.randrange(4096)] if rng.random() < 0.1 else []))
    tags = tags if tagged else ()
    if not value("ip", int(rng.random() < 0.97)) & 1:
        return framed(rng.randbytes(46), tags, ether_type=rng.choice((0x806, 0x86DD)))
    with_ports = value("has_ports", int(rng.random() < 0.9)) & 1
    protocol = value("protocol", rng.choice((UDP, TCP) if with_ports else (ICMP, GRE, UDP)))
    return ipv4_frame(
        value("source", rng.choice(KNOWN) ^ rng.randrange(16)),
        value("destination", rng.choice(KNOWN) ^ rng.randrange(256)),
        protocol & 0xFF,
        (value("source_port", _port(rng)), value("destination_port", _port(rng))),
        payload or rng.randbytes(24),
        ttl=rng.choice((64, 64, 64, 64, 2, 1)),
        identification=rng.randrange(65536),
        parts=0 if with_ports else rng.choice((MORE_FRAGMENTS, MORE_FRAGMENTS | 7, 0)),
        options=rng.choice((b"", b"", b"", b"", bytes(4))),
        tags=tags,
        tag_type=rng.choice((VLAN, QINQ)),
        without_checksum=rng.random() < 0.1,
    )


def _port(rng: random.Random) -> int:
    return rng.choice((*PORTS, *EDGES)) if rng.random() < 0.5 else rng.randrange(1024, 40001)


def strays(rng: random.Random) -> list[bytes]:
    """What is no ordinary packet: labels from outside, many tags, fragments, ARP, ports at limits, what is cut off."""
    inner = ipv4_frame(identification=rng.randrange(65536))
    return [
        FORGED + bytes.fromhex("000001ff") + inner,
        FORGED + bytes((0, 0, rng.randrange(4), 255 - rng.randrange(4))) + inner,
        MACS + b"\x89\x4f",
        ipv4_frame(tags=(rng.randrange(4096),)),
        ipv4_frame(tags=(rng.randrange(4096), 7), tag_type=QINQ),
        framed(inner[14:], (1, 2, 3)),
        framed(bytes(46), (5, 6)),
        ipv4_frame(0x0A000002, parts=MORE_FRAGMENTS, payload=bytes(24)),
        ipv4_frame(0x0A000002, parts=MORE_FRAGMENTS | 4, payload=rng.randbytes(24)),
        ipv4_frame(0x0A000002, parts=8, protocol=TCP, payload=rng.randbytes(16)),
        framed(bytes.fromhex("0001080006040001") + bytes(38), ether_type=0x806),
        inner[: rng.randrange(14, 34)],
        inner[: rng.randrange(1, 14)],
        MACS + b"\x08\x00" + b"\x65" + inner[15:],
        *(
            ipv4_frame(0x0A000005, 0xC0000209, kind, (500, port))
            for kind in (TCP, UDP)
            for port in (EDGES[0], EDGES[2])
        ),
    ]


def frames_without_ipv4(rng: random.Random) -> list[bytes]:
    """Datagrams of IPv6, plain and tagged, with extension headers, in fragments or damaged; types that no NF knows."""
    mix = Mix(flows=6, hosts=4, ipv6=1)
    whole = [plain(rng, flow, True, rng.randbytes(24), mix, 1) for flow in make_flows(rng, mix)]
    odd = [changed for frame in whole for changed in odd_of(rng, frame, mix)]
    tagged = [framed(whole[at][14:], (7, 8)[:at], ether_type=0x86DD) for at in (1, 2)]
    kinds = (0x88CC, 0x8847, 0x9100, 0x26)  # LLDP, MPLS, a tag that is skipped by no NF, a length
    return [*whole, *tagged, *odd, *(framed(rng.randbytes(46), ether_type=kind) for kind in kinds)]


def icmp_queries(rng: random.Random) -> list[bytes]:
    """Pings of one host, twice with the same identifier."""
    return [ipv4_frame(0x0A000003, protocol=ICMP, ports=(port, at)) for at, port in enumerate((1, 1, 2))]
