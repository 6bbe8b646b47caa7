"""NAT on the switch: the first packet of an inside endpoint learns an external one, outward only.

Fragments are dropped, since a switch cannot wait for their ports; so are packets without ports, but for ICMP queries.
"""

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.switch.flow import BLOCKS, DROP_BODY, Block
from placer.rack.compiler.switch.headers import FRAGMENT_MASK, TO_PORTS, address_rewritten, port_rewritten
from placer.rack.compiler.switch.program import (
    ActionCall,
    Apply,
    Assign,
    Body,
    Compute,
    FieldComparison,
    If,
    IsValid,
    Learn,
    MatchTable,
    Operation,
    Registers,
    SwitchAction,
    TableKey,
    TakeNumber,
)

ICMP_QUERIES = (8, 13, 17)
"""ICMP types of requests with an identifier: echo, timestamp, address mask (RFC 792, RFC 950)."""
FIRST_PORT, PORT_BITS = 0x8000, 15  # ports of each external address: the upper half
MOST_SESSIONS = 65536
TIMEOUT_S = 300
TRANSLATE_ACTION = SwitchAction(
    "translate", (Assign("m.outside", "t.address"), Assign("m.outside_port", "t.port")), {"address": 32, "port": 16}
)
NAT_METADATA = {
    "outside": 32,
    "outside_port": 16,
    "inside": 32,
    "inside_port": 16,
    "inside_protocol": 8,
    "inside_node": 16,
    "has_endpoint": 8,
    "taken": 32,
}
"""DPDK takes the key of a table that learns, and what it learns, from fields that stand behind one another."""
WITH_ENDPOINT: Body = (Assign("m.has_endpoint", 1),)


@BLOCKS.register("NAT")
def nat_block(instance: NfInstance) -> Block:
    """One table that learns, and a register with the number of endpoints so far."""
    name = instance.nf.identifier
    first, addresses = int(instance.parameters["first_address"]), int(instance.parameters["addresses"])
    learn = SwitchAction(f"{name}_learn", _learnt(name, first, addresses))
    table = MatchTable(
        f"{name}_endpoints",
        (TableKey("m.inside", 32), TableKey("m.inside_port", 16), TableKey("m.inside_protocol", 8)),
        (TRANSLATE_ACTION.name, learn.name),
        ActionCall(learn.name),
        size=MOST_SESSIONS,
        learns_for_s=TIMEOUT_S,
        of=instance.nf.name,
    )
    translated: Body = (Apply(table.name), If(FieldComparison("m.drop", "==", 0), _rewritten()))
    looked_up: Body = (*_endpoint(), If(FieldComparison("m.has_endpoint", "==", 1), translated, DROP_BODY))
    outward: Body = (
        Assign("m.word", "h.ipv4.destination"),
        Compute(Operation.SUBTRACT, "m.word", first),
        If(FieldComparison("m.word", "<", addresses), DROP_BODY, looked_up),
    )
    whole: Body = (
        Assign("m.fragment", "h.ipv4.fragment"),
        Compute(Operation.AND, "m.fragment", FRAGMENT_MASK),
        If(FieldComparison("m.fragment", "==", 0), outward, DROP_BODY),
    )
    return Block(
        (If(IsValid("ipv4"), whole, DROP_BODY),),
        TO_PORTS,
        (table,),
        (TRANSLATE_ACTION, learn),
        (Registers(f"{name}_taken", 1),),
        NAT_METADATA,
        "m.inside_node",
    )


def _learnt(name: str, first: int, addresses: int) -> Body:
    """The next external endpoint; no packet passes when none is left."""
    learn: Body = (
        Assign("m.outside", "m.taken"),
        Compute(Operation.SHIFT_RIGHT, "m.outside", PORT_BITS),
        Compute(Operation.ADD, "m.outside", first),
        Assign("m.outside_port", "m.taken"),
        Compute(Operation.OR, "m.outside_port", FIRST_PORT),
        Learn(TRANSLATE_ACTION.name, ("m.outside", "m.outside_port")),
    )
    limit = FieldComparison("m.taken", "<", addresses << PORT_BITS)
    return (TakeNumber(f"{name}_taken", 0, "m.taken"), If(limit, learn, DROP_BODY))


def _endpoint() -> Body:
    """The port of the inside endpoint, or the identifier of an ICMP query."""
    ports = tuple(
        If(IsValid(header), (Assign("m.inside_port", f"h.{header}.source_port"), *WITH_ENDPOINT))
        for header in ("tcp", "udp")
    )
    queries = tuple(If(FieldComparison("h.icmp.type", "==", query), WITH_ENDPOINT) for query in ICMP_QUERIES)
    icmp = If(IsValid("icmp"), (Assign("m.inside_port", "h.icmp.id"), *queries))
    address: Body = (Assign("m.inside", "h.ipv4.source"), Assign("m.inside_protocol", "h.ipv4.protocol"))
    return (*address, Assign("m.has_endpoint", 0), *ports, icmp)


def _rewritten() -> Body:
    return (
        If(IsValid("tcp"), port_rewritten("tcp", "source_port", "m.outside_port")),
        If(IsValid("udp"), port_rewritten("udp", "source_port", "m.outside_port")),
        If(IsValid("icmp"), port_rewritten("icmp", "id", "m.outside_port")),
        *address_rewritten("source", "m.outside"),
        If(IsValid("tcp"), (Assign("m.source_port", "m.outside_port"),)),
        If(IsValid("udp"), (Assign("m.source_port", "m.outside_port"),)),
    )
