"""Tables packed into stages: figures of Lemur's evaluation, cases by hand, and any small program by trying all."""

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.chain import Chain
from placer.rack.files.json_twins import chains_of
from placer.rack.rack import SRAM_MEMORY, TCAM_MEMORY, MatchKind, StageMemory, SwitchTable
from placer.rack.stages.tables.packing import (
    TABLE_LIBRARY,
    DependencyKind,
    Memories,
    PlacedTable,
    TableDependency,
    TablePacking,
    TableProgram,
    fewest_stages,
    table_need,
    table_program,
)
from tests.effort import examples
from tests.placer.rack.small import chain

SWITCH = Memories(TCAM_MEMORY, SRAM_MEMORY)


def nats(number: int) -> Chain:
    """A Match in front of so many NATs, each on a branch, and the routes behind them."""
    branches = [f"n{at}" for at in range(number)]
    edges = [["m", one, f"1/{number}"] for one in branches] + [[one, "r"] for one in branches]
    nfs = [{"id": "m", "nf": "Match"}, *({"id": one, "nf": "NAT"} for one in branches), {"id": "r", "nf": "IPv4Fwd"}]
    return chains_of({"chains": [chain("c", "") | {"nfs": nfs, "edges": edges}]}, "chains")[0]


def everything(*chains: Chain) -> frozenset[tuple[int, int]]:
    return frozenset((at, nf) for at, one in enumerate(chains) for nf in range(len(one.nfs)))


@pytest.mark.parametrize(
    ("number", "shared", "by_field", "in_series"),
    [
        (10, 12, 14, 27),  # as the compiler and two estimates say (section 5.2)
        (11, 13, 15, 29),  # beyond the switch's 12 stages
    ],
)
def test_ten_branched_nats_fit_twelve_stages_and_eleven_do_not(
    number: int, shared: int, by_field: int, in_series: int
) -> None:
    """Branches may share stages; fields that begin blocks of their own, or NFs in series, take more."""
    one = nats(number)
    program = table_program(everything(one), [one], TABLE_LIBRARY)
    series = table_program(everything(one), [one], TABLE_LIBRARY, branches_share=False)
    assert fewest_stages(program, SWITCH) == shared
    assert fewest_stages(program, SWITCH, by_field=True) == by_field
    assert fewest_stages(series, SWITCH) == in_series


def test_the_nats_table_takes_twelve_blocks_of_tcam() -> None:
    """2,000 entries are four rows of 512, 99 bits three columns of 44; sixteen blocks if each field has its own."""
    translations = TABLE_LIBRARY["NAT"][1]
    assert sum(translations.key.values()) == 99
    need = table_need(translations, SWITCH)
    assert (need.memory, need.columns, need.rows) == (0, 3, 4)
    assert table_need(translations, SWITCH, by_field=True).columns == 4


def kinds(first: SwitchTable, second: SwitchTable, number: int = 1) -> list[DependencyKind]:
    """The dependencies between two NFs of one table each, one behind the other or in two chains."""
    tables = {"A": [first], "B": [second]}
    texts = [chain("a", "AB")] if number == 1 else [chain("a", "A"), chain("b", "B")]
    chains = chains_of({"chains": texts}, "chains")
    found = table_program(everything(*chains), chains, tables).dependencies
    return [one.kind for one in found if one.before]


@pytest.mark.parametrize(
    ("writes", "key", "also_writes", "expected"),
    [
        (("x",), {"x": 8}, (), DependencyKind.MATCH),
        (("x",), {"y": 8}, ("x",), DependencyKind.ACTION),
        (("x",), {"y": 8}, ("k",), DependencyKind.REVERSE_MATCH),
        (("x",), {"y": 8}, ("z",), None),
        (("meta.x",), {"meta.x": 8}, (), None),  # fields of one NF alone
    ],
)
def test_a_table_waits_for_what_it_reads_and_writes(
    writes: tuple[str, ...], key: dict[str, int], also_writes: tuple[str, ...], expected: DependencyKind | None
) -> None:
    """Match, action and reverse match; nothing between chains, which no packet passes both."""
    first = SwitchTable("one", {"k": 8}, writes=writes)
    second = SwitchTable("other", key, writes=also_writes)
    assert kinds(first, second) == ([expected] if expected else [])
    assert kinds(first, second, number=2) == []


def test_packets_that_leave_the_switch_in_between_end_a_dependency() -> None:
    """They come back to the first stage, so tables before and behind a server wait for nothing of one another."""
    (one,) = chains_of({"chains": [chain("a", "AXA")]}, "chains")
    tables = {"A": [SwitchTable("one", {"k": 8}, writes=("k",))], "X": [SwitchTable("other", {"z": 8})]}
    both = table_program(frozenset({(0, 0), (0, 2)}), [one], tables)
    assert [each for each in both.dependencies if each.before] == []
    assert len([each for each in table_program(everything(one), [one], tables).dependencies if each.before]) == 1


def test_a_table_wider_than_a_stage_fits_none() -> None:
    wide = SwitchTable("wide", {"k": 10_000}, MatchKind.TERNARY)
    assert fewest_stages(TableProgram((PlacedTable("wide", wide),), ()), SWITCH) is None


def test_no_table_fits_no_stage() -> None:
    assert fewest_stages(TableProgram((), ()), SWITCH) == 0


@st.composite
def programs(draw: st.DrawFn) -> TableProgram:
    """Two to five tables with rows of one or two blocks, and dependencies between them."""
    tables = []
    for at in range(draw(st.integers(2, 5))):
        ternary = draw(st.booleans())
        key = {"k": draw(st.sampled_from([1, 1, 2]))} if draw(st.integers(0, 5)) else {}
        table = SwitchTable(f"t{at}", key, MatchKind.TERNARY if ternary else MatchKind.EXACT, draw(st.integers(1, 3)))
        tables.append(PlacedTable(table.name, table))
    pairs = [(one, other) for other in range(len(tables)) for one in range(other)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=5))
    strict = st.sampled_from([DependencyKind.MATCH, DependencyKind.SUCCESSOR])
    return TableProgram(tuple(tables), tuple(TableDependency(*pair, draw(strict)) for pair in chosen))


def layings(rows: int, stages: int) -> Iterator[tuple[int, ...]]:
    """All ways to split rows over stages."""
    return (one for one in product(range(rows + 1), repeat=stages) if sum(one) == rows)


def tried(program: TableProgram, memories: Memories, stages: int) -> bool:
    """Whether a program fits, by trying every laying of every table."""
    needs = [table_need(one.table, memories) for one in program.tables]
    waits: list[list[TableDependency]] = [[] for _ in needs]
    for one in program.dependencies:
        waits[one.after].append(one)
    laid: list[tuple[int, int]] = []

    @cache
    def ways(rows: int) -> list[tuple[int, ...]]:
        return list(layings(rows, stages))

    def lay(free: tuple[tuple[int, ...], ...]) -> bool:
        at = len(laid)
        if at == len(needs):
            return True
        need = needs[at]
        for way in ways(need.rows):
            used = [stage for stage in range(stages) if way[stage]]
            left = tuple(blocks - need.columns * rows for blocks, rows in zip(free[need.memory], way, strict=True))
            early = any(used[0] < laid[one.before][1] + one.kind.is_strict for one in waits[at])
            if early or min(left) < 0:
                continue
            laid.append((used[0], used[-1]))
            if lay(tuple(left if kind == need.memory else each for kind, each in enumerate(free))):
                return True
            laid.pop()
        return False

    return lay(((memories.tcam.blocks,) * stages, (memories.sram.blocks,) * stages))


@settings(max_examples=examples(60))
@given(programs(), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4))
def test_any_small_program_fits_as_all_ways_to_lay_it_say(
    program: TableProgram, tcam: int, sram: int, stages: int
) -> None:
    """List scheduling, the proof from windows and CP-SAT together, and CP-SAT alone."""
    memories = Memories(StageMemory(tcam, 1, 1), StageMemory(sram, 1, 1))
    packing = TablePacking(program, memories)
    expected = tried(program, memories, stages)
    assert packing.fits(stages) == expected
    if not packing.too_wide:
        ends = zip(packing.heads, packing.spans, packing.tails, strict=True)
        if all(head + span + tail <= stages for head, span, tail in ends):
            assert packing.fits_by_solver(stages) == expected
