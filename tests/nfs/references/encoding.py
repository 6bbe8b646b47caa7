"""Encoded payloads of a Dedup link: a header, regions that are copied from earlier payloads, the bytes between them."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass

from tests.nfs.references.headers import TCP, Headers, updated
from tests.nfs.references.siphash import SipHash

MAGIC = b"DDUP"
HEADER = struct.Struct("!4sBBHQ")
REGION = struct.Struct("!QHHH")
LEAST, MOST, MOST_REGIONS = 64, 2048, 16


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes of an earlier payload, known by its hash, that stand at an offset of the original."""

    source: int
    offset: int
    length: int
    at: int


class Cache:
    """The last payloads of a direction, known by their hash, and how often each builds on others."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.hash = size, SipHash(seed)
        self.newest = 0
        self.order: deque[tuple[int, int]] = deque()
        self.payloads: dict[int, tuple[int, bytes]] = {}
        self.generations: dict[int, int] = {}

    def store(self, payload: bytes, generation: int = 0) -> int:
        """Store a payload in place of the oldest one; returns its hash."""
        key = self.hash(payload)
        if len(self.order) == self.size:
            number, old = self.order.popleft()
            if self.payloads[old][0] == number:
                del self.payloads[old], self.generations[old]
        self.newest += 1
        self.order.append((self.newest, key))
        self.payloads[key] = (self.newest, payload)
        self.generations[key] = min(generation, self.generations.get(key, generation))
        return key

    def get(self, key: int) -> bytes | None:
        """A payload by its hash; None if the cache does not have it."""
        found = self.payloads.get(key)
        return None if found is None else found[1]


def encoded(payload: bytes, regions: list[Region], key: int) -> bytes:
    """A payload with regions in order, its hash being `key`."""
    literal, done = b"", 0
    for region in regions:
        literal += payload[done : region.at]
        done = region.at + region.length
    packed = b"".join(REGION.pack(one.source, one.offset, one.length, one.at) for one in regions)
    return HEADER.pack(MAGIC, len(regions), 0, len(payload), key) + packed + literal + payload[done:]


def regions_of(data: bytes) -> list[Region] | None:
    """The regions of an encoded payload; None if its header is damaged."""
    if len(data) < HEADER.size:
        return None
    _, n, version, length, _ = HEADER.unpack_from(data)
    if version or n > MOST_REGIONS or not 0 < length <= MOST or len(data) < HEADER.size + n * REGION.size:
        return None
    return [Region(*REGION.unpack_from(data, HEADER.size + i * REGION.size)) for i in range(n)]


def decoded(data: bytes, cache: Cache) -> bytes | str:
    """The original of an encoded payload, or why there is none: `lost` or `damaged`."""
    regions = regions_of(data)
    if regions is None:
        return "damaged"
    length, key = struct.unpack_from("!HQ", data, 6)
    literal, made = data[HEADER.size + len(regions) * REGION.size :], b""
    for region in regions:
        between = region.at - len(made)
        if between < 0 or between > len(literal) or region.at + region.length > length:
            return "damaged"
        made, literal = made + literal[:between], literal[between:]
        source = cache.get(region.source)
        if source is None:
            return "lost"
        if region.offset + region.length > len(source):
            return "damaged"
        made += source[region.offset : region.offset + region.length]
    made += literal
    return made if len(made) == length and cache.hash(made) == key else "damaged"


def with_payload(frame: bytes, headers: Headers, payload: bytes) -> bytes:
    """A frame with another payload of UDP or TCP, and lengths and checksums changed accordingly."""
    l3, l4, at = headers.l3, headers.l4, headers.payload
    old = frame[at : headers.end]
    made = bytearray(frame[:at] + payload)
    total = (len(made) - l3).to_bytes(2, "big")
    checksum = updated(int.from_bytes(frame[l3 + 10 : l3 + 12], "big"), frame[l3 + 2 : l3 + 4], total)
    made[l3 + 2 : l3 + 4], made[l3 + 10 : l3 + 12] = total, checksum.to_bytes(2, "big")
    lengths = (headers.end - l4).to_bytes(2, "big"), (len(made) - l4).to_bytes(2, "big")
    before, after = old + bytes(len(old) % 2), payload + bytes(len(payload) % 2)
    place = l4 + (16 if headers.protocol == TCP else 6)
    was = int.from_bytes(frame[place : place + 2], "big")
    if headers.protocol == TCP:
        now = updated(was, before + lengths[0], after + lengths[1])
    else:
        made[l4 + 4 : l4 + 6] = lengths[1]
        now = updated(was, before + 2 * frame[l4 + 4 : l4 + 6], after + 2 * lengths[1]) or 0xFFFF
        now = now if was else 0
    made[place : place + 2] = now.to_bytes(2, "big")
    return bytes(made)
