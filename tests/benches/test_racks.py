"""The benchmark of racks: its brute force finds the optimum, and its table has what it promises."""

from __future__ import annotations

import pytest

from benches.racks import run
from experiments.lemur.methodology.brute_force import BruteForce
from placer.rack.place import best_plan
from tests.placer.rack import lemur


@pytest.mark.parametrize("delta", [0.5, 2])
@pytest.mark.parametrize("numbers", [(1, 3), (2, 3)])
def test_the_brute_force_finds_the_optimum(numbers: tuple[int, ...], delta: float) -> None:
    """Tried over all patterns, it is as good as the search."""
    chains, rack = lemur.chains(numbers, delta), lemur.rack()
    found = BruteForce(chains, rack).fast(60)
    assert (found.tried, found.all_seconds) == (found.patterns, found.seconds)
    assert found.marginal == pytest.approx(best_plan(chains, rack).marginal_mbps, rel=1e-9)


def test_programs_for_each_allocation_give_nothing_else() -> None:
    """Of the patterns that were drawn, the best is at most the optimum, and the time for all is extrapolated."""
    force = BruteForce(lemur.chains((3,), 0.5), lemur.rack())
    found = force.published(0.2)
    assert found.marginal == pytest.approx(force.fast(60).marginal)
    assert found.all_seconds == pytest.approx(found.seconds * 4 / found.tried)


def test_infeasible_chains_have_no_optimum() -> None:
    assert BruteForce(lemur.chains((3,), 20), lemur.rack()).fast(60).marginal is None


@pytest.mark.long
def test_the_table_has_plans_brute_forces_and_replans(monkeypatch: pytest.MonkeyPatch) -> None:
    """With three servers; the gap is 0, and three times the least rate takes one move."""
    monkeypatch.setattr("benches.racks.SERVERS", (3,))
    monkeypatch.setattr("benches.racks.SETS", ("13",))
    table = run(largest=3, brute=2.0)
    assert list(table["method"]) == ["placer", "brute force, vectorised", "brute force", "placer", "replan", "replan"]
    assert list(table["gap_pct"])[3:] == [0, 0, 0]
    assert list(table["moves"])[4:] == [0, 1]
    assert table["same_optimum"][1] == "yes"
