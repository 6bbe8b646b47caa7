"""The pattern table, on one NIC of four cores."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.sla import Sla
from placer.policy.class_index import ClassIndex
from placer.policy.lowered import ReachablePatterns
from placer.policy.pattern_table import PatternTable, TooManyPatterns
from placer.policy.rules import LOOK_AHEAD
from profiles import CoLocation, TrafficProfile, Workload


def rows_of(table: PatternTable) -> list[tuple[int, ...]]:
    return [tuple(row) for row in table.counts.tolist()]


def test_the_table_holds_all_co_locations_with_the_empty_one_first() -> None:
    """Four cores hold up to four small NFs, or a big one with or without a small one."""
    rows = rows_of(TABLE)
    assert rows[0] == (0, 0) and sorted(rows) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1)]
    assert TABLE.above(rows.index((1, 0))).tolist() == [rows.index((1, 0)), rows.index((1, 1))]
    assert TABLE.kpps[rows.index((0, 2))].tolist() == [0.0, 80.0]
    assert TABLE.free.tolist() == [4 - 3 * big - small for big, small in rows]
    assert TABLE.part_of[rows.index((1, 1)), 0] == rows.index((0, 1))


def test_co_locations_that_violate_every_sla_are_left_out() -> None:
    """Small NFs lose 20 % next to each other; where none accepts more than 10 %, they share with big ones only."""
    table = PatternTable(KIND, [BIG, SMALL], SmallSlowsSmall(), lambda workload, solo: 0.1)
    assert sorted(rows_of(table)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    index = ClassIndex(table, LOOK_AHEAD)
    accepting = {drop: index.covers(Tenant("1", SMALL, Sla(max_drop=drop))) for drop in (0.05, 0.1, 0.15)}
    assert accepting == {0.05: True, 0.1: True, 0.15: False}
    assert not index.covers(Tenant("1", Workload("small", TrafficProfile(2, 64)), Sla(max_drop=0.1)))
    assert index.covers(Tenant("1", Workload("not hosted", TrafficProfile(1, 64)), Sla(max_drop=0.1)))


def test_throughput_outside_the_table_is_asked_for() -> None:
    """Two small NFs are not in the table, and each would get 80 kpps."""
    table = PatternTable(KIND, [BIG, SMALL], SmallSlowsSmall(), lambda workload, solo: 0.1)
    small = table.columns[SMALL]
    assert table.kpps_with((small,), small) == 80.0 and table.kpps_with((), small) == 100.0


@given(st.integers(0, 6), st.lists(st.sampled_from([0.0, 79.9, 80.0, 80.1, 100.0, 100.1]), min_size=2, max_size=2))
def test_patterns_are_reachable_where_every_tenant_gets_what_it_requires(pattern: int, kpps: list[float]) -> None:
    """However many patterns with other requirements were asked for before."""
    required = {column: kpps[column] for column in (0, 1) if TABLE.counts[pattern, column]}
    met = [all(TABLE.kpps[above, at] >= least for at, least in required.items()) for above in TABLE.above(pattern)]
    assert list(REACHABLE.flags(pattern, required)) == met


def test_too_many_co_locations_are_refused_early() -> None:
    """Fifty-nine workloads of one core each form more co-locations on twelve cores than memory holds."""
    kind = NicKind(0, "wide", 12, {"small": 1})
    many = [Workload("small", TrafficProfile(i, 64)) for i in range(1, 60)]
    with pytest.raises(TooManyPatterns):
        PatternTable(kind, many, SmallSlowsSmall())
    assert len(PatternTable(kind, many[:3], SmallSlowsSmall()).counts) == 455
    assert len(PatternTable(KIND, [BIG, SMALL], SmallSlowsSmall(), most=7).counts) == 7
    with pytest.raises(TooManyPatterns):
        PatternTable(KIND, [BIG, SMALL], SmallSlowsSmall(), most=6)


BIG, SMALL = (Workload(nf, TrafficProfile(1, 64)) for nf in ("big", "small"))
KIND = NicKind(0, "toy", 4, {"big": 3, "small": 1})


class SmallSlowsSmall(Oracle):
    """No contention, except that small NFs lose 20 % where they share a NIC."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [
            [80.0 if w == SMALL and co_location.count(SMALL) > 1 else 100.0 for w in co_location]
            for co_location in co_locations
        ]


TABLE = PatternTable(KIND, [BIG, SMALL], SmallSlowsSmall())
REACHABLE = ReachablePatterns(TABLE)
