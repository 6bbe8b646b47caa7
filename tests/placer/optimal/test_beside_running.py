"""The optimum beside instances that already run, on cases worked by hand and against exhaustive search."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings

import placer.optimal
from placer.evaluate.checks import check_plan, slas_kept
from placer.evaluate.evaluation import evaluate, to_buy
from placer.model.arrival import Arrival
from placer.model.running import running_nics
from placer.optimal import optimal_plan
from placer.optimal.certificate import refuse_uncertifiable
from placer.optimal.trace_optimum import find_optimum
from placer.testing.strategies import ToyCatalogue, ToyOracle, arrival, catalogue
from profiles import InputError
from tests.placer.optimal.exhaustive_trace import exhaustive_trace
from tests.properties.test_trace_optimum import SmallTrace, traces_with_running

RUNNING = [
    arrival("c", 9, "c", 0.09, nic="x"),
    arrival("c2", 9, "c", 0.1, nic="y"),
    arrival("b1", 9, "b", 0.5, nic="y"),
    arrival("b2", 9, "b", 0.5, nic="y"),
]
FURTHER = [arrival(f"d{number}", number, "d", 0.5) for number in range(3)]


def optimum_of(arrivals: list[Arrival], nics: ToyCatalogue) -> tuple[dict[str, str | None], int, float, float, bool]:
    """The NIC of each instance, the NICs, their cost, the bound on it, and whether it is proven; all checked."""
    found = find_optimum(arrivals, nics, [ToyOracle() for _ in nics.kinds], time_limit=10)
    check_plan(found.plan, arrivals, nics.kinds)
    assert not list(slas_kept(found.plan, [ToyOracle() for _ in nics.kinds]))
    homes = {placement.arrival.id: placement.nic for placement in found.plan.placements}
    return homes, found.nics, found.cost, found.lower_bound, found.proven


@pytest.mark.parametrize("leaves", [None, 20.0])
def test_nics_in_use_are_filled_as_far_as_their_slas_allow(leaves: float | None) -> None:
    """c on x loses 6 % next to one d, 12 % next to two, and accepts 9 %.

    On y, c loses 20 % next to two b: it is broken before, and bars all. Three d take more cores than a NIC has. So one
    is on x, two share a new NIC, and three NICs are the least; if what arrives leaves again, too.
    """
    trace = [*(replace(one, departure=leaves) for one in FURTHER), *RUNNING]
    homes, nics, cost, bound, proven = optimum_of(trace, catalogue())
    assert (nics, cost, bound, proven) == (3, 3.0, 3.0, True)
    assert sorted(str(homes[one.id]) for one in FURTHER) == ["nic-3", "nic-3", "x"]


def test_what_leaves_makes_room() -> None:
    """y is whole again when b2 leaves at 4 s, but c would lose 14 % beside b and a, and 16 % beside b and d.

    So a goes to x, and when b1 leaves, at 5 s, d fits beside c on y: no further NIC is needed. Two d at 4 s need one.
    """
    leaving = {"b1": 5.0, "b2": 4.0}
    running = [replace(one, time=0, departure=leaving.get(one.id)) for one in RUNNING]
    homes, nics, *_, proven = optimum_of([*running, arrival("a", 4, "a", 0.5), arrival("d", 5, "d", 0.5)], catalogue())
    assert (homes["a"], homes["d"], nics, proven) == ("x", "y", 2, True)
    homes, nics, *_, proven = optimum_of(
        [*running, arrival("d", 4, "d", 0.5), arrival("d2", 4, "d", 0.5)], catalogue((2, 1.0))
    )
    assert ([homes["d"], homes["d2"]].count("x"), [homes["d"], homes["d2"]].count(None)) == (1, 1)
    assert (nics, proven) == (2, True)


def test_a_limited_fleet_lacks_what_does_not_fit_beside_what_runs() -> None:
    """Of two NICs both are in use: two of three arrivals are left out, and one more NIC is enough for them."""
    nics = catalogue((2, 1.0))
    found = find_optimum([*FURTHER, *RUNNING], nics, [ToyOracle()], time_limit=10)
    assert (found.plan.rejected, found.nics, found.proven) == (2, 2, True)
    assert found.shortfall is not None
    assert (found.shortfall.proven, found.shortfall.to_add, found.shortfall.everything) == (True, {"toy-0": 1}, False)


def test_only_what_already_runs_is_a_plan_too() -> None:
    """Nothing is decided; its broken SLA is counted, and the NICs in use are the optimum."""
    homes, nics, cost, bound, proven = optimum_of(RUNNING, catalogue())
    assert set(homes.values()) == {"x", "y"}
    assert (nics, cost, bound, proven) == (2, 2.0, 2.0, True)
    found = find_optimum(RUNNING, catalogue(), [ToyOracle()], time_limit=10)
    assert evaluate(found.plan, catalogue().kinds, [ToyOracle()]).violated == 1


@pytest.mark.parametrize("leaves", [None, 50.0])
def test_of_plans_that_cost_the_same_owned_nics_are_used(leaves: float | None) -> None:
    """Five d that share with nobody need five NICs: of the second kind three are owned, and one of these is in use."""
    nics = catalogue((None, 1.0), (None, 1.0), (None, 2.0))
    kinds = (nics.kinds[0], replace(nics.kinds[1], owned=3, names=("x",)), nics.kinds[2])
    nics = replace(nics, kinds=kinds)
    trace = [arrival("0", 0, "d", 0.0, leaves, nic="x"), *(arrival(str(i), 1, "d", 0.0, leaves) for i in range(1, 5))]
    found = find_optimum(trace, nics, [ToyOracle() for _ in kinds], time_limit=10)
    check_plan(found.plan, trace, kinds)
    assert (found.cost, found.proven) == (5, True)
    assert sum(to_buy(found.plan, kinds).values()) == 2


def test_what_already_runs_is_not_certified() -> None:
    """A certificate is of a plan from the start."""
    with pytest.raises(InputError, match="instances of the trace already run"):
        refuse_uncertifiable(RUNNING)


@pytest.mark.long
@given(traces_with_running(departures=False))
@settings(max_examples=40, deadline=None)
def test_without_all_co_locations_the_plan_and_the_bound_are_valid(trace: SmallTrace) -> None:
    """The neighbourhood search, too, keeps what runs where it is, and its bounds are no higher than the optimum."""
    arrivals, kinds, oracles = trace
    arrivals = [replace(one, time=0.0) for one in arrivals]
    running = running_nics(arrivals, kinds)
    further = [one.tenant for one in arrivals if one.nic is None]
    with patch.object(placer.optimal, "MOST_CO_LOCATIONS", 0):
        optimum = optimal_plan(further, kinds, oracles, time_limit=0.03, running=running)
    best = exhaustive_trace(arrivals, kinds, oracles)
    for nic in running:
        assert any(kind is nic.kind and set(nic.tenants) <= set(tenants) for kind, tenants in optimum.nics)
    assert (best.rejected, best.cost) <= (len(optimum.unplaced), optimum.cost + 1e-9)
    assert optimum.cost == pytest.approx(sum(kind.cost for kind, _ in optimum.nics))
    if best.rejected == len(optimum.unplaced):
        assert optimum.lower_bound <= best.cost + 1e-9
        assert optimum.nics_lower_bound <= best.nics
    if optimum.proven:
        assert optimum.cost == pytest.approx(best.cost)
