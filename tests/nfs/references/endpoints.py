"""Ends of packets, and their replacement with all checksums (RFC 3022, section 4.1; RFC 1624)."""

from __future__ import annotations

import struct

from tests.nfs.references.headers import ICMP, TCP, UDP, updated

SOURCE, DESTINATION = 0, 1
CHECKSUM_AT = {TCP: 16, UDP: 6, ICMP: 2}

End = tuple[int, int]
"""An address, and a port or the identifier of an ICMP query."""


def port_at(l4: int, protocol: int, end: int) -> int:
    """Where the port of an end is."""
    return l4 + (4 if protocol == ICMP else 2 * end)


def end_of(frame: bytes, l3: int, l4: int, end: int) -> End:
    """Address and port of an end."""
    address: int = struct.unpack_from("!I", frame, l3 + 12 + 4 * end)[0]
    port: int = struct.unpack_from("!H", frame, port_at(l4, frame[l3 + 9], end))[0]
    return address, port


def with_address(frame: bytes, l3: int, end: int, address: int) -> bytes:
    """A frame with another address, which only the IPv4 header's checksum covers."""
    made = bytearray(frame)
    at, new = l3 + 12 + 4 * end, struct.pack("!I", address)
    checksum = updated(int.from_bytes(frame[l3 + 10 : l3 + 12], "big"), frame[at : at + 4], new)
    made[at : at + 4] = new
    made[l3 + 10 : l3 + 12] = checksum.to_bytes(2, "big")
    return bytes(made)


def with_end(frame: bytes, l3: int, l4: int, end: int, to: End, until: int | None = None) -> bytes:
    """A frame with another end; a quoted packet ends at `until`, perhaps before its checksum."""
    protocol = frame[l3 + 9]
    at, port = l3 + 12 + 4 * end, port_at(l4, protocol, end)
    was = frame[port : port + 2] + (b"" if protocol == ICMP else frame[at : at + 4])
    now = struct.pack("!H", to[1]) + (b"" if protocol == ICMP else struct.pack("!I", to[0]))
    made = bytearray(with_address(frame, l3, end, to[0]))
    made[port : port + 2] = now[:2]
    place = l4 + CHECKSUM_AT[protocol]
    before = int.from_bytes(frame[place : place + 2], "big")
    if (until is not None and place + 2 > until) or (protocol == UDP and before == 0):
        return bytes(made)
    checksum = updated(before, was, now)
    if protocol == UDP:
        checksum = checksum or 0xFFFF
    made[place : place + 2] = checksum.to_bytes(2, "big")
    return bytes(made)
