"""Random frames, and strays of every kind, written byte by byte."""

import random
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from placer.rack.compiler.library.nf_kind import NF_KINDS
from tests.nfs.captures import read_frames
from tests.nfs.comparison import PROGRAM, NfRun
from tests.reference.interpret import model_of
from tests.reference.nfs.headers import INSIDE, internet_checksum
from tests.reference.nfs.traffic import Sent

NETWORKS = ((0x0A000000, 24), (0xC0000200, 8), (0xC6120000, 17), (0xC6336400, 8), (0x08080800, 8))
"""Addresses that generated data is about, by their first one and free bits, and some that it is not about."""
PORTS = (22, 53, 80, 123, 443, 1024, 5060, 8080, 65535)
ICMP, TCP, UDP, GRE = 1, 6, 17, 47
MACS = bytes.fromhex("020000000a01020000000b02")
VLAN, QINQ = 0x8100, 0x88A8
MORE_FRAGMENTS = 0x2000


def ipv4_frame(
    source: int = 0x0A000001,
    destination: int = 0xC0000207,
    protocol: int = UDP,
    ports: tuple[int, int] = (1000, 53),
    payload: bytes = b"payload",
    *,
    ttl: int = 64,
    identification: int = 7,
    parts: int = 0,
    options: bytes = b"",
    tags: tuple[int, ...] = (),
    tag_type: int = VLAN,
    without_checksum: bool = False,
) -> bytes:
    """A frame with right checksums: UDP, TCP, ICMP, or a protocol without ports; `parts` are flags and offset."""
    pseudo = struct.pack("!II", source, destination)
    segment = l4_segment(protocol, ports, payload, pseudo, without_checksum) if not parts & 0x1FFF else payload
    return framed(ipv4(source, destination, protocol, segment, ttl, identification, parts, options), tags, tag_type)


def framed(datagram: bytes, tags: tuple[int, ...] = (), tag_type: int = VLAN, ether_type: int = 0x0800) -> bytes:
    """A frame with VLAN tags of these numbers."""
    kinds = [tag_type if i == 0 else VLAN for i in range(len(tags))]
    marks = b"".join(struct.pack("!HH", kind, tag) for kind, tag in zip(kinds, tags, strict=True))
    return MACS + marks + struct.pack("!H", ether_type) + datagram


def ipv4(
    source: int,
    destination: int,
    protocol: int,
    segment: bytes,
    ttl: int = 64,
    identification: int = 7,
    parts: int = 0,
    options: bytes = b"",
) -> bytes:
    """An IPv4 packet; options are a multiple of 4 bytes."""
    words = 5 + len(options) // 4
    total = 4 * words + len(segment)
    head = struct.pack("!BBHHHBBH", 0x40 | words, 0, total, identification, parts, ttl, protocol, 0)
    head += struct.pack("!II", source, destination) + options
    return head[:10] + struct.pack("!H", internet_checksum(head)) + head[12:] + segment


def l4_segment(
    protocol: int, ports: tuple[int, int], payload: bytes, pseudo: bytes, without_checksum: bool = False
) -> bytes:
    """UDP, TCP or an ICMP echo request with its checksum; the payload alone for other protocols."""
    if protocol == ICMP:
        message = struct.pack("!BBHHH", 8, 0, 0, ports[0], ports[1]) + payload
        return message[:2] + struct.pack("!H", internet_checksum(message)) + message[4:]
    if protocol == UDP:
        segment, at = struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload, 6
    elif protocol == TCP:
        segment, at = struct.pack("!HHIIBBHHH", *ports, 1000, 2000, 0x50, 0x18, 8192, 0, 0) + payload, 16
    else:
        return payload
    if without_checksum:
        return segment
    value = internet_checksum(pseudo + struct.pack("!HH", protocol, len(segment)) + segment)
    value = value or 0xFFFF if protocol == UDP else value
    return segment[:at] + struct.pack("!H", value) + segment[at + 2 :]


def random_frame(rng: random.Random) -> bytes:
    """Mostly UDP and TCP among known networks; now and then something else, or broken."""
    chance = rng.random()
    if chance < 0.7:
        return _plain(rng)
    if chance < 0.85:
        return _odd(rng)
    if chance < 0.93:
        return _other(rng)
    return _broken(rng)


def random_frames(seed: int, n: int) -> list[bytes]:
    rng = random.Random(seed)
    return [random_frame(rng) for _ in range(n)]


def _address(rng: random.Random) -> int:
    first, free = rng.choice(NETWORKS)
    return first | rng.getrandbits(free)


def _port(rng: random.Random) -> int:
    return rng.choice(PORTS) if rng.random() < 0.6 else rng.randrange(65536)


def _plain(rng: random.Random) -> bytes:
    """A whole datagram, now and then behind tags, with options, or at the end of its time to live."""
    return ipv4_frame(
        _address(rng),
        _address(rng),
        rng.choice((UDP, UDP, TCP, TCP, ICMP)),
        (_port(rng), _port(rng)),
        rng.randbytes(rng.choice((0, 1, 6, 30, 200))),
        ttl=rng.choice((64, 64, 64, 255, 2, 1, 0)),
        identification=rng.randrange(65536),
        parts=rng.choice((0, 0x4000)),
        options=rng.choice((b"", b"", b"", b"\x01\x01\x01\x00", bytes(40))),
        tags=tuple(rng.randrange(4096) for _ in range(rng.choice((0, 0, 0, 1, 2)))),
        tag_type=rng.choice((VLAN, QINQ)),
        without_checksum=rng.random() < 0.2,
    )


def _odd(rng: random.Random) -> bytes:
    """A fragment, a protocol without ports, or padding behind the datagram."""
    first = rng.random() < 0.5
    return ipv4_frame(
        _address(rng),
        _address(rng),
        rng.choice((UDP, TCP, GRE, ICMP)),
        (_port(rng), _port(rng)),
        rng.randbytes(rng.choice((8, 24, 64))),
        identification=rng.randrange(65536),
        parts=rng.choice((0, MORE_FRAGMENTS)) if first else MORE_FRAGMENTS | rng.randrange(1, 200),
        tags=(rng.randrange(4096),) if rng.random() < 0.2 else (),
    ) + rng.choice((b"", bytes(6)))


def _other(rng: random.Random) -> bytes:
    """ARP, IPv6, three tags, or an unknown type."""
    tags = tuple(rng.randrange(4096) for _ in range(rng.choice((0, 0, 1, 2, 3))))
    return framed(rng.randbytes(rng.randrange(46)), tags, rng.choice((VLAN, QINQ)), rng.choice((0x806, 0x86DD, 0x1234)))


def _broken(rng: random.Random) -> bytes:
    """Cut off somewhere, or with wrong lengths or versions in its headers."""
    frame = _plain(rng)
    if rng.random() < 0.5:
        return frame[: rng.randrange(1, len(frame))]
    at = rng.randrange(12, min(len(frame), 60))
    return frame[:at] + rng.randbytes(1) + frame[at + 1 :]


GAP_US = 1000
FIRST_US = 1_000_000  # when the first packet of a capture arrives; others follow at equal gaps


@dataclass(frozen=True)
class SentByC:
    """What a function in C did: what left, and its counters."""

    out: list[bytes]
    counters: dict[str, int]


def in_c(
    nf: str,
    parameters: Mapping[str, float],
    frames: Sequence[bytes],
    folder: Path,
    settings: Mapping[str, str] | None = None,
) -> SentByC:
    """Frames through the function in C, with the settings of the library and perhaps others. Skips without it."""
    require_nf(nf)
    kind = NF_KINDS[nf]
    completed = kind.completed(parameters, nf)
    files = {}
    for suffix, text in kind.server_files(kind.data(completed)).items():
        files[suffix] = str(folder / f"data.{suffix}")
        Path(files[suffix]).write_text(text, encoding="utf-8")
    given = {**kind.server_settings(completed, files), **(settings or {})}
    left = NfRun(PROGRAM, nf, given, folder)(sent_at_gaps(frames), "nf")
    return SentByC([frame for _, frame in read_frames(left.out)], left.counters())


def in_model(nf: str, parameters: Mapping[str, float], frames: Sequence[bytes]) -> list[bytes]:
    """Frames through the model, at the same times."""
    model = model_of(nf, parameters, nf)
    return [out for sent in sent_at_gaps(frames) for out in model.process(sent.frame, sent.time_us)]


def sent_at_gaps(frames: Sequence[bytes]) -> list[Sent]:
    return [Sent(FIRST_US + i * GAP_US, INSIDE, frame) for i, frame in enumerate(frames)]


def require_nf(nf: str) -> None:
    """Skip the test if the program is not built, or its build lacks the function."""
    if not PROGRAM.exists():
        pytest.skip("nf-run is not built: `make nfs` builds it")
    listed = subprocess.run([PROGRAM, "--list"], capture_output=True, text=True, check=True).stdout
    if nf not in [line.split()[0] for line in listed.splitlines()]:
        pytest.skip(f"this build of nf-run lacks {nf}")
