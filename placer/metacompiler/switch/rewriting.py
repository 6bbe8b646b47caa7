"""Bodies that replace an address or a port, with the checksums that cover it (RFC 3022, section 4.1)."""

from __future__ import annotations

from placer.metacompiler.switch.program import Assign, Body, FieldComparison, If, IsValid, UpdateChecksum


def address_rewritten(end: str, value: str) -> Body:
    """Writes metadata `value` to the source or destination address of a packet that is IPv4; it is not 0."""
    field = f"h.ipv4.{end}"
    udp = _updated("udp", field, value)
    return (
        UpdateChecksum("h.ipv4.checksum", field, value),
        If(IsValid("tcp"), _updated("tcp", field, value), (If(IsValid("udp"), udp),)),
        Assign(field, value),
        Assign(f"m.{end}", value),
    )


def port_rewritten(header: str, field: str, value: str) -> Body:
    """Writes metadata `value`, which is not 0, to a port of UDP or TCP, or to the identifier of an ICMP query."""
    place = f"h.{header}.{field}"
    return (*_updated(header, place, value), Assign(place, value))


def _updated(header: str, before: str, after: str) -> Body:
    """The checksum of a header; UDP packets may have none."""
    checksum = f"h.{header}.checksum"
    if header != "udp":
        return (UpdateChecksum(checksum, before, after),)
    return (If(FieldComparison(checksum, "!=", 0), (UpdateChecksum(checksum, before, after, never_zero=True),)),)
