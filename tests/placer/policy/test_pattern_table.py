"""The pattern table, on one NIC of four cores."""

from __future__ import annotations

from placer.model.fleet import NicKind
from placer.policy.pattern_table import too_many
from profiles import TrafficProfile, Workload
from tests.placer.policy.test_forecast import BIG, KIND, SMALL, TABLE


def test_the_table_holds_all_co_locations_with_the_empty_one_first() -> None:
    """Four cores hold up to four small NFs, or a big one with or without a small one."""
    rows = [tuple(row) for row in TABLE.counts.tolist()]
    assert rows[0] == (0, 0)
    assert sorted(rows) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1)]
    assert TABLE.above(rows.index((1, 0))).tolist() == [rows.index((1, 0)), rows.index((1, 1))]
    assert TABLE.kpps[rows.index((0, 2))].tolist() == [0.0, 80.0]


def test_too_many_co_locations_are_counted_without_enumerating_them() -> None:
    """Fifty-nine workloads of one core each form more co-locations on twelve cores than memory holds."""
    kind = NicKind(0, "wide", 12, {"small": 1})
    many = [Workload("small", TrafficProfile(i, 64)) for i in range(1, 60)]
    assert too_many(kind, many)
    assert not too_many(kind, many[:3])
    assert not too_many(KIND, [BIG, SMALL], most=7)
    assert too_many(KIND, [BIG, SMALL], most=6)
