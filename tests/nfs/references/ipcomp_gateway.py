"""IPCompGateway: compresses the payload of IPv4 (IPComp, RFC 3173, by DEFLATE, RFC 2394)."""

from __future__ import annotations

import random
import zlib

from tests.nfs.references.headers import Headers, read, updated
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.scans import BUFFER, Scan, scan_mix, scan_payload
from tests.nfs.references.traffic import Mix, Sent

IPCOMP, HEADER, DEFLATE_CPI = 108, 4, 2
MOST = 2048
SLACK = 16
"""Bytes by which compressors may differ about whether a payload shrinks."""


def text_payload(rng: random.Random) -> bytes:
    """Half of the payloads have repetitions."""
    payload = scan_payload(rng)
    if rng.random() < 0.5:
        return payload
    return (rng.choice((b"abcdefgh", b"some words, again ", payload[:20] or b"x")) * 80)[: rng.randrange(1, 1300)]


def inflated(data: bytes) -> bytes | None:
    """What a DEFLATE stream has (RFC 1951); None if it does not end where the bytes end."""
    stream = zlib.decompressobj(-15)
    try:
        made = stream.decompress(data)
    except zlib.error:
        return None
    return made if stream.eof and not stream.unused_data else None


def shrunk(data: bytes) -> int:
    """The length that zlib's fastest level makes of bytes."""
    stream = zlib.compressobj(1, zlib.DEFLATED, -15)
    return len(stream.compress(data) + stream.flush())


class IpcompGatewayReference(Reference):
    """A compressed packet has another length and protocol, and decompresses to the payload that came in.

    The compressor's bytes are its free choice, and so is, within a few bytes, whether a payload shrinks.
    """

    nf = "IPCompGateway"
    variants = ({}, {"least_bytes": "500"})

    def prepare(self) -> None:
        self.scan = Scan()

    def mix(self) -> Mix:
        mix = scan_mix()
        mix.payload = text_payload
        return mix

    def is_worth_it(self, frame: bytes, headers: Headers) -> bool:
        """Whether compression is tried: not of fragments, small packets, or those beyond one buffer."""
        length = headers.end - headers.l4
        least = self.number("least_bytes", 90)
        return not headers.fragment and len(frame) <= BUFFER and least <= length <= MOST

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        """Packets leave in their order."""
        ends = (out, back)
        wrong, rest = [], iter(ends[burst[0].side])
        for sent in burst:
            headers = read(sent.frame)
            if headers.kind == "malformed":
                self.scan.counted["malformed"] += 1
                continue
            got = next(rest, b"")
            why = self.fault(sent.frame, headers, got)
            if why:
                wrong.append(f"{why}: {sent.frame.hex()} left as {got.hex()}")
        return wrong + [f"not expected {frame.hex()}" for frame in [*rest, *ends[1 - burst[0].side]]]

    def fault(self, frame: bytes, headers: Headers, got: bytes) -> str | None:
        """What is wrong with what became of a frame."""
        if headers.kind != "ipv4":
            self.scan.counted["other"] += 1
            return None if got == frame else "changed"
        self.scan.payload(frame, headers)
        if headers.payload in (0, headers.end) or not self.is_worth_it(frame, headers):
            self.counted["skipped"] += headers.payload not in (0, headers.end)
            return None if got == frame else "changed"
        content = frame[headers.l4 : headers.end]
        if len(got) < headers.l4 + HEADER:
            return "missing"
        if got == frame:
            self.counted["unshrunk"] += 1
            return None if shrunk(content) + HEADER + SLACK >= len(content) else "not compressed"
        self.counted["compressed"] += 1
        self.counted["bytes_in"] += len(content)
        self.counted["bytes_out"] += len(got) - headers.l4
        return self.compression_fault(frame, headers, content, got)

    def compression_fault(self, frame: bytes, headers: Headers, content: bytes, got: bytes) -> str | None:
        """What is wrong with a compressed packet."""
        l3, l4 = headers.l3, headers.l4
        total = (len(got) - l3).to_bytes(2, "big")
        checksum = int.from_bytes(frame[l3 + 10 : l3 + 12], "big")
        words = frame[l3 + 2 : l3 + 4] + frame[l3 + 8 : l3 + 10]
        checksum = updated(checksum, words, total + frame[l3 + 8 : l3 + 9] + bytes([IPCOMP]))
        header = frame[: l3 + 2] + total + frame[l3 + 4 : l3 + 9] + bytes([IPCOMP]) + checksum.to_bytes(2, "big")
        if got[:l4] != header + frame[l3 + 12 : l4]:
            return "another IPv4 header"
        if got[l4 : l4 + HEADER] != bytes([headers.protocol, 0, 0, DEFLATE_CPI]):
            return "another IPComp header"
        if len(got) - l4 >= len(content):
            return "not shorter"
        return None if inflated(got[l4 + HEADER :]) == content else "not the payload"

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, **self.scan.counted, "failed": 0, "unbuffered": 0}
