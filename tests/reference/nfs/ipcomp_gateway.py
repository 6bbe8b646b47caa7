"""IPCompGateway: compresses the payload of IPv4 (IPComp, RFC 3173, by DEFLATE, RFC 2394)."""

import random
import zlib

from tests.reference.nfs.headers import Headers, read_headers, with_content
from tests.reference.nfs.model import Bounds
from tests.reference.nfs.scans import BUFFER, ScanModel, scan_payload
from tests.reference.nfs.traffic import Mix, Sent

IPCOMP, HEADER, DEFLATE_CPI = 108, 4, 2
MOST = 2048
SLACK = 16  # bytes by which compressors may differ about whether a payload shrinks


def text_payload(rng: random.Random) -> bytes:
    """Half of the payloads have repetitions."""
    payload = scan_payload(rng)
    if rng.random() < 0.5:
        return payload
    return (rng.choice((b"abcdefgh", b"some words, again ", payload[:20] or b"x")) * 80)[: rng.randrange(1, 1300)]


def inflate(data: bytes) -> bytes | None:
    """What a DEFLATE stream has (RFC 1951); None if it does not end where the bytes end."""
    stream = zlib.decompressobj(-15)
    try:
        made = stream.decompress(data)
    except zlib.error:
        return None
    return made if stream.eof and not stream.unused_data else None


def shrunk_bytes(data: bytes) -> int:
    """The length that zlib's fastest level makes of bytes."""
    stream = zlib.compressobj(1, zlib.DEFLATED, -15)
    return len(stream.compress(data) + stream.flush())


class IpcompGatewayModel(ScanModel):
    """A compressed packet has another length and protocol, and decompresses to the payload that came in.

    The compressor's bytes are its free choice, and so is, within a few bytes, whether a payload shrinks.
    """

    nf = "IPCompGateway"
    variants = ({}, {"least_bytes": "500"})

    def mix(self) -> Mix:
        return Mix(flows=20000, payload=text_payload)

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
            headers = read_headers(sent.frame)
            if headers.kind != "ipv4" and not self.passes(headers.kind):
                continue
            got = next(rest, b"")
            why = self.fault(sent.frame, headers, got)
            if why:
                wrong.append(f"{why}: {sent.frame.hex()} left as {got.hex()}")
        return wrong + [f"not expected {frame.hex()}" for frame in [*rest, *ends[1 - burst[0].side]]]

    def fault(self, frame: bytes, headers: Headers, got: bytes) -> str | None:
        """What is wrong with what became of a frame."""
        if headers.kind != "ipv4":
            return None if got == frame else "changed"
        self.scan(frame, headers)
        if headers.payload in (0, headers.end) or not self.is_worth_it(frame, headers):
            self.counted["skipped"] += headers.payload not in (0, headers.end)
            return None if got == frame else "changed"
        content = frame[headers.l4 : headers.end]
        if len(got) < headers.l4 + HEADER:
            return "missing"
        if got == frame:
            self.counted["unshrunk"] += 1
            return None if shrunk_bytes(content) + HEADER + SLACK >= len(content) else "not compressed"
        self.counted["compressed"] += 1
        self.counted["bytes_in"] += len(content)
        self.counted["bytes_out"] += len(got) - headers.l4
        return self.compression_fault(frame, headers, content, got)

    def compression_fault(self, frame: bytes, headers: Headers, content: bytes, got: bytes) -> str | None:
        """What is wrong with a compressed packet."""
        made = got[headers.l4 :]
        if got != with_content(frame, headers, IPCOMP, made):
            return "another IPv4 header"
        if made[:HEADER] != bytes([headers.protocol, 0, 0, DEFLATE_CPI]):
            return "another IPComp header"
        if len(made) >= len(content):
            return "not shorter"
        return None if inflate(made[HEADER:]) == content else "not the payload"

    def counters(self) -> dict[str, int | Bounds]:
        return {**super().counters(), "unbuffered": 0}
