"""IPv4Fwd on the switch: the longest prefix of the destination names the next hop."""

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.library.ipv4_fwd import OWN_MAC
from placer.rack.compiler.switch.flow import BLOCKS, DROP_ACTION, DROP_BODY, Block
from placer.rack.compiler.switch.headers import TO_IPV4
from placer.rack.compiler.switch.program import (
    ActionCall,
    Apply,
    Assign,
    Body,
    Compute,
    FieldComparison,
    If,
    IsValid,
    MatchEntry,
    MatchTable,
    Operation,
    SwitchAction,
    TableKey,
)
from placer.rack.rack import MatchKind

HOP_ACTION = SwitchAction("to_hop", (Assign("h.ethernet.destination", "t.hop"),), {"hop": 48})


@BLOCKS.register("IPv4Fwd")
def ipv4fwd_block(instance: NfInstance) -> Block:
    """One table of prefixes."""
    name = f"{instance.nf.identifier}_routes"
    routes = sorted(instance.data, key=lambda one: -one.prefix.length)
    entries = tuple(
        MatchEntry(
            ((route.prefix.address, route.prefix.mask),),
            ActionCall(HOP_ACTION.name, (int.from_bytes(route.mac, "big"),)),
        )
        for route in routes
    )
    table = MatchTable(
        name,
        (TableKey("h.ipv4.destination", 32, MatchKind.LPM),),
        (HOP_ACTION.name, DROP_ACTION.name),
        ActionCall(DROP_ACTION.name),
        entries,
        max(len(entries), 1),
        of=instance.nf.name,
    )
    forwarded: Body = (
        Assign("h.ethernet.source", int.from_bytes(OWN_MAC, "big")),
        If(FieldComparison("h.ipv4.checksum", ">", 0xFEFE), _add_number(0x101), _add_number(0x100)),
        Compute(Operation.SUBTRACT, "h.ipv4.ttl", 1),
    )
    routed: Body = (Apply(name), If(FieldComparison("m.drop", "==", 0), forwarded))
    alive: Body = (If(FieldComparison("h.ipv4.ttl", "<", 2), DROP_BODY, routed),)
    return Block((If(IsValid("ipv4"), alive, DROP_BODY),), TO_IPV4, (table,), (HOP_ACTION, DROP_ACTION))


def _add_number(number: int) -> Body:
    """What the word with the time to live lost, 256, the checksum gets, with the carry (RFC 1624, equation 3)."""
    return (Compute(Operation.ADD, "h.ipv4.checksum", number),)
