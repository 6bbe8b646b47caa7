"""Headers of frames, read and written by the RFCs alone: 802.1Q, RFC 791, 768, 793 and 792."""

from __future__ import annotations

import struct
from dataclasses import dataclass

ETHERNET = 14
TAGS = (0x8100, 0x88A8)
IPV4, IPV6 = 0x0800, 0x86DD
ICMP, TCP, UDP = 1, 6, 17
INSIDE, OUTSIDE = 0, 1

MORE_FRAGMENTS, DONT_FRAGMENT, OFFSET = 0x2000, 0x4000, 0x1FFF
FIN, SYN, RST, ACK = 1, 2, 4, 16

ICMP_ERRORS = frozenset({3, 4, 5, 11, 12})
"""Types of ICMP errors, about which no error may be sent (RFC 1122, section 3.2.2)."""


@dataclass(slots=True)
class Headers:
    """Where the headers of a frame are; offsets from its beginning, 0 where there is none."""

    kind: str
    """`ipv4`, `ipv6`, `other`, or `malformed`: shorter than its headers say, or with invalid ones."""
    l3: int = 0
    """Set for a malformed frame, too, if its IPv4 header is valid and only what follows is not."""
    l4: int = 0
    payload: int = 0
    end: int = 0
    """Behind the datagram; padding of the frame may follow."""
    protocol: int = 0
    fragment: bool = False
    later: bool = False
    """A fragment other than the first one, without ports."""

    @property
    def has_ipv4(self) -> bool:
        """Whether the IPv4 header is valid."""
        return self.kind == "ipv4" or (self.kind == "malformed" and self.l3 != 0)


MALFORMED = Headers("malformed")


def read(frame: bytes) -> Headers:
    """The headers of a frame behind up to two VLAN tags."""
    if len(frame) < ETHERNET:
        return MALFORMED
    at, kind = ETHERNET, frame[12] << 8 | frame[13]
    for _ in range(2):
        if kind not in TAGS:
            break
        if len(frame) < at + 4:
            return MALFORMED
        kind = frame[at + 2] << 8 | frame[at + 3]
        at += 4
    if kind == IPV4:
        return read_ipv4(frame, at)
    return Headers("ipv6" if kind == IPV6 else "other", at)


def read_ipv4(frame: bytes, l3: int) -> Headers:
    """The headers of an IPv4 datagram at `l3`."""
    here = len(frame) - l3
    if here < 20 or frame[l3] >> 4 != 4:
        return MALFORMED
    length = (frame[l3] & 15) * 4
    total = frame[l3 + 2] << 8 | frame[l3 + 3]
    if length < 20 or total < length or total > here:
        return MALFORMED
    flags = frame[l3 + 6] << 8 | frame[l3 + 7]
    protocol, l4, end = frame[l3 + 9], l3 + length, l3 + total
    fragment, later = flags & (MORE_FRAGMENTS | OFFSET) != 0, flags & OFFSET != 0
    if later or protocol not in (TCP, UDP, ICMP):
        return Headers("ipv4", l3, 0, 0, end, protocol, fragment, later)
    needed = 8
    if protocol == TCP:
        needed = max(20, (frame[l4 + 12] >> 4) * 4) if end >= l4 + 20 else 20
        if end >= l4 + 20 and frame[l4 + 12] >> 4 < 5:
            needed = 1 << 16
    if l4 + needed > end:
        return Headers("malformed", l3, 0, 0, end, protocol, fragment, later)
    return Headers("ipv4", l3, l4, l4 + needed, end, protocol, fragment, later)


def ones_sum(data: bytes) -> int:
    """The ones' complement sum of the 16-bit words (RFC 1071): 0 only if all bytes are."""
    number = int.from_bytes(data if len(data) % 2 == 0 else data + b"\0", "big")
    return (number - 1) % 0xFFFF + 1 if number else 0


def internet_checksum(data: bytes) -> int:
    """The Internet checksum of bytes whose checksum field is 0, or 0 over those with a right one."""
    return ones_sum(data) ^ 0xFFFF


def updated(checksum: int, before: bytes, after: bytes) -> int:
    """A checksum after some of the covered words changed: HC' = ~(~HC + ~m + m') (RFC 1624, equation 3)."""
    inverted = bytes(byte ^ 0xFF for byte in before)
    return ones_sum((checksum ^ 0xFFFF).to_bytes(2, "big") + inverted + after) ^ 0xFFFF


def addresses(frame: bytes, headers: Headers) -> tuple[int, int]:
    """Source and destination of a datagram."""
    source, destination = struct.unpack_from("!II", frame, headers.l3 + 12)
    return source, destination


def ports(frame: bytes, headers: Headers) -> tuple[int, int]:
    """Source and destination port; zeros where there are none."""
    if headers.l4 == 0 or headers.protocol == ICMP:
        return 0, 0
    source, destination = struct.unpack_from("!HH", frame, headers.l4)
    return source, destination


def flow(frame: bytes, headers: Headers) -> tuple[int, int, int, int, int]:
    """Source, destination, protocol and ports of a datagram."""
    return *addresses(frame, headers), headers.protocol, *ports(frame, headers)


def header_is_right(frame: bytes, l3: int) -> bool:
    """Whether the checksum of an IPv4 header is right."""
    return ones_sum(frame[l3 : l3 + (frame[l3] & 15) * 4]) == 0xFFFF


def with_header_checksum(header: bytes) -> bytes:
    """An IPv4 header with its checksum computed anew."""
    blank = header[:10] + b"\0\0" + header[12:]
    return header[:10] + internet_checksum(blank).to_bytes(2, "big") + header[12:]


def ipv4_header(source: bytes, destination: bytes, protocol: int, length: int, **fields: int) -> bytes:
    """A header without options for `length` bytes; fields: tos, id, flags, ttl."""
    header = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        fields.get("tos", 0),
        20 + length,
        fields.get("id", 0),
        fields.get("flags", 0),
        fields.get("ttl", 64),
        protocol,
        0,
        source,
        destination,
    )
    return with_header_checksum(header)


def l4_checksum(source: bytes, destination: bytes, protocol: int, segment: bytes) -> int:
    """The checksum of UDP or TCP over the pseudo header and a segment whose field is 0."""
    return internet_checksum(source + destination + struct.pack("!BBH", 0, protocol, len(segment)) + segment)
