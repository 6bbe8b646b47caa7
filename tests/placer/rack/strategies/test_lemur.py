"""The strategies on Lemur's 40 instances: five sets of chains, each at eight least rates."""

from functools import cache
from typing import Any

import pytest

from placer.rack.plan import RackPlan, answer
from placer.rack.strategies import CHAIN_STRATEGIES
from tests.placer.rack.exhaustive import faults
from tests.placer.rack.lemur import OPTIMA_GBPS, RATE_DELTAS, chain_json, chains, rack, rack_json

FEASIBLE = {
    "optimal": 34,
    "lemur": 34,
    "hardware-preferred": 22,
    "greedy": 22,
    "software-preferred": 5,
    "minimum-bounce": 5,
    "no-profiling": 14,
    "no-core-allocation": 10,
}
"""Of the 40 instances, how many a strategy places."""
EACH = [pytest.param(name, marks=() if name in ("optimal", "greedy") else pytest.mark.long) for name in FEASIBLE]


@cache
def plans(strategy: str) -> dict[tuple[tuple[int, ...], float], RackPlan]:
    """The plan for each instance."""
    place = CHAIN_STRATEGIES[strategy]
    return {
        (numbers, delta): place(chains(numbers, delta), rack(), time_limit=60, notify=print)
        for numbers in OPTIMA_GBPS
        for delta in RATE_DELTAS
    }


def test_these_are_all_strategies() -> None:
    assert set(CHAIN_STRATEGIES) == set(FEASIBLE)
    assert next(iter(CHAIN_STRATEGIES)) == "optimal"


@pytest.mark.long
@pytest.mark.parametrize("strategy", EACH)
def test_a_strategy_places_as_many_instances_as_in_the_comparison(strategy: str) -> None:
    assert sum(bool(plan.chains) for plan in plans(strategy).values()) == FEASIBLE[strategy]


@pytest.mark.long
@pytest.mark.parametrize("strategy", EACH)
def test_no_strategy_is_better_than_the_published_optimum(strategy: str) -> None:
    """Nor places an instance that is infeasible."""
    for (numbers, delta), plan in plans(strategy).items():
        optimum = OPTIMA_GBPS[numbers][RATE_DELTAS.index(delta)]
        assert sum(one.rate_mbps for one in plan.chains) / 1000 <= (optimum or 0.0) + 0.005


@pytest.mark.parametrize("strategy", EACH)
@pytest.mark.long
def test_plans_keep_all_limits(strategy: str) -> None:
    """Rivals give no bound."""
    for (numbers, delta), plan in plans(strategy).items():
        asked = {"chains": [chain_json(number, delta) for number in numbers]}
        given: dict[str, Any] = dict(answer(plan))
        if plan.chains:
            assert (
                faults(asked, rack_json(), given | {"bound_mbps": given["bound_mbps"] or given["marginal_mbps"]}) == []
            )


@pytest.mark.long
def test_lemurs_heuristic_is_the_optimum_in_thirty_instances() -> None:
    """It falls short in the four with chains 1, 3 and 4 at the least rates; the paper found one such instance."""
    best, found = plans("optimal"), plans("lemur")
    short = {at for at, plan in found.items() if plan.chains and plan.marginal_mbps < best[at].marginal_mbps * 0.999}
    assert short == {((1, 3, 4), delta) for delta in (0.5, 1, 1.5, 2)}


@pytest.mark.long
def test_without_core_allocation_rates_do_not_depend_on_the_least_ones() -> None:
    """A core each, at most 1 times the base rate: only the first two deltas."""
    assert {delta for (_, delta), plan in plans("no-core-allocation").items() if plan.chains} == {0.5, 1}


@pytest.mark.long
def test_without_a_plan_the_reason_is_noted() -> None:
    plan = plans("software-preferred")[(1, 2, 3, 4), 4]
    assert plan.status.value == "unknown" and plan.notes and "t_min" in plan.notes[0]
