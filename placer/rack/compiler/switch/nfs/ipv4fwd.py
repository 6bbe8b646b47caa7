"""IPv4Fwd on the switch: the longest prefix of the destination names the next hop."""

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.library.ipv4_fwd import OWN_MAC
from placer.rack.compiler.switch import program
from placer.rack.compiler.switch.flow import BLOCKS, COUNT_RULE_BODY, DROP_ACTION, DROP_BODY, RULE_ARGUMENT, Block
from placer.rack.compiler.switch.headers import TO_IPV4
from placer.rack.rack import MatchKind

HOP_ACTION = program.SwitchAction(
    "to_hop", (*COUNT_RULE_BODY, program.Assign("h.ethernet.destination", "t.hop")), {**RULE_ARGUMENT, "hop": 48}
)


@BLOCKS.register("IPv4Fwd")
def ipv4fwd_block(instance: NfInstance) -> Block:
    """One table of prefixes."""
    name = f"{instance.nf.identifier}_routes"
    routes = sorted(enumerate(instance.data, instance.first_rule), key=lambda pair: -pair[1].prefix.length)
    entries = tuple(
        program.MatchEntry(
            ((route.prefix.address, route.prefix.mask),),
            program.ActionCall(HOP_ACTION.name, (rule, int.from_bytes(route.mac, "big"))),
        )
        for rule, route in routes
    )
    table = program.MatchTable(
        name,
        (program.TableKey("h.ipv4.destination", 32, MatchKind.LPM),),
        (HOP_ACTION.name, DROP_ACTION.name),
        program.ActionCall(DROP_ACTION.name),
        entries,
        max(len(entries), 1),
        of=instance.nf.name,
    )
    forwarded: program.Body = (
        program.Assign("h.ethernet.source", int.from_bytes(OWN_MAC, "big")),
        program.If(program.FieldComparison("h.ipv4.checksum", ">", 0xFEFE), _add_number(0x101), _add_number(0x100)),
        program.Compute(program.Operation.SUBTRACT, "h.ipv4.ttl", 1),
    )
    routed: program.Body = (program.Apply(name), program.If(program.FieldComparison("m.drop", "==", 0), forwarded))
    alive: program.Body = (program.If(program.FieldComparison("h.ipv4.ttl", "<", 2), DROP_BODY, routed),)
    return Block((program.If(program.IsValid("ipv4"), alive, DROP_BODY),), TO_IPV4, (table,), (HOP_ACTION, DROP_ACTION))


def _add_number(number: int) -> program.Body:
    """What the word with the time to live lost, 256, the checksum gets, with the carry (RFC 1624, equation 3)."""
    return (program.Compute(program.Operation.ADD, "h.ipv4.checksum", number),)
