"""The order of NFs in a pipeline that no packet passes twice (Lemur, appendix A.2.2).

NFs in a row form a run. Runs stand in a tree below the tables that steer packets: a run behind a branch below the
branching run, a run that several reach below the nearest common ancestor of all of them. So a run stands behind all
from which packets reach it, and no table depends on one of another branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from placer.rack.compiler.graph import DeviceKind, RackGraph, RackNf

ROOT_NODE = -1  # in place of a run: the tables that steer packets


@dataclass
class NfRun:
    """NFs in a row without a branch, a merge, or an entry between them."""

    nfs: list[RackNf]
    parent: int = ROOT_NODE  # the number of the first NF of the run under which it stands, or ROOT
    depth: int = 1  # of it in the tree
    before: set[int] = field(default_factory=set)
    children: list[NfRun] = field(default_factory=list)

    @property
    def first(self) -> int:
        return self.nfs[0].number


def runs_of(graph: RackGraph) -> dict[int, NfRun]:
    """The runs on the switch by the number of their first NF, each behind all from which packets reach it."""
    on_switch = [nf for nf in graph.nfs if nf.place.kind is DeviceKind.SWITCH]
    runs: dict[int, NfRun] = {}
    of: dict[int, int] = {}
    for nf in on_switch:
        joined = _join(graph, nf)
        first = of[joined] if joined is not None else nf.number
        of[nf.number] = first
        if joined is None:
            runs[first] = NfRun([])
            runs[first].before = {of.get(before, ROOT_NODE) for before in graph.before[nf.number]} or {ROOT_NODE}
        runs[first].nfs.append(nf)
    return runs


def _join(graph: RackGraph, nf: RackNf) -> int | None:
    """The NF before it in the same run; None if a run begins here."""
    before = graph.before[nf.number]
    if len(before) != 1:
        return None
    one = graph.nfs[before[0]]
    return one.number if one.place == nf.place and not one.branches else None


def tree_of(runs: dict[int, NfRun]) -> list[NfRun]:
    """The runs at the root, each with those below it; both in an order in which packets may pass them."""
    roots: list[NfRun] = []
    for run in runs.values():
        run.parent = _common_ancestor(runs, run.before)
        run.depth = 1 if run.parent == ROOT_NODE else runs[run.parent].depth + 1
        (roots if run.parent == ROOT_NODE else runs[run.parent].children).append(run)
    return roots


def _common_ancestor(runs: dict[int, NfRun], of: set[int]) -> int:
    """The nearest run that is above all of these, or one of them."""
    found = set(of)
    while len(found) > 1:
        if ROOT_NODE in found:
            return ROOT_NODE
        deepest = max(found, key=lambda run: (runs[run].depth, run))
        found = (found - {deepest}) | {runs[deepest].parent}
    return found.pop()


def exclusive_groups(runs: dict[int, NfRun], siblings: Sequence[NfRun]) -> list[list[NfRun]]:
    """Siblings in groups: no packet passes two of a group, and groups stand behind those that lead to them."""
    groups: list[list[NfRun]] = []
    place: dict[int, int] = {}
    below = {run.first: _below(run) for run in siblings}
    for run in siblings:
        reached_from = [
            place[other.first] for other in siblings if other.first in place and _leads(below, runs, other, run)
        ]
        number = max(reached_from, default=-1) + 1
        if number == len(groups):
            groups.append([])
        groups[number].append(run)
        place[run.first] = number
    return groups


def _below(run: NfRun) -> set[int]:
    return {run.first}.union(*(_below(child) for child in run.children))


def _leads(below: dict[int, set[int]], runs: dict[int, NfRun], one: NfRun, other: NfRun) -> bool:
    """Whether packets pass from a run, or one below it, to a sibling; perhaps through other siblings."""
    return bool(runs[other.first].before & below[one.first])
