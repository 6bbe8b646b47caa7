"""The program of the switch: its tree of runs, merged NFs, and the stages of blocks."""

from collections.abc import Mapping

import pytest

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.graph import DeviceKind, RackGraph, graph_of
from placer.rack.compiler.switch.compose import merge_parser
from placer.rack.compiler.switch.headers import PLAIN_EDGES, TO_IPV4, TO_PORTS
from placer.rack.compiler.switch.program import FieldTest, ParserEdge, SwitchProgram
from placer.rack.compiler.switch.stages import stages_of
from placer.rack.compiler.switch.tree import ROOT_NODE, exclusive_groups, runs_of, tree_of
from profiles import InputError
from tests.placer.rack.compiler.racks import made_chain, made_plan, random_plan

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
            assert before in _ancestors(runs, run.first) or order[before] < order[run.first]
    placed = {nf.number for run in runs.values() for nf in run.nfs}
    assert placed == {nf.number for nf in graph.nfs if nf.place.kind is DeviceKind.SWITCH}


def _ancestors(runs: dict, first: int) -> set[int]:  # type: ignore[type-arg]
    found = set()
    while first != ROOT_NODE:
        first = runs[first].parent
        found.add(first)
    return found


def _branched(kinds: list[str | tuple[str, Mapping[str, float]]], *, shares: bool) -> SwitchProgram:
    """A Match with NFs side by side behind it, all on the switch."""
    edges = [(0, at, f"1/{len(kinds)}", "") for at in range(1, len(kinds) + 1)]
    chain = made_chain(["Match", *kinds], edges)
    return compile_rack(made_plan((chain, " ".join(["switch"] * len(chain.nfs)))), "plan", shares=shares).switch


def _in_a_row(kinds: list[str]) -> SwitchProgram:
    return compile_rack(made_plan((made_chain(kinds), " ".join(["switch"] * len(kinds)))), "plan").switch


def test_branches_share_stages_and_rows_do_not() -> None:
    """Ten NATs side by side take 8 stages, ten in a row 30: exclusive branches depend on nothing of one another."""
    assert stages_of(_branched(["NAT"] * 10, shares=False)) == 8
    assert stages_of(_in_a_row(["NAT"] * 10)) == 30


def test_one_table_for_ten_nats_saves_stages() -> None:
    """Their 65,536 endpoints lie in one table, whose key has the NF as well."""
    shared = _branched(["NAT"] * 10, shares=True)
    assert len(shared.tables) == 1
    assert stages_of(shared) == 5


def test_nfs_with_other_constants_do_not_share() -> None:
    """LBs with the same seed hash alike and share a table; those with different ones do not."""
    alike = ("LB", {"seed": 1.0, "table": 8.0})
    other = ("LB", {"seed": 2.0, "table": 8.0})
    assert len(_branched([alike, alike], shares=True).tables) == 1
    assert len(_branched([alike, other], shares=True).tables) == 2


@pytest.mark.parametrize("shares", [False, True])
def test_entries_of_all_nfs_are_in_the_shared_table(shares: bool) -> None:
    """ACLs with different filters share; each entry is of one of them."""
    acls: list[str | tuple[str, Mapping[str, float]]] = [("ACL", {"rules": 8.0, "seed": float(at)}) for at in (1, 2, 3)]
    tables = _branched(acls, shares=shares).tables
    assert len(tables) == (1 if shares else 3)
    nodes = {entry.key[-1] for table in tables for entry in table.entries}
    assert not shares or nodes == {(2, 0xFFFF), (3, 0xFFFF), (4, 0xFFFF)}


def test_the_parser_is_the_union() -> None:
    """Each transition once; those that only one NF has are there."""
    assert set(merge_parser([("a", PLAIN_EDGES), ("b", TO_IPV4), ("c", TO_PORTS)])) == set(TO_PORTS)
    assert len(merge_parser([("a", TO_PORTS), ("b", TO_PORTS)])) == len(set(TO_PORTS))


def test_a_conflict_is_refused_with_both_nfs() -> None:
    """Two NFs that find different headers behind the same value cannot share a switch (Lemur, A.2.1)."""
    test = (FieldTest("h.ethernet.type", 0x88B5),)
    one, other = ParserEdge("ethernet", "probe", test), ParserEdge("ethernet", "trace", test)
    with pytest.raises(InputError) as refused:
        merge_parser([("c/probe", [*PLAIN_EDGES, one]), ("c/trace", [*PLAIN_EDGES, other])])
    message = "c/trace: cannot share a parser with c/probe: behind ethernet, where h.ethernet.type is 0x88b5, "
    assert message + "one finds trace, the other probe" in str(refused.value)
