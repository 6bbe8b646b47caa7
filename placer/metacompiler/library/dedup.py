"""Dedup: replaces payload bytes that were sent before by references; the other end of the link restores them."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from placer.metacompiler.library.dedup_encoder import (
    HEADER,
    LEAST,
    MAGIC,
    MOST,
    REGION,
    PayloadEncoder,
    encoded_payload,
)
from placer.metacompiler.library.headers import (
    TCP,
    UDP,
    FrameType,
    Headers,
    address_at,
    checksum_changed,
    read_headers,
    word_at,
)
from placer.metacompiler.library.nf_model import NF_KINDS, Contract, FrameModel, NoData
from placer.metacompiler.library.rewriting import CHECKSUMS, IP_CHECKSUM
from placer.metacompiler.library.siphash import siphash

PAYLOADS, SEED, DEPTH = 4096, 1, 8
"""The cache of a link: settings of the function in C that chains do not change."""
LONGEST = 2048
"""Bytes of a frame that fit a buffer of the function in C."""
MOST_BACK = 1 << 24
"""Most bytes that a TCP sender goes back; farther back is another connection with the same ports."""
DOUBLE_WORD = 0xFFFFFFFF


class DedupModel:
    """What the Dedup does to frames. `payloads` has what it was given, by the hash that references name."""

    def __init__(self) -> None:
        self._encoder = PayloadEncoder(PAYLOADS, SEED, DEPTH)
        self._streams: dict[int, tuple[bytes, int]] = {}
        self.payloads: dict[int, bytes] = {}

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        headers = read_headers(packet)
        if headers.type is FrameType.MALFORMED:
            return []
        payload = carried_payload(packet, headers)
        if payload is None:
            return [packet]
        escapes = payload.startswith(MAGIC)
        if len(payload) > MOST or not _is_restorable(packet, headers):
            return [] if escapes else [packet]
        return self._encoded(packet, headers, payload, escapes) if escapes or len(payload) >= LEAST else [packet]

    def _encoded(self, packet: bytes, headers: Headers, payload: bytes, escapes: bool) -> list[bytes]:
        """Encode a payload if that makes it shorter, or it would be taken for an encoded one."""
        again = headers.protocol == TCP and self._is_sent_again(packet, headers, len(payload))
        plan = self._encoder.plan(payload, again)
        self.payloads[plan.hash] = payload
        length = HEADER.size + len(payload) - plan.saved()
        fits = headers.payload + length <= LONGEST
        made = fits and (escapes or length < len(payload))
        if escapes and not made:
            return []
        if len(payload) >= LEAST:
            self._encoder.store(payload, plan, made)
        return [with_payload(packet, headers, encoded_payload(payload, plan))] if made else [packet]

    def _is_sent_again(self, packet: bytes, headers: Headers, length: int) -> bool:
        """Whether a TCP segment begins before the end of what was sent."""
        addresses = packet[headers.l3 + 12 : headers.l3 + 20]
        flow = bytes((0, TCP, 0, 0)) + addresses + packet[headers.l4 : headers.l4 + 4]
        place = siphash(self._encoder.key, flow) & PAYLOADS - 1
        sequence = address_at(packet, headers.l4 + 4)
        end = sequence + length & DOUBLE_WORD
        known, following = self._streams.get(place, (b"", 0))
        if known != flow or following - sequence - 1 & DOUBLE_WORD >= MOST_BACK:
            self._streams[place] = flow, end
            return False
        if following - end - 1 & DOUBLE_WORD >= MOST_BACK:
            self._streams[place] = flow, end
        return True

    def restored(self, packet: bytes) -> bytes:
        """A frame with its payload as it was given; unchanged if it is not encoded, or not by this instance."""
        headers = read_headers(packet)
        data = carried_payload(packet, headers) or b""
        if len(data) < HEADER.size or not data.startswith(MAGIC):
            return packet
        _, regions, _, length, key = HEADER.unpack_from(data)
        literal, made = data[HEADER.size + regions * REGION.size :], b""
        for at in range(regions):
            try:
                source, offset, n, begin = REGION.unpack_from(data, HEADER.size + at * REGION.size)
            except struct.error:
                return packet
            between = max(begin - len(made), 0)
            made, literal = made + literal[:between], literal[between:]
            made += self.payloads.get(source, b"")[offset : offset + n]
        made += literal
        if len(made) != length or siphash(self._encoder.key, made) != key:
            return packet
        return with_payload(packet, headers, made)


def carried_payload(packet: bytes, headers: Headers) -> bytes | None:
    """The payload of a whole datagram of UDP or TCP; None for others."""
    if headers.type is not FrameType.IPV4 or not headers.has_ports or headers.fragment:
        return None
    return packet[headers.payload : headers.end]


def _is_restorable(packet: bytes, headers: Headers) -> bool:
    """Whether lengths and checksums can be restored after their change."""
    if word_at(packet, headers.l3 + IP_CHECKSUM) == 0xFFFF:
        return False
    if headers.protocol == UDP:
        return word_at(packet, headers.l4 + 4) == headers.end - headers.l4
    return word_at(packet, headers.l4 + CHECKSUMS[TCP]) != 0xFFFF


def with_payload(packet: bytes, headers: Headers, payload: bytes) -> bytes:
    """A frame with another payload of UDP or TCP; lengths and checksums change by their difference."""
    l3, l4 = headers.l3, headers.l4
    made = bytearray(packet[: headers.payload] + payload)
    total = (len(made) - l3).to_bytes(2, "big")
    value = checksum_changed(word_at(packet, l3 + IP_CHECKSUM), packet[l3 + 2 : l3 + 4], total)
    made[l3 + 2 : l3 + 4], made[l3 + IP_CHECKSUM : l3 + IP_CHECKSUM + 2] = total, value.to_bytes(2, "big")
    lengths = (headers.end - l4).to_bytes(2, "big"), (len(made) - l4).to_bytes(2, "big")
    old = packet[headers.payload : headers.end]
    before, after = old + bytes(len(old) % 2) + lengths[0], payload + bytes(len(payload) % 2) + lengths[1]
    at = l4 + CHECKSUMS[headers.protocol]
    was = word_at(packet, at)
    if headers.protocol == UDP:
        before, after = before + packet[l4 + 4 : l4 + 6], after + lengths[1]
        made[l4 + 4 : l4 + 6] = lengths[1]
    most = max(len(before), len(after))
    now = checksum_changed(was, before.ljust(most, b"\0"), after.ljust(most, b"\0"))
    if headers.protocol == UDP:
        now = (now or 0xFFFF) if was else 0
    made[at : at + 2] = now.to_bytes(2, "big")
    return bytes(made)


class DedupNf(NoData):
    """Redundancy elimination."""

    name = "Dedup"
    platforms = frozenset(("server",))

    def contract(self, parameters: Mapping[str, float]) -> Contract:
        return Contract.DEDUP

    def model(self, parameters: Mapping[str, float], data: None) -> FrameModel:
        return DedupModel()


NF_KINDS.register(DedupNf.name)(DedupNf())
