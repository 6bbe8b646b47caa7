"""Headers of frames, found by the same rules as `nfs/core/packet.h`; the split hash; checksums by their change."""

from enum import Enum
from typing import NamedTuple

ETHERNET_BYTES = 14
TAG_BYTES = 4
MOST_TAGS = 2  # VLAN tags that are skipped: one, or two with 802.1ad

TYPE_IPV4, TYPE_IPV6, TYPE_VLAN, TYPE_QINQ, TYPE_NSH = 0x0800, 0x86DD, 0x8100, 0x88A8, 0x894F
ICMP, TCP, UDP, ESP = 1, 6, 17, 50
IPV4_BYTES = 20  # bytes of an IPv4 header without options
FRAGMENT_OFFSET, MORE_FRAGMENTS = 0x1FFF, 0x2000

WORD_MASK = 0xFFFF
DOUBLE_WORD = 0xFFFFFFFF


class FrameType(Enum):
    """What a frame carries."""

    IPV4 = "ipv4"
    IPV6 = "ipv6"
    OTHER = "other"
    MALFORMED = "malformed"  # shorter than its headers say, or with invalid ones


class Headers(NamedTuple):
    """Where the headers of a frame are: offsets from its start.

    `l3` is where the layer behind Ethernet and VLAN tags begins; 0 in a malformed frame, unless its IPv4 header is
    valid and only the rest is not. `l4` and `payload` are 0 without such a header: fragments other than the first,
    protocols other than UDP, TCP and ICMP. `end` is where the datagram ends by its IPv4 header: padding of the frame
    follows.
    """

    type: FrameType
    l3: int = 0
    l4: int = 0
    payload: int = 0
    end: int = 0
    protocol: int = 0
    fragment: bool = False  # any part of a datagram, the first one, too
    later_fragment: bool = False  # not the first part: it has no ports

    @property
    def has_ports(self) -> bool:
        """Whether it is UDP or TCP with its ports: also the first fragment of a datagram."""
        return self.l4 != 0 and self.protocol in (UDP, TCP)


MALFORMED_HEADERS = Headers(FrameType.MALFORMED)


def read_headers(frame: bytes) -> Headers:
    """The headers of a frame; nothing beyond its end is looked at."""
    l3, ether_type = past_ethernet(frame)
    if l3 == 0:
        return MALFORMED_HEADERS
    if ether_type == TYPE_IPV4:
        return _read_ipv4(frame, l3)
    return Headers(FrameType.IPV6 if ether_type == TYPE_IPV6 else FrameType.OTHER, l3)


def past_ethernet(frame: bytes) -> tuple[int, int]:
    """Offset and type of what follows Ethernet and up to two VLAN tags; 0, 0 if the frame is too short for them."""
    if len(frame) < ETHERNET_BYTES:
        return 0, 0
    at, ether_type = ETHERNET_BYTES, word_at(frame, ETHERNET_BYTES - 2)
    for _ in range(MOST_TAGS):
        if not is_tag(ether_type):
            break
        if len(frame) < at + TAG_BYTES:
            return 0, 0
        ether_type = word_at(frame, at + 2)
        at += TAG_BYTES
    return at, ether_type


def _read_ipv4(frame: bytes, l3: int) -> Headers:
    if len(frame) < l3 + IPV4_BYTES or frame[l3] >> 4 != 4:
        return MALFORMED_HEADERS
    header, total = 4 * (frame[l3] & 0xF), word_at(frame, l3 + 2)
    if header < IPV4_BYTES or total < header or len(frame) < l3 + total:
        return MALFORMED_HEADERS
    parts, protocol = word_at(frame, l3 + 6), frame[l3 + 9]
    fragment, later = parts & (FRAGMENT_OFFSET | MORE_FRAGMENTS) != 0, parts & FRAGMENT_OFFSET != 0
    if later or protocol not in (UDP, TCP, ICMP):
        return Headers(FrameType.IPV4, l3, 0, 0, l3 + total, protocol, fragment, later)
    l4 = l3 + header
    length = _l4_header(frame, l4, total - header, protocol)
    if length == 0:
        return Headers(FrameType.MALFORMED, l3, 0, 0, l3 + total, protocol, fragment)
    return Headers(FrameType.IPV4, l3, l4, l4 + length, l3 + total, protocol, fragment)


def _l4_header(frame: bytes, l4: int, room: int, protocol: int) -> int:
    """Length of a UDP, TCP or ICMP header with `room` bytes present; 0 if it does not fit."""
    if protocol != TCP:
        return 8 if room >= 8 else 0
    if room < 20:
        return 0
    length = 4 * (frame[l4 + 12] >> 4)
    return length if 20 <= length <= room else 0


def is_tag(ether_type: int) -> bool:
    """Whether a VLAN tag follows."""
    return ether_type in (TYPE_VLAN, TYPE_QINQ)


def word_at(frame: bytes | bytearray, at: int) -> int:
    """A 16-bit field."""
    return frame[at] << 8 | frame[at + 1]


def address_at(frame: bytes, at: int) -> int:
    """An IPv4 address."""
    return int.from_bytes(frame[at : at + 4], "big")


def source_of(frame: bytes, headers: Headers) -> int:
    """The source address of an IPv4 packet."""
    return address_at(frame, headers.l3 + 12)


def destination_of(frame: bytes, headers: Headers) -> int:
    """The destination address of an IPv4 packet."""
    return address_at(frame, headers.l3 + 16)


def ports_of(frame: bytes, headers: Headers) -> tuple[int, int]:
    """Source and destination port; 0, 0 without ports."""
    return (word_at(frame, headers.l4), word_at(frame, headers.l4 + 2)) if headers.has_ports else (0, 0)


def split_value(frame: bytes, headers: Headers, salt: int) -> int:
    """The split hash of a frame, 16 bits: how it is dealt out to branches, replicas and backends.

    Jenkins' one-at-a-time hash over words of addresses, ports and protocol in place of bytes: additions, exclusive ors
    and shifts of 32 bits, which every platform has. 0 for what is not IPv4. Fragments, also the first, have no ports
    here, so that a datagram stays together.
    """
    if headers.type is not FrameType.IPV4:
        return 0
    ports = address_at(frame, headers.l4) if headers.has_ports and not headers.fragment else 0
    value = salt
    for word in (source_of(frame, headers), destination_of(frame, headers), ports, headers.protocol):
        value = value + word & DOUBLE_WORD
        value = value + (value << 10) & DOUBLE_WORD
        value ^= value >> 6
    value = value + (value << 3) & DOUBLE_WORD
    value ^= value >> 11
    return (value + (value << 15) & DOUBLE_WORD) >> 16


def checksum_changed(value: int, before: bytes, after: bytes) -> int:
    """A checksum after bytes that it covers changed, an even number of them (RFC 1624, equation 3)."""
    total = ~value & WORD_MASK
    for at in range(0, len(before), 2):
        total += (~word_at(before, at) & WORD_MASK) + word_at(after, at)
    while total > WORD_MASK:
        total = (total & WORD_MASK) + (total >> 16)
    return ~total & WORD_MASK
