"""NFs on the switch in an order that no packet passes twice."""

from __future__ import annotations

import pytest

from placer.rack.compiler.graph import DeviceKind, RackGraph, graph_of
from placer.rack.compiler.switch.tree import ROOT_NODE, exclusive_groups, runs_of, tree_of
from tests.placer.rack.compiler.made_chains import made_chain
from tests.placer.rack.compiler.made_plans import made_plan
from tests.placer.rack.compiler.random_racks import random_plan

DIAMOND = [(0, 1, "1/2", ""), (0, 2, "1/2", ""), (1, 3, "1", ""), (2, 3, "1", "")]


def _graph(nfs: list[str], places: str, edges: list[tuple[int, int, str, str]] | None = None) -> RackGraph:
    return graph_of(made_plan((made_chain(nfs, edges), places)), "plan")


def test_nfs_in_a_row_are_one_run() -> None:
    """Three in a row are; a server between them parts them."""
    assert [[nf.id for nf in run.nfs] for run in runs_of(_graph(["ACL"] * 3, "switch switch switch")).values()] == [
        ["f0", "f1", "f2"]
    ]
    assert [[nf.id for nf in run.nfs] for run in runs_of(_graph(["ACL"] * 3, "switch s0 switch")).values()] == [
        ["f0"],
        ["f2"],
    ]


def test_a_merge_stands_below_the_branching_nf() -> None:
    """Its nearest common ancestor, not one of the branches (Lemur, A.2.2)."""
    runs = runs_of(_graph(["Match", "ACL", "LB", "IPv4Fwd"], "switch switch switch switch", DIAMOND))
    tree_of(runs)
    assert {first: run.parent for first, run in runs.items()} == {0: ROOT_NODE, 1: 0, 2: 0, 3: 0}
    groups = exclusive_groups(runs, runs[0].children)
    assert [[run.first for run in group] for group in groups] == [[1, 2], [3]]


def test_a_merge_that_packets_reach_from_a_server_stands_at_the_root() -> None:
    """They do not pass the branching NF in this visit."""
    runs = runs_of(_graph(["Match", "ACL", "Monitor", "IPv4Fwd"], "switch switch s0 switch", DIAMOND))
    roots = tree_of(runs)
    assert [run.first for run in roots] == [0, 3]
    assert [[run.first for run in group] for group in exclusive_groups(runs, roots)] == [[0], [3]]


@pytest.mark.parametrize("seed", range(60))
def test_a_run_stands_behind_all_that_lead_to_it(seed: int) -> None:
    """In the order of the pipeline; and no packet passes two of a group."""
    graph = graph_of(random_plan(seed, smartnics=0), "plan")
    runs = runs_of(graph)
    order: dict[int, tuple[int, ...]] = {}

    def walk(siblings: list, place: tuple[int, ...]) -> None:  # type: ignore[type-arg]
        for number, group in enumerate(exclusive_groups(runs, siblings)):
            for run in group:
                order[run.first] = (*place, number)
                walk(run.children, (*place, number))

    walk(tree_of(runs), ())
    assert order.keys() == runs.keys()
    for run in runs.values():
        for before in run.before - {ROOT_NODE}:
            parents = _ancestors(runs, run.first)
            assert before in parents or order[before] < order[run.first]
    placed = {nf.number for run in runs.values() for nf in run.nfs}
    assert placed == {nf.number for nf in graph.nfs if nf.place.kind is DeviceKind.SWITCH}


def _ancestors(runs: dict, first: int) -> set[int]:  # type: ignore[type-arg]
    found = set()
    while first != ROOT_NODE:
        first = runs[first].parent
        found.add(first)
    return found
