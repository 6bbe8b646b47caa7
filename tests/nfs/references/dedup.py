"""Dedup: redundancy elimination between two ends of a link (Spring and Wetherall, SIGCOMM 2000)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.nfs.references.encoding import (
    LEAST,
    MAGIC,
    MOST,
    MOST_REGIONS,
    Cache,
    Region,
    decoded,
    encoded,
    regions_of,
    with_payload,
)
from tests.nfs.references.headers import INSIDE, OUTSIDE, TCP, UDP, Headers, read
from tests.nfs.references.nf_run import NfRun
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.traffic import Mix, Sent, random_payload

ALL_ONES = b"\xff\xff"


def payload_of(frame: bytes, headers: Headers) -> bytes | None:
    """The payload of a whole datagram of UDP or TCP; None for others."""
    if headers.kind != "ipv4" or headers.payload == 0 or headers.fragment or headers.protocol not in (TCP, UDP):
        return None
    return frame[headers.payload : headers.end]


def is_restorable(frame: bytes, headers: Headers) -> bool:
    """Whether lengths and checksums can be restored after their change."""
    l3, l4 = headers.l3, headers.l4
    if frame[l3 + 10 : l3 + 12] == ALL_ONES:
        return False
    if headers.protocol == TCP:
        return frame[l4 + 16 : l4 + 18] != ALL_ONES
    return int.from_bytes(frame[l4 + 4 : l4 + 6], "big") == headers.end - l4


@dataclass(slots=True)
class Encoder:
    """An encoder of its own, for the side to restore: it builds payloads from parts of earlier ones."""

    rng: random.Random
    cache: Cache
    keys: list[int] = field(default_factory=list)

    def made(self) -> tuple[bytes, list[Region]]:
        """A payload and regions that it is known to have."""
        rng, payload, regions = self.rng, rng_bytes(self.rng, 40), list[Region]()
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            key = rng.choice(self.keys[-60:]) if self.keys else 0
            source = self.cache.get(key)
            if source is None:
                continue
            offset = rng.randrange(len(source) - 30)
            length = rng.randrange(20, min(400, len(source) - offset) + 1)
            regions.append(Region(key, offset, length, len(payload)))
            payload += source[offset : offset + length] + rng_bytes(rng, 60)
        if not regions:
            payload = (MAGIC if rng.random() < 0.05 else b"") + rng.randbytes(rng.randrange(20, 500))
        return payload, regions

    def frame(self, frame: bytes, headers: Headers) -> bytes:
        """A frame with a payload as an encoder sends it, now and then damaged, lost, or not encoded at all."""
        rng = self.rng
        payload, regions = self.made()
        original = with_payload(frame, headers, payload)
        chance = rng.random()
        if not LEAST <= len(payload) <= MOST or not is_restorable(original, read(original)):
            return original
        if not regions and not payload.startswith(MAGIC):
            self.keys.append(self.cache.store(payload))
            return original
        data = encoded(payload, regions, self.cache.hash(payload))
        if chance < 0.05:
            at = rng.randrange(4, len(data))
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        elif chance < 0.08:
            data = data[: rng.randrange(4, len(data))]
        elif chance > 0.02:
            self.keys.append(self.cache.store(payload))
        return with_payload(original, read(original), data)


def rng_bytes(rng: random.Random, most: int) -> bytes:
    """Up to so many bytes."""
    return rng.randbytes(rng.randrange(most))


class DedupReference(Reference):
    """What is restored is exact. Which regions are found is the encoder's choice: every encoded packet is decoded here.

    It must give the bytes that came in, be shorter, refer to none but the last payloads, and build on at most `depth`
    others. A segment that is sent again is sent whole. Both ends name payloads by SipHash, with a key that is the first
    two numbers of SplitMix64 from the seed.
    """

    nf = "Dedup"
    variants = ({"packets": "1024", "depth": "3"}, {"packets": "256", "restore": "1", "seed": "99"})

    def prepare(self) -> None:
        size, seed = self.number("packets", 4096), self.number("seed", 1)
        self.encoded_side = OUTSIDE if self.number("restore", 0) else INSIDE
        self.sent_cache, self.received = Cache(size, seed), Cache(size, seed)
        self.last = b""
        self.whole = 0

    def mix(self) -> Mix:
        rng = random.Random(5)
        texts = [rng.randbytes(rng.randrange(100, 1200)) for _ in range(400)]

        def payload(own: random.Random) -> bytes:
            """Bytes that occur again, between others."""
            if own.random() < 0.3:
                return (MAGIC if own.random() < 0.02 else b"") + random_payload(own)
            text = own.choice(texts)
            at = own.randrange(len(text) - 60)
            return rng_bytes(own, 50) + text[at : at + own.randrange(60, 800)] + rng_bytes(own, 50)

        return Mix(flows=5000, outside=0.4, payload=payload, protocols=(TCP, UDP, UDP, 1))

    def traffic(self, seed: int, n: int, run: NfRun) -> Iterator[Sent]:
        """Frames to restore come from an encoder of our own; some segments to encode are sent twice."""
        encoder = Encoder(random.Random(seed), Cache(self.number("packets", 4096), self.number("seed", 1)))
        done = 0
        for sent in super().traffic(seed, n, run):
            headers, frame, again = read(sent.frame), sent.frame, 1
            if sent.side != self.encoded_side and payload_of(frame, headers) and len(frame) == headers.end:
                frame = encoder.frame(frame, headers)
            elif headers.protocol == TCP and encoder.rng.random() < 0.03:
                again = 2
            for _ in range(min(again, n - done)):
                yield Sent(sent.time_us, sent.side, frame)
                done += 1

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        """Packets leave in their order."""
        ends = (out, back)
        wrong, rest = [], iter(ends[burst[0].side])
        for sent in burst:
            frame, headers = sent.frame, read(sent.frame)
            payload = payload_of(frame, headers)
            expected = self.expected(frame, headers, payload, sent.side)
            if isinstance(expected, str):
                self.counted[expected] += 1
                continue
            got = next(rest, b"")
            if expected is None and payload is not None:
                fault = self.encoding_fault(frame, headers, payload, got)
            else:
                fault = None if got == expected else f"expected {expected.hex() if expected else None}"
            if fault:
                wrong.append(f"{fault}: {frame.hex()} left as {got.hex()}")
        return wrong + [f"not expected {frame.hex()}" for frame in [*rest, *ends[1 - burst[0].side]]]

    def expected(self, frame: bytes, headers: Headers, payload: bytes | None, side: int) -> bytes | str | None:
        """What leaves for a frame: None if an encoder chooses, a counter if nothing does."""
        if headers.kind == "malformed":
            return "malformed"
        encodes = side == self.encoded_side
        magic = payload is not None and payload.startswith(MAGIC)
        fits = payload is not None and len(payload) <= MOST and is_restorable(frame, headers)
        if magic and not fits:
            return "unencodable" if encodes else "damaged"
        if payload is None or not (magic or (fits and len(payload) >= LEAST)):
            self.counted["passed"] += 1
            return frame
        if encodes:
            return None
        original = decoded(payload, self.received) if magic else payload
        if isinstance(original, str):
            return original
        self.counted["restored" if magic else "whole"] += 1
        if len(original) >= LEAST:
            self.received.store(original)
        return with_payload(frame, headers, original) if magic else frame

    def encoding_fault(self, frame: bytes, headers: Headers, payload: bytes, got: bytes) -> str | None:
        """What is wrong with a frame that an encoder sent."""
        again, self.last = frame == self.last and headers.protocol == TCP, frame
        self.counted["bytes_in"] += len(payload)
        found = payload_of(got, read(got)) or b""
        self.counted["bytes_out"] += len(found)
        generation, fault = 0, None
        if found.startswith(MAGIC):
            self.counted["encoded"] += 1
            generation, fault = self.decoding_fault(payload, found, again)
            if got != with_payload(frame, headers, found):
                fault = fault or "another header"
        else:
            self.whole += 1
            fault = None if got == frame else "changed"
            if payload.startswith(MAGIC):
                fault = "not encoded"
        if len(payload) >= LEAST:
            self.sent_cache.store(payload, generation)
        return fault

    def decoding_fault(self, payload: bytes, data: bytes, again: bool) -> tuple[int, str | None]:
        """On how many others an encoded payload builds, and what is wrong with it."""
        regions = regions_of(data) or []
        self.counted["regions"] += len(regions)
        original = decoded(data, self.sent_cache)
        if original != payload:
            return 0, f"{original if isinstance(original, str) else 'other bytes'} when decoded"
        generation = max((self.sent_cache.generations[one.source] + 1 for one in regions), default=0)
        if generation > self.number("depth", 8) or len(regions) > MOST_REGIONS:
            return generation, f"builds on {generation} others, by {len(regions)} regions"
        if len(data) >= len(payload) and not payload.startswith(MAGIC):
            return generation, "not shorter"
        return generation, "a segment sent again is encoded" if again and regions else None

    def counters(self) -> dict[str, int | Bounds]:
        """Without a region that is worth it, or sent again: the two counters add up to what was sent whole."""
        return {**self.counted, "unmatched": (0, self.whole), "retransmitted": (0, self.whole), "unbuffered": 0}
