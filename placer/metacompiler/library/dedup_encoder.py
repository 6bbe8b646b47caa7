"""The encoder of Dedup: finds bytes of payloads that were sent before, as `nfs/functions/dedup/encoder.c` does.

Windows of 64 bytes are sampled by their content; a window that is sampled again is compared, and extended to all equal
bytes around it (Spring and Wetherall, SIGCOMM 2000; Anand et al., SIGCOMM 2008). The fingerprint is a gear hash (Xia et
al., USENIX ATC 2016).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from placer.metacompiler.library.random_numbers import MASK, SplitMix
from placer.metacompiler.library.siphash import siphash

MAGIC = b"DDUP"
HEADER = struct.Struct("!4sBBHQ")
REGION = struct.Struct("!QHHH")
MOST_REGIONS = 16
LEAST, MOST = 64, 2048
"""Bytes of a payload that is kept."""
WINDOW = 64
SAMPLE_BITS = 4
"""One of 16 windows is sampled."""
SPACING = 16
PLACES_PER_PAYLOAD = 32
TAG_BITS = 16


class CachedPayload(NamedTuple):
    """A payload that was sent.

    `generation` is 0 if it was sent whole, else one more than that of what it was encoded from.
    """

    data: bytes
    hash: int
    generation: int


class CopiedRegion(NamedTuple):
    """Bytes that stand at an offset of a payload, and in an earlier one."""

    source: CachedPayload
    offset: int
    length: int
    at: int


class EncodingPlan(NamedTuple):
    """How a payload can be encoded; `samples` are fingerprints of windows, with the offset of the last byte."""

    hash: int
    regions: list[CopiedRegion]
    samples: list[tuple[int, int]]

    @property
    def generation(self) -> int:
        return max((region.source.generation + 1 for region in self.regions), default=0)

    def saved(self) -> int:
        """Bytes by which the regions make an encoded payload shorter."""
        return sum(region.length - REGION.size for region in self.regions)


class PayloadEncoder:
    """The cache of one direction of a link; `size` is a power of two."""

    def __init__(self, size: int, seed: int, depth: int) -> None:
        random = SplitMix(seed)
        self.key = random.next(), random.next()
        self._size, self._depth = size, depth
        gear = [random.next() for _ in range(256)]
        gear[0] = -(gear[0] >> SAMPLE_BITS) & MASK  # zeros in a row are frequent: their window is sampled
        self._gear = gear
        self._shift = 64 - (size * PLACES_PER_PAYLOAD).bit_length() + 1
        self._places: dict[int, tuple[int, int, int]] = {}
        self._cached: dict[int, CachedPayload] = {}
        self._newest = 0

    def plan(self, payload: bytes, whole: bool) -> EncodingPlan:
        """The regions of a payload; none if it is too short or too long for the cache, or is to be sent whole."""
        if not LEAST <= len(payload) <= MOST:
            return EncodingPlan(siphash(self.key, payload), [], [])
        plan = EncodingPlan(siphash(self.key, payload), [], self._sampled(payload))
        done = 0
        for sample in plan.samples if not whole else ():
            region = self._region(payload, sample, done)
            if region is None:
                continue
            done = region.at + region.length
            plan.regions.append(region)
            if len(plan.regions) == MOST_REGIONS:
                break
        return plan

    def store(self, payload: bytes, plan: EncodingPlan, encoded: bool) -> None:
        """Keep a payload that was sent, in place of the oldest one."""
        self._newest += 1
        self._cached[self._newest] = CachedPayload(payload, plan.hash, plan.generation if encoded else 0)
        self._cached.pop(self._newest - self._size, None)
        for fingerprint, end in plan.samples:
            place, tag = self._place(fingerprint)
            self._places[place] = self._newest, end, tag

    def _sampled(self, payload: bytes) -> list[tuple[int, int]]:
        gear, found = self._gear, list[tuple[int, int]]()
        at, following, value = 0, WINDOW - 1, 0
        while following < len(payload):
            for byte in payload[at:following]:
                value = (value << 1) + gear[byte] & MASK
            at = following
            while True:
                value = (value << 1) + gear[payload[at]] & MASK
                at += 1
                if value >> (64 - SAMPLE_BITS) == 0 or at == len(payload):
                    break
            if value >> (64 - SAMPLE_BITS) == 0:
                found.append((value, at - 1))
            following = at + SPACING - 1
        return found

    def _place(self, fingerprint: int) -> tuple[int, int]:
        """Where a fingerprint is noted, and the part of it that is noted."""
        upper = fingerprint << SAMPLE_BITS & MASK
        return upper >> self._shift, (upper << (64 - self._shift) & MASK) >> (64 - TAG_BITS)

    def _region(self, payload: bytes, sample: tuple[int, int], done: int) -> CopiedRegion | None:
        """The region around a sampled window, behind `done` bytes."""
        fingerprint, end = sample
        begin = end - (WINDOW - 1)
        place, tag = self._place(fingerprint)
        number, source_end, found_tag = self._places.get(place, (0, 0, -1))
        source = self._cached.get(number)
        if begin < done or found_tag != tag or source is None:
            return None
        if source.generation >= self._depth or source_end >= len(source.data):
            return None
        offset = source_end - (WINDOW - 1)
        if source.data[offset : source_end + 1] != payload[begin : end + 1]:
            return None
        return _extended(source, offset, source_end, payload, begin, end, done)


def _extended(
    source: CachedPayload, offset: int, source_end: int, payload: bytes, begin: int, end: int, least: int
) -> CopiedRegion:
    """All equal bytes around a window, from `least` on."""
    while begin > least and offset > 0 and payload[begin - 1] == source.data[offset - 1]:
        begin -= 1
        offset -= 1
    while end + 1 < len(payload) and source_end + 1 < len(source.data):
        if payload[end + 1] != source.data[source_end + 1]:
            break
        end += 1
        source_end += 1
    return CopiedRegion(source, offset, end + 1 - begin, begin)


def encoded_payload(payload: bytes, plan: EncodingPlan) -> bytes:
    """A header, the regions, and the bytes between them."""
    literal, done = b"", 0
    for region in plan.regions:
        literal += payload[done : region.at]
        done = region.at + region.length
    packed = b"".join(REGION.pack(one.source.hash, one.offset, one.length, one.at) for one in plan.regions)
    head = HEADER.pack(MAGIC, len(plan.regions), 0, len(payload), plan.hash)
    return head + packed + literal + payload[done:]
