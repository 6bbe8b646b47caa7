"""Headers of frames, read and written by the RFCs alone: 802.1Q, RFC 791, 768, 793 and 792; the split hash of racks."""

import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass

INSIDE_MAC, OUTSIDE_MAC = bytes.fromhex("020000000010"), bytes.fromhex("020000000020")
ETHERNET = 14
TAGS = (0x8100, 0x88A8)
KINDS = {0x86DD: "ipv6", 0x0806: "arp"}
IPV4, IPV6 = 0x0800, 0x86DD
ICMP, TCP, UDP, SCTP = 1, 6, 17, 132
INSIDE, OUTSIDE = 0, 1

MORE_FRAGMENTS, DONT_FRAGMENT, OFFSET = 0x2000, 0x4000, 0x1FFF
FIN, SYN, RST, ACK, URG = 1, 2, 4, 16, 32

SOURCE, DESTINATION = 0, 1
CHECKSUM_AT = {TCP: 16, UDP: 6, ICMP: 2}

Flow = tuple[int, int, int, int, int]  # source, destination, protocol and ports
End = tuple[int, int]  # an address, and a port or the identifier of an ICMP query

ICMP_ERRORS = frozenset({3, 4, 5, 11, 12})
"""Types of ICMP errors, about which no error may be sent (RFC 1122, section 3.2.2)."""


@dataclass(slots=True)
class Headers:
    """Where the headers of a frame are; offsets from its beginning, 0 where there is none."""

    kind: str  # `ipv4`, `ipv6`, `arp`, `other`, or `malformed`: shorter than its headers say, or with invalid ones
    l3: int = 0  # set for a malformed frame, too, if its IPv4 header is valid and only what follows is not
    l4: int = 0
    payload: int = 0
    end: int = 0  # behind the datagram; padding of the frame may follow
    protocol: int = 0
    fragment: bool = False
    later: bool = False  # a fragment other than the first one, without ports

    @property
    def has_ipv4(self) -> bool:
        """Whether the IPv4 header is valid."""
        return self.kind == "ipv4" or (self.kind == "malformed" and self.l3 != 0)

    @property
    def has_ports(self) -> bool:
        """Whether it is UDP or TCP with its ports: also the first fragment of a datagram."""
        return self.l4 != 0 and self.protocol in (UDP, TCP)


MALFORMED = Headers("malformed")


def read_headers(frame: bytes) -> Headers:
    """The headers of a frame behind up to two VLAN tags."""
    if len(frame) < ETHERNET:
        return MALFORMED
    at, kind = ETHERNET, word_at(frame, 12)
    for _ in range(2):
        if kind not in TAGS:
            break
        if len(frame) < at + 4:
            return MALFORMED
        kind = word_at(frame, at + 2)
        at += 4
    if kind == IPV4:
        return read_ipv4(frame, at)
    return Headers(KINDS.get(kind, "other"), at)


def has_too_many_tags(frame: bytes) -> bool:
    """Whether a frame has three VLAN tags, more than are skipped: racks take no such frames."""
    return len(frame) >= 22 and all(word_at(frame, at) in TAGS for at in (12, 16, 20))


def word_at(frame: bytes | bytearray, at: int) -> int:
    """A 16-bit field."""
    return frame[at] << 8 | frame[at + 1]


def read_ipv4(frame: bytes, l3: int) -> Headers:
    """The headers of an IPv4 datagram at `l3`."""
    here = len(frame) - l3
    if here < 20 or frame[l3] >> 4 != 4:
        return MALFORMED
    length = (frame[l3] & 15) * 4
    total = word_at(frame, l3 + 2)
    if length < 20 or total < length or total > here:
        return MALFORMED
    flags = word_at(frame, l3 + 6)
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


def update_checksum(checksum: int, before: bytes, after: bytes) -> int:
    """A checksum after some of the covered words changed: HC' = ~(~HC + ~m + m') (RFC 1624, equation 3)."""
    inverted = bytes(byte ^ 0xFF for byte in before)
    return ones_sum((checksum ^ 0xFFFF).to_bytes(2, "big") + inverted + after) ^ 0xFFFF


def addresses(frame: bytes, headers: Headers) -> tuple[int, int]:
    """Source and destination of a datagram; those of IPv6 are above all of IPv4, as numbers."""
    if headers.kind == "ipv6":
        both = frame[headers.l3 + 8 : headers.l3 + 40]
        return int.from_bytes(b"\1" + both[:16], "big"), int.from_bytes(b"\1" + both[16:], "big")
    source, destination = struct.unpack_from("!II", frame, headers.l3 + 12)
    return source, destination


def ports(frame: bytes, headers: Headers) -> tuple[int, int]:
    """Source and destination port; zeros where there are none."""
    return (word_at(frame, headers.l4), word_at(frame, headers.l4 + 2)) if headers.has_ports else (0, 0)


def flow_of(frame: bytes, headers: Headers) -> Flow:
    """Source, destination, protocol and ports of a datagram."""
    return *addresses(frame, headers), headers.protocol, *ports(frame, headers)


def split_value(frame: bytes, headers: Headers, salt: int) -> int:
    """The split hash of a frame, 16 bits: how it is dealt out to branches, replicas and backends.

    Jenkins' one-at-a-time hash over words of addresses, ports and protocol in place of bytes (`nfs/core/split_hash.h`).
    0 for what is not IPv4. Fragments, also the first, have no ports here, so that a datagram stays together.
    """
    if headers.kind != "ipv4":
        return 0
    source, destination = (0, 0) if headers.fragment else ports(frame, headers)
    value = salt
    for word in (*addresses(frame, headers), source << 16 | destination, headers.protocol):
        value = value + word & 0xFFFFFFFF
        value = value + (value << 10) & 0xFFFFFFFF
        value ^= value >> 6
    value = value + (value << 3) & 0xFFFFFFFF
    value ^= value >> 11
    return (value + (value << 15) & 0xFFFFFFFF) >> 16


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


# Replacing parts of packets, with all checksums (RFC 3022, section 4.1; RFC 1624).


def with_header_fields(frame: bytes, l3: int, fields: Mapping[int, bytes]) -> bytes:
    """A frame with other 16-bit words in its IPv4 header, by their offsets there, and the checksum updated."""
    made, before = bytearray(frame), b""
    for at, new in fields.items():
        before += frame[l3 + at : l3 + at + len(new)]
        made[l3 + at : l3 + at + len(new)] = new
    checksum = update_checksum(word_at(frame, l3 + 10), before, b"".join(fields.values()))
    made[l3 + 10 : l3 + 12] = checksum.to_bytes(2, "big")
    return bytes(made)


def with_address(frame: bytes, l3: int, end: int, address: int) -> bytes:
    """A frame with another address, which only the IPv4 header's checksum covers."""
    return with_header_fields(frame, l3, {12 + 4 * end: address.to_bytes(4, "big")})


def with_hop_taken(frame: bytes, l3: int) -> bytes:
    """A frame with one hop less to live."""
    return with_header_fields(frame, l3, {8: bytes([frame[l3 + 8] - 1, frame[l3 + 9]])})


def with_tos(frame: bytes, l3: int, tos: int) -> bytes:
    """A frame with another type of service."""
    return with_header_fields(frame, l3, {0: bytes([frame[l3], tos])})


def with_content(frame: bytes, headers: Headers, protocol: int, content: bytes) -> bytes:
    """A frame with something else behind its IPv4 header, whose length, protocol and checksum change."""
    l3, behind = headers.l3, behind_ipv4(frame, headers)
    total = (behind - l3 + len(content)).to_bytes(2, "big")
    return with_header_fields(frame[:behind], l3, {2: total, 8: bytes([frame[l3 + 8], protocol])}) + content


def behind_ipv4(frame: bytes, headers: Headers) -> int:
    """Where the IPv4 header ends."""
    return headers.l3 + (frame[headers.l3] & 15) * 4


def refresh_l4_checksum(frame: bytearray, l4: int, protocol: int, before: bytes, after: bytes) -> None:
    """Update the checksum of UDP, TCP or ICMP after covered bytes changed; odd ones are followed by zero (RFC 1071).

    A UDP checksum that is left out stays so, and none becomes 0, which would mean that (RFC 768).
    """
    place = l4 + CHECKSUM_AT[protocol]
    was = word_at(frame, place)
    if protocol == UDP and was == 0:
        return
    size = max(len(before), len(after)) + 1 & ~1
    checksum = update_checksum(was, before.ljust(size, b"\0"), after.ljust(size, b"\0"))
    frame[place : place + 2] = (checksum or 0xFFFF * (protocol == UDP)).to_bytes(2, "big")


def port_at(l4: int, protocol: int, end: int) -> int:
    """Where the port of an end is, or the identifier of an ICMP query."""
    return l4 + (4 if protocol == ICMP else 2 * end)


def end_of(frame: bytes, l3: int, l4: int, end: int) -> End:
    """Address and port of an end."""
    return int.from_bytes(frame[l3 + 12 + 4 * end : l3 + 16 + 4 * end], "big"), word_at(
        frame, port_at(l4, frame[l3 + 9], end)
    )


def with_end(frame: bytes, l3: int, l4: int, end: int, to: End, until: int | None = None) -> bytes:
    """A frame with another end; a quoted packet ends at `until`, perhaps before its checksum."""
    protocol = frame[l3 + 9]
    at, port = l3 + 12 + 4 * end, port_at(l4, protocol, end)
    was = frame[port : port + 2] + (b"" if protocol == ICMP else frame[at : at + 4])
    now = to[1].to_bytes(2, "big") + (b"" if protocol == ICMP else to[0].to_bytes(4, "big"))
    made = bytearray(with_address(frame, l3, end, to[0]))
    made[port : port + 2] = now[:2]
    if until is None or l4 + CHECKSUM_AT[protocol] + 2 <= until:
        refresh_l4_checksum(made, l4, protocol, was, now)
    return bytes(made)


def readdress(frame: bytes, l3: int, l4: int, end: int, address: int, until: int | None = None) -> bytes:
    """A frame with another address at an end, and the checksums of IPv4, and of UDP and TCP if it has one, updated."""
    if l4 == 0 or frame[l3 + 9] not in (TCP, UDP):
        return with_address(frame, l3, end, address)
    return with_end(frame, l3, l4, end, (address, end_of(frame, l3, l4, end)[1]), until)


MOST = 576  # bytes of an error at most (RFC 1812, section 4.3.2.3)
CONTROL = 0xC0  # internetwork control (RFC 1812, section 4.3.2.5)


def is_host(address: int) -> bool:
    """Whether an address can belong to one host (RFC 1812, section 5.3.7)."""
    first = address >> 24
    return first not in (0, 127) and first < 224


def find_quoted(frame: bytes, headers: Headers) -> tuple[int, int] | None:
    """Where the IPv4 header of the packet that an error quotes is, and what follows that header.

    None if a checksum is wrong, there are less than 8 bytes behind it, or it is a later fragment (RFC 5508, REQ-3).
    """
    l3, end = headers.payload, headers.end
    length = (frame[l3] & 15) * 4 if end - l3 >= 20 else 0
    if length < 20 or frame[l3] >> 4 != 4 or end - l3 < length + 8:
        return None
    later = word_at(frame, l3 + 6) & OFFSET
    right = header_is_right(frame, l3) and ones_sum(frame[headers.l4 : end]) == 0xFFFF
    return None if later or not right else (l3, l3 + length)


def with_icmp_checksum(frame: bytes, headers: Headers) -> bytes:
    """A frame with the checksum of its ICMP message computed anew."""
    l4 = headers.l4
    message = frame[l4 : l4 + 2] + b"\0\0" + frame[l4 + 4 : headers.end]
    return frame[: l4 + 2] + internet_checksum(message).to_bytes(2, "big") + frame[l4 + 4 :]


class Reporter:
    """Answers at a rate; its errors are numbered in their identifications, from 0 on: the function's free choice."""

    def __init__(self, address: bytes, settings: Mapping[str, str]) -> None:
        self.address = address
        self.per_us = float(settings.get("errors_per_s", 1000)) / 1e6
        self.tokens = self.most = float(settings.get("errors_at_once", 100))
        self.last_us = self.made = 0

    def may_answer(self, frame: bytes, headers: Headers) -> bool:
        """Whether an error about a frame is allowed (RFC 1812, section 4.3.2.7)."""
        source, destination = addresses(frame, headers)
        if headers.later or frame[0] & 1 or not is_host(source) or not is_host(destination):
            return False
        return headers.protocol != ICMP or (headers.l4 != 0 and frame[headers.l4] not in ICMP_ERRORS)

    def within_rate(self, now_us: int) -> bool:
        """Take a token, if there is one."""
        self.tokens = min(self.tokens + (now_us - self.last_us) * self.per_us, self.most)
        self.last_us = now_us
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def answer(self, frame: bytes, headers: Headers, kind: tuple[int, int], mtu: int = 0) -> bytes:
        """The error to the sender of a frame, with as much of it as fits."""
        l3 = headers.l3
        message = struct.pack("!BBHHH", *kind, 0, 0, mtu) + frame[l3 : min(headers.end, l3 + MOST - 28)]
        message = message[:2] + internet_checksum(message).to_bytes(2, "big") + message[4:]
        fields = {"tos": CONTROL, "id": self.made & 0xFFFF}
        header = ipv4_header(self.address, frame[l3 + 12 : l3 + 16], ICMP, len(message), **fields)
        self.made += 1
        return frame[6:12] + frame[:6] + frame[12:l3] + header + message

    def report(
        self, frame: bytes, headers: Headers, kind: tuple[int, int], now_us: int, mtu: int = 0
    ) -> tuple[str, list[bytes]]:
        """The counter of an error about a frame, and the error if there is one."""
        if not self.may_answer(frame, headers):
            return "errors_suppressed", []
        if not self.within_rate(now_us):
            return "errors_limited", []
        return "errors_sent", [self.answer(frame, headers, kind, mtu)]


def error_about(rng: random.Random, quoted: bytes, source: bytes, destination: bytes, outward: bool) -> bytes:
    """A frame with an ICMP error that quotes a datagram, sometimes damaged."""
    kind = rng.choice(((3, 1), (3, 3), (3, 4), (11, 0), (12, 0), (4, 0)))
    quote = quoted[: rng.choice((28, 36, 60, 200, 24))]
    message = struct.pack("!BBHHH", *kind, 0, 0, rng.choice((0, 500, 1400))) + quote
    checksum = internet_checksum(message) ^ (rng.random() < 0.03)
    message = message[:2] + checksum.to_bytes(2, "big") + message[4:]
    addresses = OUTSIDE_MAC + INSIDE_MAC if outward else INSIDE_MAC + OUTSIDE_MAC
    return addresses + IPV4.to_bytes(2, "big") + ipv4_header(source, destination, ICMP, len(message)) + message
