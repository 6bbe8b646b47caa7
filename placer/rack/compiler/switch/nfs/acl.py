"""ACL on the switch: the first filter that matches decides."""

from itertools import product

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.library.acl import AclFilter
from placer.rack.compiler.switch.flow import BLOCKS, DROP_ACTION, PASS_ACTION, Block
from placer.rack.compiler.switch.headers import TO_PORTS
from placer.rack.compiler.switch.program import ActionCall, Apply, If, IsValid, MatchEntry, MatchTable, TableKey
from placer.rack.compiler.traffic.entries import prefixes_of
from placer.rack.rack import MatchKind

ENTRY_FIELDS = ("protocol", "source", "destination", "source_port", "destination_port")
FIELD_BITS = (8, 32, 32, 16, 16)


@BLOCKS.register("ACL")
def acl_block(instance: NfInstance) -> Block:
    """One ternary table; what is not IPv4 passes."""
    name = f"{instance.nf.identifier}_rules"
    entries = tuple(entry for acl_filter in instance.data for entry in _entries(acl_filter))
    table = MatchTable(
        name,
        tuple(
            TableKey(f"m.{field}", bits, MatchKind.TERNARY)
            for field, bits in zip(ENTRY_FIELDS, FIELD_BITS, strict=True)
        ),
        (PASS_ACTION.name, DROP_ACTION.name),
        ActionCall(PASS_ACTION.name),
        entries,
        max(len(entries), 1),
        of=instance.nf.name,
    )
    body = (If(IsValid("ipv4"), (Apply(name),)),)
    return Block(body if entries else (), TO_PORTS, (table,) if entries else (), (PASS_ACTION, DROP_ACTION))


def _entries(one: AclFilter) -> list[MatchEntry]:
    """A filter, with its ranges of ports as prefixes."""
    call = ActionCall(PASS_ACTION.name if one.permit else DROP_ACTION.name)
    fixed = (
        (one.protocol, 0xFF if one.protocol else 0),
        (one.source.address, one.source.mask),
        (one.destination.address, one.destination.mask),
    )
    ports = product(prefixes_of(*one.source_ports), prefixes_of(*one.destination_ports))
    return [MatchEntry((*fixed, *pair), call) for pair in ports]
