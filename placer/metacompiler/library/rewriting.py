"""Replaces addresses and ports of packets, with the checksums that cover them (RFC 3022, section 4.1)."""

from __future__ import annotations

from enum import IntEnum

from placer.metacompiler.library.headers import ICMP, TCP, UDP, WORD, Headers, checksum_changed, word_at

IP_CHECKSUM = 10
CHECKSUMS = {UDP: 6, TCP: 16, ICMP: 2}
"""Offsets of checksums in their headers."""
IDENTIFIER = 4
"""Offset of the identifier in an ICMP query."""


class PacketEnd(IntEnum):
    """The source or the destination of a packet: the offset of its address in the IPv4 header."""

    SOURCE = 12
    DESTINATION = 16


def with_address(packet: bytes, headers: Headers, end: PacketEnd, address: int) -> bytes:
    """An IPv4 packet with another address.

    The checksums of IPv4, UDP and TCP follow: that of UDP or TCP where the packet has its header, so also in the first
    fragment of a datagram. A UDP checksum that is left out (0) stays so.
    """
    made = bytearray(packet)
    before, after = bytes(packet[headers.l3 + end : headers.l3 + end + 4]), address.to_bytes(4, "big")
    made[headers.l3 + end : headers.l3 + end + 4] = after
    _update(made, headers.l3 + IP_CHECKSUM, before, after)
    if headers.has_ports:
        _update_l4(made, headers, before, after)
    return bytes(made)


def with_port(packet: bytes, headers: Headers, end: PacketEnd, port: int) -> bytes:
    """A packet with another port, or another identifier if it is an ICMP query; its checksum follows."""
    at = headers.l4 + (IDENTIFIER if headers.protocol == ICMP else 0 if end is PacketEnd.SOURCE else 2)
    made = bytearray(packet)
    before, after = bytes(packet[at : at + 2]), port.to_bytes(2, "big")
    made[at : at + 2] = after
    _update_l4(made, headers, before, after)
    return bytes(made)


def port_of(packet: bytes, headers: Headers, end: PacketEnd) -> int:
    """The port at an end of UDP or TCP, or the identifier of an ICMP query."""
    return word_at(
        packet, headers.l4 + (IDENTIFIER if headers.protocol == ICMP else 0 if end is PacketEnd.SOURCE else 2)
    )


def _update_l4(packet: bytearray, headers: Headers, before: bytes, after: bytes) -> None:
    at = headers.l4 + CHECKSUMS[headers.protocol]
    if headers.protocol == UDP and word_at(packet, at) == 0:
        return
    _update(packet, at, before, after)
    if headers.protocol == UDP and word_at(packet, at) == 0:
        packet[at : at + 2] = WORD.to_bytes(2, "big")  # 0 would mean no checksum (RFC 768)


def _update(packet: bytearray, at: int, before: bytes, after: bytes) -> None:
    packet[at : at + 2] = checksum_changed(word_at(packet, at), before, after).to_bytes(2, "big")
