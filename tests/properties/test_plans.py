"""Every strategy keeps its constraints on any trace, and the optimum is one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from placer.evaluate.checks import check_plan, peak_nics, slas_kept
from placer.evaluate.evaluation import evaluate
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.optimal.trace_optimum import find_optimum
from placer.strategies import STRATEGIES
from placer.testing.toy import ToyOracle, arrival, catalogue

DROPS = st.sampled_from([0.0, 0.03, 0.05, 0.08, 0.1, 0.2, 0.5])


@st.composite
def traces(draw: st.DrawFn, departures: bool = True, most: int = 14) -> list[Arrival]:
    """Arrivals in order of time, some of which leave, often at the moment when another arrives."""
    times = sorted(draw(st.lists(st.integers(0, 12), min_size=1, max_size=most)))
    trace = []
    for number, time in enumerate(times):
        stay = draw(st.none() | st.integers(1, 6)) if departures else None
        leaves = None if stay is None else float(time + stay)
        trace.append(arrival(str(number), float(time), draw(st.sampled_from("abcd")), draw(DROPS), leaves))
    return trace


FLEETS = st.sampled_from(
    [catalogue(), catalogue((2, 1.0)), catalogue((1, 0.0), (None, 1.0)), catalogue((2, 2.0), (2, 1.0))]
)


@given(traces(), FLEETS)
def test_every_strategy_keeps_cores_counts_and_departures(trace: list[Arrival], nics: Catalogue) -> None:
    """Every arrival is placed once or rejected, and no NIC has more tenants than cores or NICs than there are."""
    for strategy in STRATEGIES.values():
        check_plan(strategy(nics, "toy").place(trace), trace, nics.kinds)


@given(traces(), FLEETS)
def test_contention_aware_never_places_against_its_oracle(trace: list[Arrival], nics: Catalogue) -> None:
    """No tenant is ever below its SLA by the oracle that the strategy used."""
    plan = STRATEGIES["contention-aware"](nics, "toy").place(trace)
    assert list(slas_kept(plan, [ToyOracle() for _ in nics.kinds])) == []


@settings(max_examples=40)
@given(traces(), FLEETS)
def test_evaluation_and_checker_find_the_same_violations(trace: list[Arrival], nics: Catalogue) -> None:
    """Whatever the plan, at whatever coinciding times: they share no code, only the definition of a moment."""
    oracles = [ToyOracle() for _ in nics.kinds]
    for strategy in STRATEGIES.values():
        plan = strategy(nics, "toy").place(trace)
        stays = evaluate(plan, nics.kinds, oracles).stays or {}
        below = {fault.split(" on ")[0] for fault in slas_kept(plan, oracles)}
        assert {instance for instance, stay in stays.items() if not stay.sla_met} == below


@given(traces())
def test_without_limit_no_arrival_is_rejected(trace: list[Arrival]) -> None:
    """Every SLA by drop can be kept alone, so a fleet without limit rejects no arrival."""
    for strategy in STRATEGIES.values():
        assert strategy(catalogue(), "toy").place(trace).rejected == 0


@settings(deadline=None)
@given(traces(), FLEETS)
def test_the_optimum_is_between_its_bound_and_every_plan_without_violations(
    trace: list[Arrival], nics: Catalogue
) -> None:
    """It keeps all constraints and SLAs, costs no less than its bound and no more than a plan without violations."""
    oracles = [ToyOracle() for _ in nics.kinds]
    optimum = find_optimum(trace, nics, oracles, time_limit=10)
    plans = [strategy(nics, "toy").place(trace) for strategy in STRATEGIES.values()]
    without_violations = [plan for plan in plans if evaluate(plan, nics.kinds, oracles).violated == 0]
    for plan in without_violations:
        optimum = optimum.improved_by(plan, nics.kinds)
    check_plan(optimum.plan, trace, nics.kinds)
    assert list(slas_kept(optimum.plan, oracles)) == []
    assert optimum.nics == peak_nics(optimum.plan)
    if optimum.plan.rejected == 0:
        assert optimum.lower_bound <= optimum.cost + 1e-9
        assert optimum.nics_lower_bound <= optimum.nics
    if all(a.departure is None for a in trace):
        assert optimum.proven
        for plan in without_violations:
            cost = evaluate(plan, nics.kinds, oracles).cost
            assert (optimum.plan.rejected, optimum.cost) <= (plan.rejected, cost + 1e-9)


@settings(deadline=None)
@given(traces(departures=False, most=10), st.sampled_from("abcd"), DROPS)
def test_adding_arrivals_never_lowers_the_optimum(trace: list[Arrival], nf: str, drop: float) -> None:
    """One more arrival needs as many NICs or more, where a neighbour never helps."""
    nics, oracles = catalogue(), [ToyOracle()]
    fewer = find_optimum(trace, nics, oracles, time_limit=10)
    more = find_optimum([*trace, arrival("one more", 99.0, nf, drop)], nics, oracles, time_limit=10)
    assert fewer.proven
    assert more.proven
    assert fewer.nics <= more.nics
