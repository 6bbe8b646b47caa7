"""Dedup: replaces payload bytes that were sent before by references; the other end of the link restores them.

Windows of 64 bytes are sampled by their content; a window that is sampled again is compared, and extended to all equal
bytes around it (Spring and Wetherall, SIGCOMM 2000; Anand et al., SIGCOMM 2008). The fingerprint is a gear hash (Xia et
al., USENIX ATC 2016). An encoded payload is a header, regions that are copied from earlier payloads, and the bytes
between them.
"""

import random
import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tests.reference.nfs.headers import (
    INSIDE,
    OUTSIDE,
    TCP,
    Headers,
    read_headers,
    refresh_l4_checksum,
    with_header_fields,
    word_at,
)
from tests.reference.nfs.lb import MASK, SipHash, split_mix
from tests.reference.nfs.model import Bounds, Contract, FirstRun, FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent, mixed_frames

MAGIC = b"DDUP"
HEADER = struct.Struct("!4sBBHQ")
REGION = struct.Struct("!QHHH")
LEAST, MOST, MOST_REGIONS = 64, 2048, 16  # bytes of a payload that is kept, and regions of an encoded one
BUFFER = 2048  # bytes of a frame that fit a buffer of the function in C
WINDOW, SAMPLE_BITS, SPACING = 64, 4, 16  # bytes of a window, of which one of 16 is sampled, and between samples
PLACES_PER_PAYLOAD, TAG_BITS = 32, 16
MOST_BACK = 1 << 24  # most bytes that a TCP sender goes back; farther back is another connection with the same ports


class Region(NamedTuple):
    """Bytes of an earlier payload, known by its hash, that stand at an offset of the original."""

    source: int
    offset: int
    length: int
    at: int


def payload_of(frame: bytes, headers: Headers) -> bytes | None:
    """The payload of a whole datagram of UDP or TCP; None for others."""
    whole = headers.kind == "ipv4" and headers.has_ports and not headers.fragment
    return frame[headers.payload : headers.end] if whole else None


def is_restorable(frame: bytes, headers: Headers) -> bool:
    """Whether lengths and checksums can be restored after their change."""
    if word_at(frame, headers.l3 + 10) == 0xFFFF:
        return False
    if headers.protocol == TCP:
        return word_at(frame, headers.l4 + 16) != 0xFFFF
    return word_at(frame, headers.l4 + 4) == headers.end - headers.l4


def with_payload(frame: bytes, headers: Headers, payload: bytes) -> bytes:
    """A frame with another payload of UDP or TCP, and lengths and checksums changed accordingly."""
    l3, l4 = headers.l3, headers.l4
    total = (headers.payload - l3 + len(payload)).to_bytes(2, "big")
    made = bytearray(with_header_fields(frame[: headers.payload], l3, {2: total}) + payload)
    lengths = (headers.end - l4).to_bytes(2, "big"), (len(made) - l4).to_bytes(2, "big")
    before, after = lengths[0] + frame[headers.payload : headers.end], lengths[1] + payload
    if headers.protocol != TCP:
        before, after = frame[l4 + 4 : l4 + 6] + before, lengths[1] + after
        made[l4 + 4 : l4 + 6] = lengths[1]
    refresh_l4_checksum(made, l4, headers.protocol, before, after)
    return bytes(made)


def encode(payload: bytes, regions: Sequence[Region], key: int) -> bytes:
    """A payload with regions in order, its hash being `key`."""
    literal, done = b"", 0
    for region in regions:
        literal += payload[done : region.at]
        done = region.at + region.length
    packed = b"".join(REGION.pack(*region) for region in regions)
    return HEADER.pack(MAGIC, len(regions), 0, len(payload), key) + packed + literal + payload[done:]


def decode(data: bytes, get: Callable[[int], bytes | None], siphash: SipHash) -> bytes | str:
    """The original of an encoded payload, or why there is none: `lost` or `damaged`."""
    if len(data) < HEADER.size:
        return "damaged"
    _, n, version, length, key = HEADER.unpack_from(data)
    if version or n > MOST_REGIONS or not 0 < length <= MOST or len(data) < HEADER.size + n * REGION.size:
        return "damaged"
    literal, made = data[HEADER.size + n * REGION.size :], b""
    for i in range(n):
        region = Region(*REGION.unpack_from(data, HEADER.size + i * REGION.size))
        between = region.at - len(made)
        if between < 0 or between > len(literal) or region.at + region.length > length:
            return "damaged"
        made, literal = made + literal[:between], literal[between:]
        source = get(region.source)
        if source is None:
            return "lost"
        if region.offset + region.length > len(source):
            return "damaged"
        made += source[region.offset : region.offset + region.length]
    made += literal
    return made if len(made) == length and siphash(made) == key else "damaged"


class ReceivedPayloads:
    """The last payloads of a direction, known by their hash."""

    def __init__(self, size: int, siphash: SipHash) -> None:
        self.size, self.siphash = size, siphash
        self.newest = 0
        self.order: deque[tuple[int, int]] = deque()
        self.payloads: dict[int, tuple[int, bytes]] = {}

    def store(self, payload: bytes) -> int:
        """Store a payload in place of the oldest one; returns its hash."""
        key = self.siphash(payload)
        if len(self.order) == self.size:
            number, old = self.order.popleft()
            if self.payloads[old][0] == number:
                del self.payloads[old]
        self.newest += 1
        self.order.append((self.newest, key))
        self.payloads[key] = (self.newest, payload)
        return key

    def get(self, key: int) -> bytes | None:
        """A payload by its hash; None if it is not among the last ones."""
        found = self.payloads.get(key)
        return None if found is None else found[1]


class SentPayload(NamedTuple):
    """A payload that was sent.

    `generation` is 0 if it was sent whole, else one more than that of what it was encoded from.
    """

    data: bytes
    hash: int
    generation: int


class EncodingPlan(NamedTuple):
    """How a payload can be encoded; `samples` are fingerprints of windows, with the offset of the last byte."""

    hash: int
    regions: list[Region]
    samples: list[tuple[int, int]]
    generation: int = 0

    def saved(self) -> int:
        """Bytes by which the regions make an encoded payload shorter."""
        return sum(region.length - REGION.size for region in self.regions)


class PayloadEncoder:
    """Finds bytes of payloads that were sent before, of which the last ones are kept; `size` is a power of two."""

    def __init__(self, size: int, seed: int, depth: int) -> None:
        self.siphash = SipHash(seed)
        self.size, self.depth = size, depth
        self.gear = split_mix(seed, 258)[2:]
        self.gear[0] = -(self.gear[0] >> SAMPLE_BITS) & MASK  # zeros are frequent: their window is sampled
        self.shift = 64 - (size * PLACES_PER_PAYLOAD).bit_length() + 1
        self.places: dict[int, tuple[int, int, int]] = {}
        self.sent: dict[int, SentPayload] = {}
        self.newest = 0

    def plan(self, payload: bytes, whole: bool) -> EncodingPlan:
        """The regions of a payload; none if it is too short or too long to be kept, or is to be sent whole."""
        key = self.siphash(payload)
        if not LEAST <= len(payload) <= MOST:
            return EncodingPlan(key, [], [])
        samples, regions, generation, done = self.sample(payload), list[Region](), 0, 0
        for fingerprint, end in samples if not whole else ():
            found = self.find_source(payload, fingerprint, end) if end - (WINDOW - 1) >= done else None
            if found is None:
                continue
            regions.append(extend(*found, payload, end, done))
            generation = max(generation, found[0].generation + 1)
            done = regions[-1].at + regions[-1].length
            if len(regions) == MOST_REGIONS:
                break
        return EncodingPlan(key, regions, samples, generation)

    def store(self, payload: bytes, plan: EncodingPlan, encoded: bool) -> None:
        """Keep a payload that was sent, in place of the oldest one."""
        self.newest += 1
        self.sent[self.newest] = SentPayload(payload, plan.hash, plan.generation if encoded else 0)
        self.sent.pop(self.newest - self.size, None)
        for fingerprint, end in plan.samples:
            place, tag = self.place(fingerprint)
            self.places[place] = self.newest, end, tag

    def sample(self, payload: bytes) -> list[tuple[int, int]]:
        """Fingerprints of the windows whose first bits are zeros, each with the offset of the window's last byte."""
        gear, found = self.gear, list[tuple[int, int]]()
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

    def place(self, fingerprint: int) -> tuple[int, int]:
        """Where a fingerprint is noted, and the part of it that is noted."""
        upper = fingerprint << SAMPLE_BITS & MASK
        return upper >> self.shift, (upper << (64 - self.shift) & MASK) >> (64 - TAG_BITS)

    def find_source(self, payload: bytes, fingerprint: int, end: int) -> tuple[SentPayload, int] | None:
        """An earlier payload with the same window, and the offset of its last byte there."""
        place, tag = self.place(fingerprint)
        number, source_end, found_tag = self.places.get(place, (0, 0, -1))
        source = self.sent.get(number)
        if found_tag != tag or source is None or source.generation >= self.depth or source_end >= len(source.data):
            return None
        same = source.data[source_end - (WINDOW - 1) : source_end + 1] == payload[end - (WINDOW - 1) : end + 1]
        return (source, source_end) if same else None


def extend(source: SentPayload, source_end: int, payload: bytes, end: int, least: int) -> Region:
    """All equal bytes around a window, from `least` on."""
    begin, offset = end - (WINDOW - 1), source_end - (WINDOW - 1)
    while begin > least and offset > 0 and payload[begin - 1] == source.data[offset - 1]:
        begin, offset = begin - 1, offset - 1
    end, source_end = end + 1, source_end + 1
    while end < len(payload) and source_end < len(source.data) and payload[end] == source.data[source_end]:
        end, source_end = end + 1, source_end + 1
    return Region(source.hash, offset, end - begin, begin)


def repeated_payload(rng: random.Random, texts: Sequence[bytes]) -> bytes:
    """Parts of texts between other bytes; now and then zeros, or what looks encoded."""
    chance = rng.random()
    if chance < 0.1:
        return bytes(rng.randrange(400))
    if chance < 0.15:
        return MAGIC + rng.randbytes(rng.randrange(1800))
    made = rng.randbytes(rng.randrange(60))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        text = rng.choice(texts)
        at = rng.randrange(len(text))
        made += text[at : at + rng.randrange(20, 700)] + rng.randbytes(rng.randrange(30))
    return made[:1900]


class CarelessEncoder:
    """An encoder for the side to restore: it builds payloads from any parts of earlier ones, and errs."""

    def __init__(self, rng: random.Random, received: ReceivedPayloads) -> None:
        self.rng, self.received, self.keys = rng, received, list[int]()

    def make_payload(self) -> tuple[bytes, list[Region]]:
        """A payload and regions that it is known to have."""
        rng, regions = self.rng, list[Region]()
        payload = rng.randbytes(rng.randrange(40))
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            key = rng.choice(self.keys[-60:]) if self.keys else 0
            source = self.received.get(key)
            if source is None:
                continue
            offset = rng.randrange(len(source) - 30)
            length = rng.randrange(20, min(400, len(source) - offset) + 1)
            regions.append(Region(key, offset, length, len(payload)))
            payload += source[offset : offset + length] + rng.randbytes(rng.randrange(60))
        if not regions:
            payload = (MAGIC if rng.random() < 0.05 else b"") + rng.randbytes(rng.randrange(20, 500))
        return payload, regions

    def encode(self, frame: bytes, headers: Headers) -> bytes:
        """A frame with a payload as an encoder sends it, now and then damaged, lost, or not encoded at all."""
        rng = self.rng
        payload, regions = self.make_payload()
        original = with_payload(frame, headers, payload)
        chance = rng.random()
        if not LEAST <= len(payload) <= MOST or not is_restorable(original, read_headers(original)):
            return original
        if not regions and not payload.startswith(MAGIC):
            self.keys.append(self.received.store(payload))
            return original
        data = encode(payload, regions, self.received.siphash(payload))
        if chance < 0.05:
            at = rng.randrange(4, len(data))
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        elif chance < 0.08:
            data = data[: rng.randrange(4, len(data))]
        elif chance > 0.02:
            self.keys.append(self.received.store(payload))
        return with_payload(original, read_headers(original), data)


class DedupModel(FunctionModel):
    """One direction is encoded, the other restored. Both ends name payloads by SipHash, with a key from the seed.

    A payload is encoded if that makes it shorter, or if it would be taken for an encoded one. A TCP segment that is
    sent again is sent whole: its receiver may lack what it refers to.
    """

    nf = "Dedup"
    variants = ({"packets": "1024", "depth": "3"}, {"packets": "256", "restore": "1", "seed": "99"})
    keeps_order = True
    contract = Contract.DEDUP

    def prepare(self) -> None:
        self.size = 1 << (self.number("packets", 4096) - 1).bit_length()
        self.encoded_side = OUTSIDE if self.number("restore", 0) else INSIDE
        self.encoder = PayloadEncoder(self.size, self.number("seed", 1), self.number("depth", 8))
        self.siphash = self.encoder.siphash
        self.received = ReceivedPayloads(self.size, self.siphash)
        self.streams: dict[int, tuple[bytes, int]] = {}
        self.given: dict[int, bytes] = {}

    def mix(self) -> Mix:
        rng = random.Random(5)
        texts = [rng.randbytes(rng.randrange(100, 1200)) for _ in range(400)]
        return Mix(
            flows=5000, outside=0.4, payload=lambda own: repeated_payload(own, texts), protocols=(TCP, 17, 17, 1)
        )

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        """Frames to restore come from an encoder of our own; some segments to encode are sent twice."""
        rng = random.Random(seed)
        encoder = CarelessEncoder(rng, ReceivedPayloads(self.size, self.siphash))
        done = 0
        for sent in mixed_frames(seed, n, self.mix()):
            headers, frame, again = read_headers(sent.frame), sent.frame, 1
            if sent.side != self.encoded_side and payload_of(frame, headers) and len(frame) == headers.end:
                frame = encoder.encode(frame, headers)
            elif headers.protocol == TCP and rng.random() < 0.03:
                again = 2
            for _ in range(min(again, n - done)):
                yield Sent(sent.time_us, sent.side, frame)
                done += 1

    def take(self, sent: Sent) -> Left:
        frame, headers = sent.frame, read_headers(sent.frame)
        if headers.kind == "malformed":
            return self.drop("malformed")
        payload = payload_of(frame, headers)
        encodes = sent.side == self.encoded_side
        magic = payload is not None and payload.startswith(MAGIC)
        fits = payload is not None and len(payload) <= MOST and is_restorable(frame, headers)
        if magic and not fits:
            return self.drop("unencodable" if encodes else "damaged")
        if payload is None or not (magic or (fits and len(payload) >= LEAST)):
            self.counted["passed"] += 1
            return [frame], []
        made = self.send(frame, headers, payload) if encodes else self.receive(frame, headers, payload)
        return [] if made is None else [made], []

    def process(self, frame: bytes, time_us: int) -> list[bytes]:
        payload = payload_of(frame, read_headers(frame))
        if payload:
            self.given[self.siphash(payload)] = payload
        return super().process(frame, time_us)

    def send(self, frame: bytes, headers: Headers, payload: bytes) -> bytes | None:
        """Encode a frame if that is worth it or must be."""
        again = headers.protocol == TCP and self.is_sent_again(frame, headers, len(payload))
        plan, escapes = self.encoder.plan(payload, again), payload.startswith(MAGIC)
        length = HEADER.size + len(payload) - plan.saved()
        made = headers.payload + length <= BUFFER and (escapes or length < len(payload))
        if escapes and not made:
            self.counted["unbuffered"] += 1
            return None
        if len(payload) >= LEAST:
            self.encoder.store(payload, plan, made)
        self.counted["bytes_in"] += len(payload)
        self.counted["bytes_out"] += length if made else len(payload)
        self.counted["encoded" if made else "retransmitted" if again else "unmatched"] += 1
        self.counted["regions"] += len(plan.regions) * made
        return with_payload(frame, headers, encode(payload, plan.regions, plan.hash)) if made else frame

    def is_sent_again(self, frame: bytes, headers: Headers, length: int) -> bool:
        """Whether a TCP segment begins before the end of what was sent."""
        flow = bytes((0, TCP, 0, 0)) + frame[headers.l3 + 12 : headers.l3 + 20] + frame[headers.l4 : headers.l4 + 4]
        place = self.siphash(flow) & self.size - 1
        sequence = int.from_bytes(frame[headers.l4 + 4 : headers.l4 + 8], "big")
        end = sequence + length & 0xFFFFFFFF
        known, following = self.streams.get(place, (bytes(12), 0))
        if known != flow or following - sequence - 1 & 0xFFFFFFFF >= MOST_BACK:
            self.streams[place] = flow, end
            return False
        if following - end - 1 & 0xFFFFFFFF >= MOST_BACK:
            self.streams[place] = flow, end
        return True

    def receive(self, frame: bytes, headers: Headers, payload: bytes) -> bytes | None:
        """Restore an encoded frame; others are received whole."""
        magic = payload.startswith(MAGIC)
        original = decode(payload, self.received.get, self.siphash) if magic else payload
        if isinstance(original, str):
            self.counted[original] += 1
            return None
        self.counted["restored" if magic else "whole"] += 1
        if len(original) >= LEAST:
            self.received.store(original)
        return with_payload(frame, headers, original) if magic else frame

    def restore_sent(self, frame: bytes) -> bytes:
        """A frame with its payload as a chain gave it, whatever the order; unchanged if it was not encoded here."""
        headers = read_headers(frame)
        data = payload_of(frame, headers) or b""
        original = decode(data, self.given.get, self.siphash) if data.startswith(MAGIC) else "whole"
        return frame if isinstance(original, str) else with_payload(frame, headers, original)

    def counters(self) -> dict[str, int | Bounds]:
        return {"unbuffered": 0, **self.counted}
