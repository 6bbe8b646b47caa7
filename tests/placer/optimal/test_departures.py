"""The optimum of traces with departures: moments, bounds, and plans without migration."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placer.optimal.moment_search
from placer.evaluate.checks import check_plan, peak_nics, slas_kept
from placer.evaluate.evaluation import evaluate
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Plan
from placer.model.sla import Sla
from placer.optimal.bounded_plan import BoundedPlan
from placer.optimal.cores_bound import cores_bounds
from placer.optimal.departures import bound_over_time, fullest_moment, peaks, plan_over_time, present_at
from placer.optimal.trace_optimum import find_optimum
from tests.effort import examples
from tests.placer.optimal.exhaustive import exhaustive_plan
from tests.placer.optimal.instances import TableOracle, workload
from tests.properties.test_optimal import Instance, instances

KIND = NicKind(0, "bluefield-2", 4, {"acl": 2, "nat": 2, "nids": 4})


def stay(identity: str, nf: str, begins: float, ends: float | None = None) -> Arrival:
    """A stay of an NF that tolerates a drop of a tenth."""
    return Arrival(identity, begins, workload(nf), Sla(max_drop=0.1), departure=ends)


def test_moments_are_those_before_a_departure() -> None:
    """a and b, then b departs and c and d arrive: four cores, then six, which is the fullest moment."""
    trace = [stay("a", "acl", 0), stay("b", "acl", 1, 2), stay("c", "acl", 2), stay("d", "nat", 3)]
    moments = peaks(trace, [KIND])
    assert [[trace[i].id for i in present_at(trace, moment)] for moment in moments] == [["a", "c", "d"], ["a", "b"]]


def test_a_plan_takes_later_arrivals_into_account() -> None:
    """b fits with a, but only c will fit with a later: a plan that knows this needs two NICs, and two are the bound."""
    oracle = TableOracle({"acl nat": [50, 50], "acl acl": [95, 95], "nat nat": [95, 95], "nids": [100]})
    trace = [stay("a", "acl", 0), stay("b", "nat", 1, 3), stay("c", "acl", 2), stay("d", "nat", 2.5)]
    fullest = fullest_moment(trace, [KIND], [oracle], seconds=5, solver="cp-sat")
    placed = plan_over_time(trace, [KIND], [oracle], fullest, deadline=math.inf)
    assert placed is not None
    homes = {placement.arrival.id: placement.nic for placement in placed}
    assert homes["a"] == homes["c"] != homes["b"] == homes["d"]
    bound = bound_over_time(trace, [KIND], [oracle], fullest, enough=2, seconds=5, solver="cp-sat")
    assert (bound.lower_bound, bound.nics_lower_bound, bound.examined) == (2, 2, 1)


def test_a_moment_with_fewer_cores_taken_may_need_more_nics() -> None:
    """Six ACLs that can share need two NICs; two NIDS and a NAT that cannot, with fewer cores in all, need three."""
    kind = replace(KIND, cores=8)
    alone = {"nat nids": [50, 50], "nids nids": [50, 50]}
    trace = [stay(f"a{i}", "acl", 0, 5) for i in range(6)]
    trace += [stay("n1", "nids", 6), stay("n2", "nids", 7), stay("n3", "nat", 8)]
    oracle = TableOracle(alone)
    fullest = fullest_moment(trace, [kind], [oracle], seconds=5, solver="cp-sat")
    assert fullest.lower_bound == 2
    bound = bound_over_time(trace, [kind], [oracle], fullest, enough=9, seconds=5, solver="cp-sat")
    assert (bound.lower_bound, bound.examined, bound.moments) == (3, 2, 2)


def trace_of(tenants: list[Tenant], times: list[tuple[int, int | None]]) -> list[Arrival]:
    """The tenants as arrivals, each with a time and a length of its stay, None for no departure."""
    return [
        Arrival(
            one.id, float(begins), one.workload, one.sla, departure=None if lasts is None else float(begins + lasts)
        )
        for one, (begins, lasts) in zip(tenants, sorted(times, key=lambda time: time[0]), strict=False)
    ]


@given(instances(), st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4) | st.none()), min_size=6, max_size=6))
@settings(max_examples=examples(80))
def test_the_plan_has_no_violations_and_the_bound_is_valid(
    given_: Instance, times: list[tuple[int, int | None]]
) -> None:
    """Whatever the oracle: no SLA or constraint is ever violated, and some moment needs what the bound requires."""
    tenants, kinds, oracles = given_
    trace = trace_of(tenants, times)
    if not trace:
        return
    fullest = fullest_moment(trace, kinds, oracles, seconds=5, solver="cp-sat")
    placed = plan_over_time(trace, kinds, oracles, fullest, deadline=math.inf)
    assert placed is not None
    plan = Plan("optimal", None, tuple(placed), 0.0)
    check_plan(plan, trace, kinds)
    assert list(slas_kept(plan, oracles)) == []
    bound = bound_over_time(trace, kinds, oracles, fullest, enough=math.inf, seconds=5, solver="cp-sat")
    needed = [
        exhaustive_plan([trace[i].tenant for i in present_at(trace, moment)], kinds, oracles)
        for moment in peaks(trace, kinds)
    ]
    assert bound.lower_bound <= max((0.0 if one.unplaced else one.cost) for one in needed) + 1e-9
    if not plan.rejected:
        assert bound.nics_lower_bound <= peak_nics(plan)


def found(trace: list[Arrival], kinds: list[NicKind], oracles: list[Oracle]) -> BoundedPlan:
    """The optimum of the trace, after a check of every constraint and SLA."""
    optimum = find_optimum(trace, Catalogue(tuple(kinds), (), ()), oracles, time_limit=5)
    check_plan(optimum.plan, trace, kinds)
    assert list(slas_kept(optimum.plan, oracles)) == [] and evaluate(optimum.plan, kinds, oracles).violated == 0
    assert optimum.lower_bound <= optimum.cost + 1e-9 and optimum.nics_lower_bound <= optimum.nics
    return optimum


@given(instances(), st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4) | st.none()), min_size=6, max_size=6))
@settings(max_examples=examples(100))
def test_the_optimum_of_a_random_trace_has_no_violations(given_: Instance, times: list[tuple[int, int | None]]) -> None:
    """Whatever arrives, departs or is rejected: no SLA is ever violated, and no bound is above the plan."""
    tenants, kinds, oracles = given_
    found(trace_of(tenants, times), kinds, oracles)


NEEDS_THREE = [stay("a", "acl", 0), stay("b", "acl", 1), stay("c", "acl", 2)]
FAST_AS_THREE = TableOracle({"acl acl": [50, 50], "acl acl acl": [95, 95, 95]})


def test_an_sla_is_met_before_later_arrivals_help() -> None:
    """Three ACLs on a NIC are fast and two are slow: one NIC is enough at the end, but only two are there before."""
    plan = found(NEEDS_THREE, [replace(KIND, cores=6)], [FAST_AS_THREE])
    assert (plan.nics, plan.lower_bound, plan.proven) == (3, 3, True)


def test_cores_that_instances_are_given_count_in_searches_and_bounds() -> None:
    """Two cores by default and one that is given fill a NIC of three; four and seven times one are eleven, of eight."""
    kind = replace(KIND, cores=3, core_counts={"acl": (1, 2)})
    trace = [stay("a", "acl", 0), replace(stay("b", "acl", 1), workload=replace(workload("acl"), cores=1))]
    oracle = TableOracle({"acl acl": [95, 95]})
    most = (9,), Fraction(9), 0
    found = placer.optimal.moment_search.search_moments(trace, [kind], [oracle], better_than=most, deadline=math.inf)
    assert found is not None and found.placements is not None
    assert {placement.nic for placement in found.placements} == {"nic-1"}
    given = [Tenant(f"{at}", replace(workload("acl"), cores=1 if at else 4), Sla(max_drop=0.1)) for at in range(8)]
    assert cores_bounds(given, [replace(KIND, cores=8, core_counts={"acl": (1, 2, 4)})], 0, 1.0) == (2, 2)


def test_arrivals_at_one_time_are_one_moment() -> None:
    """The same three at one time share a NIC: a co-location counts when all arrivals of its time are placed."""
    plan = found([replace(one, time=0.0) for one in NEEDS_THREE], [replace(KIND, cores=6)], [FAST_AS_THREE])
    assert (plan.nics, plan.proven) == (1, True)


@pytest.fixture
def no_exhaustive_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the search of all plans give up at once, as it does for long traces."""
    monkeypatch.setattr(placer.optimal.moment_search, "MOST_STEPS", 0)


def test_without_exhaustive_search_the_bound_stays_below(no_exhaustive_search: None) -> None:
    """The static bound of one NIC is valid, but no plan reaches it, so nothing is proven."""
    plan = found(NEEDS_THREE, [replace(KIND, cores=6)], [FAST_AS_THREE])
    assert (plan.nics, plan.lower_bound, plan.proven) == (3, 1, False)


@pytest.mark.parametrize("exhaustive", [False, True])
def test_the_bound_covers_only_arrivals_that_are_placed(request: pytest.FixtureRequest, exhaustive: bool) -> None:
    """One NIC of two cores: of two tenants at a time one is rejected, as exhaustive search proves; no NIC for it."""
    if not exhaustive:
        request.getfixturevalue("no_exhaustive_search")
    trace = [stay("a", "acl", 0, 2), stay("b", "acl", 1, 3), stay("c", "acl", 4, 5)]
    plan = found(trace, [replace(KIND, cores=2, count=1)], [TableOracle({})])
    assert (plan.plan.rejected, plan.nics, plan.lower_bound, plan.proven) == (1, 1, 1, exhaustive)
    assert not exhaustive or (plan.shortfall is not None and plan.shortfall.proven)


def test_an_unsatisfiable_arrival_is_named_and_the_rest_is_proven() -> None:
    """An SLA above what the NF gets alone is met nowhere; for the other arrivals one NIC is enough and needed."""
    demanding = Arrival("demanding", 0.0, workload("acl"), Sla(min_kpps=101))
    optimum = found([demanding, stay("a", "acl", 1, 3), stay("b", "acl", 2)], [KIND], [TableOracle({})])
    assert (optimum.plan.rejected, optimum.nics, optimum.lower_bound, optimum.proven) == (1, 1, 1, True)
    assert optimum.shortfall is not None
    assert optimum.shortfall.sentence() == (
        "The optimum rejects 1 arrival; no plan rejects fewer: demanding. No NIC meets the SLA of demanding. "
        "demanding requires 101 kpps, and acl gets 100 kpps alone on a NIC."
    )
