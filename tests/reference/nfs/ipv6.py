"""IPv6: headers of frames, read and written by the RFCs alone: RFC 8200, 6946, 7112 and 4443."""

import random
import struct

from tests.reference.nfs.headers import ICMP, MALFORMED, TCP, UDP, Headers, internet_checksum, read_headers, word_at

ICMPV6, NO_NEXT, AUTHENTICATION, FRAGMENT, HOP_BY_HOP = 58, 59, 51, 44, 0
BY_EIGHT = frozenset({HOP_BY_HOP, 43, 60, 135, 139, 140})
"""Extension headers whose length counts units of 8 bytes, without the first 8 (RFC 7045)."""
OPAQUE = frozenset({4, 41, 47, 50, 94, 97, 98, 108, 115, 137, 253, 254})
"""Protocols that carry packets, or bytes that only a receiver can read, so that filters of payloads cannot."""
MOST_EXTENSIONS = 16
LONGEST_DATAGRAM = 65535


def read_ip_headers(frame: bytes) -> Headers:
    """The headers of a frame, also those behind the extension headers of IPv6."""
    headers = read_headers(frame)
    return read_ipv6(frame, headers.l3) if headers.kind == "ipv6" else headers


def read_ipv6(frame: bytes, l3: int) -> Headers:
    """The headers of an IPv6 datagram at `l3`."""
    if len(frame) < l3 + 40 or frame[l3] >> 4 != 6 or len(frame) < l3 + 40 + word_at(frame, l3 + 4):
        return MALFORMED
    at, end = l3 + 40, l3 + 40 + word_at(frame, l3 + 4)
    chain: list[int] = []  # the headers so far
    protocol, fragment = frame[l3 + 6], 0
    while protocol in BY_EIGHT or protocol in (AUTHENTICATION, FRAGMENT):
        out_of_place = bool(chain) and protocol == HOP_BY_HOP
        if at + 8 > end or out_of_place or len(chain) == MOST_EXTENSIONS or FRAGMENT in {protocol} & set(chain):
            return MALFORMED
        chain.append(protocol)
        units = 0 if protocol == FRAGMENT else frame[at + 1]
        length = 4 * (units + 2) if protocol == AUTHENTICATION else 8 * (units + 1)
        if protocol == FRAGMENT:
            fragment = word_at(frame, at + 2)
            bytes_here = end - at - 8
            if (fragment & 1 and bytes_here % 8) or (fragment & 0xFFF8) + bytes_here > LONGEST_DATAGRAM:
                return MALFORMED
        protocol, at = frame[at], at + length
        if at > end:
            return MALFORMED
        if fragment & 0xFFF8:
            return Headers("ipv6", l3, 0, 0, end, protocol, fragment=True, later=True)
    if protocol not in (TCP, UDP, ICMPV6):
        return Headers("ipv6", l3, 0, 0, end, protocol, fragment & 1 == 1)
    if end - at < (20 if protocol == TCP else 8):
        return MALFORMED
    length = (frame[at + 12] >> 4) * 4 if protocol == TCP else 8
    if (protocol == TCP and length < 20) or at + length > end:
        return MALFORMED
    return Headers("ipv6", l3, at, at + length, end, protocol, fragment & 1 == 1)


def ipv6_header(source: bytes, destination: bytes, protocol: int, length: int, **fields: int) -> bytes:
    """A header for `length` bytes; fields: traffic (class), ttl."""
    first = 6 << 28 | fields.get("traffic", 0) << 20
    return struct.pack("!IHBB", first, length, protocol, fields.get("ttl", 64)) + source + destination


def ipv6_checksum(source: bytes, destination: bytes, protocol: int, segment: bytes) -> int:
    """The checksum over the pseudo header and a segment whose field is 0."""
    return internet_checksum(source + destination + struct.pack("!II", len(segment), protocol) + segment)


def protocol_in_ipv6(protocol: int) -> int:
    """The protocol that does in IPv6 what one does in IPv4."""
    return ICMPV6 if protocol == ICMP else protocol


def with_extensions(rng: random.Random, frame: bytes) -> list[bytes]:
    """With one to three extension headers before what follows the IPv6 header, mostly in an order that is allowed."""
    kinds = [kind for kind in (HOP_BY_HOP, 60, 43, FRAGMENT, AUTHENTICATION) if rng.random() < 0.4] or [60]
    if rng.random() < 0.1:
        rng.shuffle(kinds)
    following, extensions = frame[20], b""
    for kind in reversed(kinds):
        size = rng.randrange(3)
        body = bytes(6 + 8 * size)
        if kind == AUTHENTICATION:
            size, body = 4, bytes(22)
        if kind == FRAGMENT:  # a datagram in one fragment
            size, body = 0, bytes(2) + rng.randbytes(4)
        extensions = bytes([following, size]) + body + extensions
        following = kind
    behind = extensions + frame[54:]
    return [frame[:18] + len(behind).to_bytes(2, "big") + bytes([following]) + frame[21:54] + behind]


def ipv6_fragments(rng: random.Random, frame: bytes) -> list[bytes]:
    """In two to four fragments, in order or not."""
    segment, name = frame[54:], rng.randbytes(4)
    size = max(8, (len(segment) // rng.randrange(2, 4) + 7) // 8 * 8)
    made = []
    for at in range(0, len(segment), size):
        piece, more = segment[at : at + size], at + size < len(segment)
        behind = bytes([frame[20], 0]) + (at | more).to_bytes(2, "big") + name + piece
        made.append(frame[:18] + len(behind).to_bytes(2, "big") + bytes([FRAGMENT]) + frame[21:54] + behind)
    if rng.random() < 0.3:
        rng.shuffle(made)
    return made
