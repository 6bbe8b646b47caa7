"""The headers that NFs on the switch know, and the ways from one to the next: the library of Lemur, section 4.2.

A packet's fields that many tables look at are copied into metadata once it is parsed, and kept equal to the headers
by whatever changes them: a table of a DPDK pipeline takes all fields of its key from one struct.
"""

from collections.abc import Mapping, Sequence

from placer.rack.compiler.switch.program import (
    Assign,
    Body,
    FieldComparison,
    FieldTest,
    HeaderType,
    If,
    IsValid,
    MatchTable,
    ParserEdge,
    SetValid,
    SwitchAction,
    UpdateChecksum,
    Value,
)

NSH_TYPE = 0x894F
NSH_BASE = 0x0FC20203
"""Version 0, time to live 63, two words, metadata of type 2 without any, Ethernet next (RFC 8300, section 2.2)."""
VLAN_TYPE, QINQ_TYPE, IPV4_TYPE = 0x8100, 0x88A8, 0x0800
ICMP, TCP, UDP = 1, 6, 17
OFFSET_MASK, FRAGMENT_MASK = 0x1FFF, 0x3FFF

ETHERNET_FIELDS = {"destination": 48, "source": 48, "type": 16}
TAG_FIELDS = {"control": 16, "type": 16}

HEADER_TYPES: Mapping[str, HeaderType] = {
    header_type.name: header_type
    for header_type in (
        HeaderType("outer", ETHERNET_FIELDS),
        HeaderType("nsh", {"base": 32, "path": 32}),
        HeaderType("ethernet", ETHERNET_FIELDS),
        HeaderType("tag", TAG_FIELDS),
        HeaderType("inner_tag", TAG_FIELDS),
        HeaderType(
            "ipv4",
            {
                "version_words": 8,
                "service": 8,
                "length": 16,
                "id": 16,
                "fragment": 16,
                "ttl": 8,
                "protocol": 8,
                "checksum": 16,
                "source": 32,
                "destination": 32,
            },
        ),
        HeaderType("options", {}, most_bytes=40),
        HeaderType(
            "tcp",
            {
                "source_port": 16,
                "destination_port": 16,
                "sequence": 32,
                "acknowledged": 32,
                "flags": 16,
                "window": 16,
                "checksum": 16,
                "urgent": 16,
            },
        ),
        HeaderType("udp", {"source_port": 16, "destination_port": 16, "length": 16, "checksum": 16}),
        HeaderType("icmp", {"type": 8, "code": 8, "checksum": 16, "id": 16, "sequence": 16}),
    )
}
"""By name, in the order in which they stand in packets."""


def _tag(source: str, target: str) -> tuple[ParserEdge, ...]:
    field = f"h.{source}.type"
    return tuple(ParserEdge(source, target, (FieldTest(field, kind),)) for kind in (VLAN_TYPE, QINQ_TYPE))


def _to_ipv4(source: str) -> ParserEdge:
    return ParserEdge(source, "ipv4", (FieldTest(f"h.{source}.type", IPV4_TYPE),))


def _behind_ipv4(source: str) -> tuple[ParserEdge, ...]:
    """UDP, TCP and ICMP, but in fragments that are not the first."""
    first = FieldTest("h.ipv4.fragment", 0, OFFSET_MASK)
    return tuple(
        ParserEdge(source, target, (first, FieldTest("h.ipv4.protocol", protocol)))
        for target, protocol in (("tcp", TCP), ("udp", UDP), ("icmp", ICMP))
    )


LABELLED_EDGES: tuple[ParserEdge, ...] = (
    ParserEdge("start", "outer", (FieldTest("h.outer.type", NSH_TYPE),)),
    ParserEdge("outer", "nsh"),
    ParserEdge("nsh", "ethernet"),
)
"""Packets that come with a label; the first test looks ahead."""
PLAIN_EDGES: tuple[ParserEdge, ...] = (
    ParserEdge("start", "ethernet"),
    *_tag("ethernet", "tag"),
    *_tag("tag", "inner_tag"),
)
"""Ethernet with up to two VLAN tags."""
TO_IPV4: tuple[ParserEdge, ...] = (*PLAIN_EDGES, _to_ipv4("ethernet"), _to_ipv4("tag"), _to_ipv4("inner_tag"))
TO_PORTS: tuple[ParserEdge, ...] = (
    *TO_IPV4,
    ParserEdge("ipv4", "options_or_not"),
    ParserEdge("options_or_not", "ports", (FieldTest("h.ipv4.version_words", 0x45),)),
    ParserEdge("options_or_not", "options"),
    ParserEdge("options", "ports"),
    *_behind_ipv4("ports"),
)
"""To the headers behind IPv4; states without a header of their name extract none."""

FLOW_BITS: Mapping[str, int] = {
    "tagged": 8,
    "vlan": 16,
    "ip": 8,
    "source": 32,
    "destination": 32,
    "protocol": 8,
    "has_ports": 8,
    "source_port": 16,
    "destination_port": 16,
}
"""Metadata of each packet: bits by name. Ports are those of UDP and TCP, also of a first fragment; `has_ports` is 1 for
those that are no fragment."""


# Labels that the switch puts on packets.


def label_packets(control: Body, tables: Sequence[MatchTable], actions: Sequence[SwitchAction]) -> Body:
    """A control flow that puts labels on packets: where it says so, or at its end where actions of tables say so."""
    bodies = {action.name: action.body for action in actions}
    chosen = [statement for table in tables for name in table.actions for statement in bodies.get(name, ())]
    if any(isinstance(statement, Assign) and statement.to == "m.label" for statement in chosen):
        put = If(FieldComparison("m.label", ">", 0), _label("m.label"), note="the next NF is on another device")
        return (Assign("m.label", 0), *control, put)
    return _labels_put(control)


def _labels_put(body: Body) -> Body:
    found: Body = ()
    for statement in body:
        match statement:
            case If(condition, then, otherwise, note):
                found += (If(condition, _labels_put(then), _labels_put(otherwise), note),)
            case Assign("m.label", word):
                found += _label(word)
            case _:
                found += (statement,)
    return found


def _label(word: Value) -> Body:
    return (
        SetValid("outer"),
        Assign("h.outer.destination", "h.ethernet.destination"),
        Assign("h.outer.source", "h.ethernet.source"),
        Assign("h.outer.type", NSH_TYPE),
        SetValid("nsh"),
        Assign("h.nsh.base", NSH_BASE),
        Assign("h.nsh.path", word),
    )


# Bodies that replace an address or a port, with the checksums that cover it (RFC 3022, section 4.1).


def address_rewritten(end: str, value: str) -> Body:
    """Writes metadata `value` to the source or destination address of a packet that is IPv4; it is not 0."""
    field = f"h.ipv4.{end}"
    udp = _update("udp", field, value)
    return (
        UpdateChecksum("h.ipv4.checksum", field, value),
        If(IsValid("tcp"), _update("tcp", field, value), (If(IsValid("udp"), udp),)),
        Assign(field, value),
        Assign(f"m.{end}", value),
    )


def port_rewritten(header: str, field: str, value: str) -> Body:
    """Writes metadata `value`, which is not 0, to a port of UDP or TCP, or to the identifier of an ICMP query."""
    place = f"h.{header}.{field}"
    return (*_update(header, place, value), Assign(place, value))


def _update(header: str, before: str, after: str) -> Body:
    """The checksum of a header; UDP packets may have none."""
    checksum = f"h.{header}.checksum"
    if header != "udp":
        return (UpdateChecksum(checksum, before, after),)
    return (If(FieldComparison(checksum, "!=", 0), (UpdateChecksum(checksum, before, after, never_zero=True),)),)
