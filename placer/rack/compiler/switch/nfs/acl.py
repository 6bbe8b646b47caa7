"""ACL on the switch: the first filter that matches decides."""

from collections.abc import Sequence
from itertools import product

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.library.acl import AclFilter, passes_ipv6
from placer.rack.compiler.switch import program
from placer.rack.compiler.switch.flow import (
    BLOCKS,
    DROP_BODY,
    DROP_RULE_ACTION,
    PASS_ACTION,
    PASS_RULE_ACTION,
    Block,
)
from placer.rack.compiler.switch.headers import TO_PORTS
from placer.rack.compiler.traffic.entries import prefixes_of
from placer.rack.rack import MatchKind

ENTRY_FIELDS = ("protocol", "source", "destination", "source_port", "destination_port")
ARP_TYPE, IPV6_TYPE = 0x0806, 0x86DD
FIELD_BITS = (8, 32, 32, 16, 16)


@BLOCKS.register("ACL")
def acl_block(instance: NfInstance) -> Block:
    """One ternary table for IPv4; ARP passes, and IPv6 if all of it may; other frames are dropped."""
    name = f"{instance.nf.identifier}_rules"
    entries = tuple(entry for at, each in enumerate(instance.data, instance.first_rule) for entry in _entries(each, at))
    table = program.MatchTable(
        name,
        tuple(
            program.TableKey(f"m.{field}", bits, MatchKind.TERNARY)
            for field, bits in zip(ENTRY_FIELDS, FIELD_BITS, strict=True)
        ),
        (PASS_ACTION.name, PASS_RULE_ACTION.name, DROP_RULE_ACTION.name),
        program.ActionCall(PASS_ACTION.name),
        entries,
        max(len(entries), 1),
        of=instance.nf.name,
    )
    known = (ARP_TYPE, IPV6_TYPE) if passes_ipv6(instance.data) else (ARP_TYPE,)
    unknown = program.If(
        program.IsValid("inner_tag"),
        _drop_unless("h.inner_tag.type", known),
        (
            program.If(
                program.IsValid("tag"), _drop_unless("h.tag.type", known), _drop_unless("h.ethernet.type", known)
            ),
        ),
    )
    body = (program.If(program.IsValid("ipv4"), (program.Apply(name),) if entries else PASS_ACTION.body, (unknown,)),)
    return Block(body, TO_PORTS, (table,) if entries else (), (PASS_ACTION, PASS_RULE_ACTION, DROP_RULE_ACTION))


def _drop_unless(field: str, known: Sequence[int]) -> program.Body:
    body: program.Body = DROP_BODY
    for ether_type in known:
        body = (program.If(program.FieldComparison(field, "!=", ether_type), body),)
    return body


def _entries(one: AclFilter, rule: int) -> list[program.MatchEntry]:
    """A filter, with its ranges of ports as prefixes."""
    call = program.ActionCall(PASS_RULE_ACTION.name if one.permit else DROP_RULE_ACTION.name, (rule,))
    fixed = (
        (one.protocol, 0xFF if one.protocol else 0),
        (one.source.address, one.source.mask),
        (one.destination.address, one.destination.mask),
    )
    ports = product(prefixes_of(*one.source_ports), prefixes_of(*one.destination_ports))
    return [program.MatchEntry((*fixed, *pair), call) for pair in ports]
