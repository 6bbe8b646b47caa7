"""Faults of the switch's program, and of what all platforms share: labels and salts."""

import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace

from placer.rack.compiler.graph import RackNf
from placer.rack.compiler.routing import Label, Routing
from placer.rack.compiler.switch import compose, flow, headers, tree
from placer.rack.compiler.switch.headers import VLAN_TYPE
from placer.rack.compiler.switch.nfs import detunnel, ipv4fwd, lb
from placer.rack.compiler.switch.program import (
    ActionCall,
    Apply,
    Assign,
    Body,
    Compute,
    Count,
    FieldComparison,
    If,
    IsValid,
    MatchTable,
    Operation,
    SetValid,
    Statement,
    SwitchProgram,
    TakeNumber,
    UpdateChecksum,
)
from placer.rack.compiler.traffic import entries
from placer.rack.rack import MatchKind
from tests.placer.rack.compiler.mutants.mutant import (
    Mutant,
    in_action,
    in_program,
    in_statements,
    in_tables,
    replaced,
    wrapped,
)
from tests.reference import emulate

Statements = Iterable[Statement]


def _label_moved(label: Label, by: int) -> Label:
    return Label(label.path, label.index + by)


def _next_label_moved(call: ActionCall, *_: object) -> ActionCall:
    return ActionCall(call.action, (call.arguments[0] - 1, *call.arguments[1:])) if call.action == "to_device" else call


def _of_first_nf(call: ActionCall, composer: compose._Composer, target: int | None) -> ActionCall:
    if call.action != "to_device" or target is None:
        return call
    path = next(one for one in composer.routing.paths if target in one)
    return ActionCall(call.action, (composer.routing.labels[path[0]].word, call.arguments[1]))


def _without_entry(action: str) -> Callable[[MatchTable], MatchTable]:
    def change(table: MatchTable) -> MatchTable:
        kept = tuple(one for one in table.entries if one.call.action != action)
        return replace(table, entries=kept) if table.name == "steer" else table

    return change


def _without_headers_taken(body: Body) -> Body:
    return tuple(one for one in body if not isinstance(one, SetValid))


def _last_entry_lost(table: MatchTable) -> MatchTable:
    return replace(table, entries=table.entries[:-1])


def _turned(table: MatchTable, kind: MatchKind) -> MatchTable:
    return replace(table, entries=table.entries[::-1]) if table.keys[0].match is kind else table


def _with_short_masks(table: MatchTable) -> MatchTable:
    if table.keys[0].match is not MatchKind.TERNARY:
        return table
    rows = [
        replace(one, key=tuple((value & mask << 1, mask << 1 & mask) for value, mask in one.key))
        for one in table.entries
    ]
    return replace(table, entries=tuple(rows))


def _ports_swapped(one: Statement) -> Statements:
    match one:
        case Assign("m.source_port", str(value)) if value.startswith("h."):
            yield Assign("m.source_port", value.replace("source", "destination"))
        case Assign("m.destination_port", str(value)):
            yield Assign("m.destination_port", value.replace("destination", "source"))
        case _:
            yield one


def _counters_swapped(one: Statement) -> Statements:
    other = {"entered": "sent", "sent": "entered"}
    yield replace(one, registers=other.get(one.registers, one.registers)) if isinstance(one, Count) else one


def _counted_elsewhere(one: Statement) -> Statements:
    yield Count("entered", 0) if isinstance(one, Count) and one.registers == "entered" else one


def _fragments_have_ports(one: Statement) -> Statements:
    if isinstance(one, If) and one.condition == FieldComparison("m.fragment", "==", 0) and len(one.then) == 1:
        yield from one.then
    else:
        yield one


def _not_without(one: Statement) -> Statements:
    """Packets for which no entry is, go on."""
    if not (isinstance(one, If) and one.condition == FieldComparison("m.found", "==", 0)):
        yield one


def _ttl_kept(one: Statement) -> Statements:
    if one != Compute(Operation.SUBTRACT, "h.ipv4.ttl", 1):
        yield one


def _ttl_not_looked_at(one: Statement) -> Statements:
    if isinstance(one, If) and one.condition == FieldComparison("h.ipv4.ttl", "<", 2):
        yield from one.otherwise
    else:
        yield one


def _tag_not_noted(one: Statement) -> Statements:
    if isinstance(one, If) and Assign("h.ethernet.type", VLAN_TYPE) in one.otherwise:
        kept = tuple(part for part in one.otherwise if part != Assign("m.tagged", 1))
        one = replace(one, otherwise=kept)
    yield one


def _inner_tag_lost(one: Statement) -> Statements:
    if not (isinstance(one, If) and SetValid("inner_tag") in one.then):
        yield one


def _forged_taken(one: Statement) -> Statements:
    if isinstance(one, If) and one.condition == IsValid("outer") and Count("reasons", 0) in one.then:
        one = replace(one, then=())
    yield one


def _number_not_taken(one: Statement) -> Statements:
    yield Assign(one.to, 0) if isinstance(one, TakeNumber) else one


def _filters_turned(table: MatchTable) -> MatchTable:
    other = {"pass_on": "drop_it", "drop_it": "pass_on"}
    if not table.name.endswith("_rules"):
        return table
    return replace(table, entries=tuple(replace(one, call=ActionCall(other[one.call.action])) for one in table.entries))


def _default_first(table: MatchTable) -> MatchTable:
    first = table.entries[0].call if table.name.endswith("_branch") and table.entries else table.default
    return replace(table, default=first)


def _without_ports(body: Body) -> Body:
    return tuple(
        replace(one, then=tuple(part for part in one.then if not _reads_ports(part))) if isinstance(one, If) else one
        for one in body
    )


def _reads_ports(one: Statement) -> bool:
    return isinstance(one, If) and one.condition == FieldComparison("m.fragment", "==", 0)


def _labels_at_start(found: dict[int, Label], of: Routing) -> dict[int, Label]:
    return {nf: Label(label.path, 255) for nf, label in found.items()}


def _without_parser(source: str, target: str) -> Callable[[SwitchProgram], SwitchProgram]:
    return lambda program: replace(
        program, parser=tuple(one for one in program.parser if (one.source, one.target) != (source, target))
    )


MUTANTS = (
    Mutant("the service index is the same for all NFs of a path", wrapped(Routing, "labels", _labels_at_start)),
    Mutant(
        "the switch writes a service index that is one too low", wrapped(compose._Composer, "next", _next_label_moved)
    ),
    Mutant("the switch writes the label of the first NF of the path", wrapped(compose._Composer, "next", _of_first_nf)),
    Mutant(
        "packets leave with the label of the NF that they have passed",
        wrapped(Routing, "exits", lambda found, of: {nf: _label_moved(one, 1) for nf, one in found.items()}),
    ),
    Mutant("no label for packets from device to device over the switch", in_tables(_without_entry("relay"))),
    Mutant("no label for packets that come back to the switch", in_tables(_without_entry("resume"))),
    Mutant("no label for packets that leave the rack", in_tables(_without_entry("leave"))),
    Mutant("packets that come back keep their label", in_action("resume", _without_headers_taken)),
    Mutant("packets leave the rack with their label", in_action("leave", _without_headers_taken)),
    Mutant("packets for other devices get no label", replaced(headers, "_label", lambda word: ())),
    Mutant(
        "the label stands behind the Ethernet header of the packet",
        in_program(
            lambda program: replace(program, headers=(program.headers[2], *program.headers[:2], *program.headers[3:]))
        ),
    ),
    Mutant("forged labels are taken for packets of the rack", in_statements(_forged_taken)),
    Mutant(
        "packets go to the port of the next server",
        wrapped(compose._Composer, "port_of", lambda port, composer, nf: port % len(composer.ports) + 1),
    ),
    Mutant(
        "ways of a branch are swapped",
        replaced(compose, "_ternary", lambda name, rows, calls, of=compose._ternary: of(name, rows, calls[::-1])),
    ),
    Mutant("what no match takes goes the first way", in_tables(_default_first)),
    Mutant("what fits no entry is not dropped", in_statements(_not_without)),
    Mutant(
        "limits of the split hash are halved",
        replaced(compose, "limits_of", lambda shares, of=flow.limits_of: [one // 2 for one in of(shares)]),
    ),
    Mutant(
        "shares of a split are taken in the wrong order",
        replaced(compose, "limits_of", lambda shares, of=flow.limits_of: of(shares[::-1])),
    ),
    Mutant(
        "the split hash of the switch has another salt",
        replaced(compose, "hash_flow", lambda salt: flow.hash_flow(salt + 1)),
    ),
    Mutant(
        "splits on switch and server have the salt of the chain, not of the NF",
        replaced(RackNf, "split_salt", property(lambda nf: zlib.crc32(nf.chain.encode()))),
    ),
    Mutant(
        "the split hash ignores ports",
        replaced(compose, "hash_flow", lambda salt: _without_ports(flow.hash_flow(salt))),
    ),
    Mutant("fragments are hashed with ports", in_statements(_fragments_have_ports)),
    Mutant("what an NF dropped goes on to the next one", replaced(compose, "_may_drop", lambda body: False)),
    Mutant(
        "a merge stands behind one of its predecessors only",
        replaced(tree, "_common_ancestor", lambda runs, of: max(of)),
    ),
    Mutant(
        "a packet passes only one run of the switch",
        replaced(compose, "exclusive_groups", lambda runs, of: [list(of)] if of else []),
    ),
    Mutant("the last entry of each table is lost", in_tables(_last_entry_lost)),
    Mutant("entries with masks are in the wrong order", in_tables(lambda table: _turned(table, MatchKind.TERNARY))),
    Mutant("short prefixes come before long ones", in_tables(lambda table: _turned(table, MatchKind.LPM))),
    Mutant("masks lack their last bit", in_tables(_with_short_masks)),
    Mutant(
        "ranges of ports lack their last port",
        replaced(entries, "prefixes_of", lambda low, high, of=entries.prefixes_of: of(low, high - (low < high))),
    ),
    Mutant("source and destination port are swapped", in_statements(_ports_swapped)),
    Mutant("filters of an ACL permit what they deny", in_tables(_filters_turned)),
    Mutant("the IPv4 checksum is not updated", replaced(ipv4fwd, "_add_number", lambda number: ())),
    Mutant(
        "checksums are not updated for new addresses",
        in_statements(lambda one: [] if isinstance(one, UpdateChecksum) else [one]),
    ),
    Mutant("the time to live stays", in_statements(_ttl_kept)),
    Mutant("packets are forwarded at the end of their time to live", in_statements(_ttl_not_looked_at)),
    Mutant("a balancer takes another salt", replaced(lb, "hash_flow", lambda salt: flow.hash_flow(salt ^ 1))),
    Mutant("Detunnel leaves the note of the tag", replaced(detunnel, "load_tag", lambda: ())),
    Mutant("Tunnel makes no note of the tag", in_statements(_tag_not_noted)),
    Mutant("Tunnel forgets the tag that was there", in_statements(_inner_tag_lost)),
    Mutant("NAT gives the same endpoint to all", in_statements(_number_not_taken)),
    Mutant("the switch counts what left as what entered", in_statements(_counters_swapped)),
    Mutant("the switch counts all packets for its first NF", in_statements(_counted_elsewhere)),
    Mutant("the switch does not look behind a second tag", in_program(_without_parser("tag", "inner_tag"))),
    Mutant("the switch finds no ports behind IPv4 options", in_program(_without_parser("options", "ports"))),
    Mutant(
        "comparisons with a limit are off by one in the pipeline",
        wrapped(emulate, "spec_text", lambda text, program: re.sub(r"(jmpgt \S+ h\.ipv4\.ttl) 1\b", r"\1 2", text)),
    ),
    Mutant(
        "no table is asked where packets of the world go",
        in_statements(lambda one: [] if one == Apply("classify") else [one]),
    ),
)
