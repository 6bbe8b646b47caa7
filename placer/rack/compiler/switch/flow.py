"""Bodies over the metadata of a packet's flow: its copy from the headers, and the hash that splits flows."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.switch.headers import FRAGMENT_MASK
from placer.rack.compiler.switch.program import (
    Assign,
    Body,
    Compute,
    Count,
    FieldComparison,
    If,
    IsValid,
    MatchTable,
    Operation,
    ParserEdge,
    Registers,
    SwitchAction,
)
from profiles.registry import Registry

HASH_VALUES = 1 << 16  # the hash has 16 bits
VLAN_MASK = 0xFFF


def flow_of(wanted: Set[str], has: Mapping[str, bool]) -> Body:
    """Copies metadata of the flow from the headers; what a packet does not have is 0.

    `wanted`: names of metadata. `has`: headers that all packets have here, or do not have.
    """
    tag = {"m.tagged": (Assign("m.tagged", 1),), "m.vlan": _vlan()}
    ip = {"m.ip": (Assign("m.ip", 1),)}
    ip |= {f"m.{name}": (Assign(f"m.{name}", f"h.ipv4.{name}"),) for name in ("source", "destination", "protocol")}
    return (
        *_of_header("tag", tag, wanted, has),
        *_of_header("ipv4", ip, wanted, has),
        *_of_header("tcp", _ports("tcp"), wanted, has, _of_header("udp", _ports("udp"), wanted, has)),
    )


def _of_header(
    header: str, loads: Mapping[str, Body], wanted: Set[str], has: Mapping[str, bool], otherwise: Body | None = None
) -> Body:
    """Loads metadata from a header, else from another one, else it is 0."""
    names = [name for name in loads if name in wanted]
    if not names:
        return ()
    then = tuple(statement for name in names for statement in loads[name])
    if otherwise is None:
        otherwise = tuple(Assign(name, 0) for name in names)
    if header in has:
        return then if has[header] else otherwise
    return (If(IsValid(header), then, otherwise),)


def _vlan() -> Body:
    return (Assign("m.vlan", "h.tag.control"), Compute(Operation.AND, "m.vlan", VLAN_MASK))


def _ports(header: str) -> dict[str, Body]:
    loads: dict[str, Body] = {
        f"m.{name}": (Assign(f"m.{name}", f"h.{header}.{name}"),) for name in ("source_port", "destination_port")
    }
    whole = If(FieldComparison("m.fragment", "==", 0), (Assign("m.has_ports", 1),))
    return loads | {"m.has_ports": (Assign("m.has_ports", 0), *_fragment(), whole)}


def _fragment() -> Body:
    """Writes what is not 0 in fragments to `m.fragment`."""
    return (Assign("m.fragment", "h.ipv4.fragment"), Compute(Operation.AND, "m.fragment", FRAGMENT_MASK))


def load_tag() -> Body:
    """Copies what says of the outer VLAN tag."""
    return flow_of({"m.tagged", "m.vlan"}, {})


def hash_flow(salt: int) -> Body:
    """Writes the 16 bits of the split hash to `m.hash`; 0 for what is not IPv4."""
    ports = If(IsValid("tcp"), _word("tcp"), (If(IsValid("udp"), _word("udp")),))
    body: Body = (
        Assign("m.hash", salt),
        *_add_word("h.ipv4.source"),
        *_add_word("h.ipv4.destination"),
        *_fragment(),
        If(FieldComparison("m.fragment", "==", 0), (ports,)),
        *_mix((Operation.SHIFT_LEFT, Operation.ADD, 10), (Operation.SHIFT_RIGHT, Operation.XOR, 6)),
        *_add_word("h.ipv4.protocol"),
        *_mix(
            (Operation.SHIFT_LEFT, Operation.ADD, 3),
            (Operation.SHIFT_RIGHT, Operation.XOR, 11),
            (Operation.SHIFT_LEFT, Operation.ADD, 15),
        ),
        Compute(Operation.SHIFT_RIGHT, "m.hash", 16),
    )
    return (If(IsValid("ipv4"), body, (Assign("m.hash", 0),)),)


def _word(header: str) -> Body:
    """Adds both ports to the hash."""
    return (
        Assign("m.word", f"h.{header}.source_port"),
        Compute(Operation.SHIFT_LEFT, "m.word", 16),
        Compute(Operation.OR, "m.word", f"h.{header}.destination_port"),
        Compute(Operation.ADD, "m.hash", "m.word"),
    )


def _add_word(word: str) -> Body:
    mixed = _mix((Operation.SHIFT_LEFT, Operation.ADD, 10), (Operation.SHIFT_RIGHT, Operation.XOR, 6))
    return (Compute(Operation.ADD, "m.hash", word), *mixed)


def _mix(*steps: tuple[Operation, Operation, int]) -> Body:
    """hash = hash OPERATION (hash SHIFT bits), for each step."""
    return tuple(
        statement
        for shift, operation, bits in steps
        for statement in (
            Assign("m.shifted", "m.hash"),
            Compute(shift, "m.shifted", bits),
            Compute(operation, "m.hash", "m.shifted"),
        )
    )


def limits_of(shares: Sequence[Fraction]) -> list[int]:
    """Below which hash each of several shares lies; the last limit is that of all hashes."""
    total, sum_ = sum(shares), Fraction(0)
    limits = []
    for share in shares:
        sum_ += share
        limits.append(int(HASH_VALUES * sum_ / total))
    return [*limits[:-1], HASH_VALUES]


# What the author of an NF for the switch gives: its headers, tables and state, and what it does with a packet.


DROP_BODY: Body = (Assign("m.drop", 1),)  # the packet goes no further
DROP_ACTION = SwitchAction("drop_it", DROP_BODY)
RULES_REGISTER = "rules"
COUNTED_KINDS = ("ACL", "IPv4Fwd")  # kinds of NFs whose data are rules; their actions count the packets of each
COUNT_RULE_BODY: Body = (Count(RULES_REGISTER, "t.rule"),)
RULE_ARGUMENT = {"rule": 32}  # the place of a rule among those of all NFs, from the `first_rule` of its NF on
PASS_RULE_ACTION = SwitchAction("pass_rule", COUNT_RULE_BODY, RULE_ARGUMENT)
DROP_RULE_ACTION = SwitchAction("drop_rule", (*COUNT_RULE_BODY, *DROP_BODY), RULE_ARGUMENT)
PASS_ACTION = SwitchAction("pass_on", ())


@dataclass(frozen=True)
class Block:
    """One NF, standing alone.

    `node_field`: metadata by which tables that several NFs share know the NF; `m.node` unless keys need it elsewhere.
    """

    body: Body  # what happens to a packet; it goes on to the next NF unless `m.drop` is set to 1
    parser: tuple[ParserEdge, ...]  # the ways to the headers that it looks at
    tables: tuple[MatchTable, ...] = ()
    actions: tuple[SwitchAction, ...] = ()
    registers: tuple[Registers, ...] = ()
    metadata: Mapping[str, int] = field(default_factory=dict)
    node_field: str = "m.node"


BlockMaker = Callable[[NfInstance], Block]
"""The block of an instance; names of its tables, actions and metadata begin with `identifier` of its NF."""

BLOCKS: Registry[BlockMaker] = Registry(
    "NF of the switch", "placer.rack.compiler.switch.nfs", "placer.switch_nfs", "the rack"
)
"""By kind of NF: the files of `placer/rack/compiler/switch/nfs/`, then the entry points of other packages."""
