"""Copies fields of headers to metadata where something looks at the copy, and only there.

Tables that sort packets look at the metadata of their flow (`headers.FLOW`): it equals the headers, by whatever writes
either. So it can be loaded anywhere; most packets of most chains need little of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.switch import program
from placer.rack.compiler.switch.flow import BLOCKS, Block, flow_of
from placer.rack.compiler.switch.headers import FLOW_BITS
from placer.rack.compiler.switch.needed import fields_written_by, read_by
from placer.rack.compiler.switch.tree import NfRun
from placer.rack.rack import MatchKind

FLOW_METADATA = {f"m.{name}" for name in FLOW_BITS}
IMPLIED_HEADERS = {"tcp": "ipv4", "udp": "ipv4", "icmp": "ipv4", "inner_tag": "tag"}
"""A header, and one that stands in front of it."""


@dataclass
class _Known:
    """What holds for all packets that come to a statement: metadata that is loaded, and headers that they have."""

    loaded: set[str] = field(default_factory=set)
    headers: dict[str, bool] = field(default_factory=dict)

    def where(self, condition: program.Condition, holds: bool) -> _Known:
        """What is known in a branch."""
        headers = dict(self.headers)
        if isinstance(condition, program.IsValid):
            headers[condition.header] = holds
            if holds and condition.header in IMPLIED_HEADERS:
                headers[IMPLIED_HEADERS[condition.header]] = True
        return _Known(set(self.loaded), headers)

    def after(self, one: _Known, other: _Known) -> None:
        """What is known behind two branches."""
        self.loaded = one.loaded & other.loaded
        self.headers = {name: has for name, has in one.headers.items() if other.headers.get(name) is has}


@dataclass(frozen=True)
class _Loader:
    tables: Mapping[str, program.MatchTable]
    actions: Mapping[str, program.SwitchAction]

    def body(self, body: program.Body, known: _Known) -> program.Body:
        found: program.Body = ()
        for statement in body:
            needed = self.needs(statement)
            found += flow_of(needed - known.loaded, known.headers)
            known.loaded |= needed
            match statement:
                case program.If(program.IsValid(header), then, otherwise) if header in known.headers:
                    found += self.body(then if known.headers[header] else otherwise, known)
                    continue
                case program.If(condition, then, otherwise, note):
                    yes, no = known.where(condition, True), known.where(condition, False)
                    found += (program.If(condition, self.body(then, yes), self.body(otherwise, no), note),)
                    known.after(yes, no)
                    continue
                case program.SetValid(header, valid):
                    known.headers[header] = valid
                case program.Apply(table):
                    for name in self.tables[table].actions:
                        self.forget_changes(self.actions[name].body, known)
            known.loaded |= FLOW_METADATA.intersection(fields_written_by((statement,)))
            found += (statement,)
        return found

    def needs(self, one: object) -> set[str]:
        """Metadata of the flow that a statement looks at, without its branches."""
        match one:
            case program.Apply(name):
                table = self.tables[name]
                bodies = [self.actions[action].body for action in table.actions]
                read = {key.field for key in table.keys}.union(*map(read_by, bodies))
            case program.If(condition):
                read = {*read_by((program.If(condition, ()),))}
            case _:
                read = {*read_by((one,))}  # type: ignore[arg-type]
        return FLOW_METADATA & read

    def forget_changes(self, body: program.Body, known: _Known) -> None:
        """Forgets headers that an action sets."""
        for statement in body:
            if isinstance(statement, program.SetValid):
                known.headers.pop(statement.header, None)


def load_where_used(
    control: program.Body, tables: Sequence[program.MatchTable], actions: Sequence[program.SwitchAction]
) -> program.Body:
    """A control flow in which metadata of the flow is loaded before it is looked at."""
    return _Loader({table.name: table for table in tables}, {action.name: action for action in actions}).body(
        control, _Known()
    )


# One table for NFs of the same kind that no packet passes both, in place of one per NF: it also matches the NF.


NODE_FIELD = "m.node"
NODE_BITS = 16
NODE_MASK = 0xFFFF


def sharing_runs(
    group: Sequence[NfRun], instances: Mapping[int, NfInstance], *, least: int = 2
) -> list[tuple[list[NfRun], Block]]:
    """Runs of a group whose first NFs can share their tables, with the block that all of them share."""
    alike: list[tuple[str, list[NfRun], list[Block]]] = []
    for run in group:
        kind = run.nfs[0].kind
        block = _as_shared(instances[run.first], f"{kind}_{group[0].first}")
        if not block.tables:
            continue
        for of, runs, blocks in alike:
            if of == kind and _outline(blocks[0]) == _outline(block):
                runs.append(run)
                blocks.append(block)
                break
        else:
            alike.append((kind, [run], [block]))
    found = []
    for number, (kind, runs, _) in enumerate(alike):
        if len(runs) >= least:
            name = f"{kind}_{group[0].first}_{number}"
            blocks = [_as_shared(instances[run.first], name) for run in runs]
            found.append((runs, _merge(runs, blocks)))
    return found


def _as_shared(instance: NfInstance, name: str) -> Block:
    nf = replace(instance.nf, chain="shared", id=name)
    return BLOCKS[nf.kind](replace(instance, nf=nf))


def _outline(block: Block) -> Block:
    """All of a block but the entries of its tables."""
    return replace(block, tables=tuple(replace(table, entries=(), size=0) for table in block.tables))


def _merge(runs: Sequence[NfRun], blocks: Sequence[Block]) -> Block:
    first = blocks[0]
    tables = tuple(
        _merge_table(runs, [block.tables[at] for block in blocks], first.node_field) for at in range(len(first.tables))
    )
    own_field = first.node_field != NODE_FIELD
    return replace(
        first, tables=tables, body=((program.Assign(first.node_field, NODE_FIELD),) if own_field else ()) + first.body
    )


def _merge_table(runs: Sequence[NfRun], tables: Sequence[program.MatchTable], node_field: str) -> program.MatchTable:
    first = tables[0]
    ternary = any(key.match is MatchKind.TERNARY for key in first.keys)
    key = program.TableKey(node_field, NODE_BITS, MatchKind.TERNARY if ternary else MatchKind.EXACT)
    entries = [
        program.MatchEntry((*entry.key, (run.first + 1, NODE_MASK)), entry.call)
        for run, table in zip(runs, tables, strict=True)
        for entry in table.entries
    ]
    if any(key.match is MatchKind.LPM for key in first.keys):
        entries.sort(key=lambda entry: -entry.key[0][1])
    names = ", ".join(run.nfs[0].name for run in runs)
    size = max(table.size for table in tables) if first.learns_for_s else len(entries)
    return replace(first, keys=(*first.keys, key), entries=tuple(entries), size=size, of=names)
