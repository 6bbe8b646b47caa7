"""One table for NFs of the same kind that no packet passes both, in place of one per NF: it also matches the NF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from placer.chains.switch_table import MatchKind
from placer.metacompiler.instances import NfInstance
from placer.metacompiler.switch.block import BLOCKS, Block
from placer.metacompiler.switch.program import Assign, MatchEntry, MatchTable, TableKey
from placer.metacompiler.switch.tree import NfRun

NODE = "m.node"
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
            found.append((runs, _merged(runs, blocks)))
    return found


def _as_shared(instance: NfInstance, name: str) -> Block:
    """The block with the names of a shared one."""
    nf = replace(instance.nf, chain="shared", id=name)
    return BLOCKS[nf.kind](replace(instance, nf=nf))


def _outline(block: Block) -> Block:
    """All of a block but the entries of its tables."""
    return replace(block, tables=tuple(replace(table, entries=(), size=0) for table in block.tables))


def _merged(runs: Sequence[NfRun], blocks: Sequence[Block]) -> Block:
    first = blocks[0]
    tables = tuple(
        _merged_table(runs, [block.tables[at] for block in blocks], first.node_field) for at in range(len(first.tables))
    )
    own_field = first.node_field != NODE
    return replace(first, tables=tables, body=((Assign(first.node_field, NODE),) if own_field else ()) + first.body)


def _merged_table(runs: Sequence[NfRun], tables: Sequence[MatchTable], node_field: str) -> MatchTable:
    first = tables[0]
    ternary = any(key.match is MatchKind.TERNARY for key in first.keys)
    key = TableKey(node_field, NODE_BITS, MatchKind.TERNARY if ternary else MatchKind.EXACT)
    entries = [
        MatchEntry((*entry.key, (run.first + 1, NODE_MASK)), entry.call)
        for run, table in zip(runs, tables, strict=True)
        for entry in table.entries
    ]
    if any(one.match is MatchKind.LPM for one in first.keys):
        entries.sort(key=lambda entry: -entry.key[0][1])
    names = ", ".join(run.nfs[0].name for run in runs)
    size = max(table.size for table in tables) if first.learns_for_s else len(entries)
    return replace(first, keys=(*first.keys, key), entries=tuple(entries), size=size, of=names)
