"""Every strategy keeps its constraints on any trace, and the optimum is one.

Plans of small fleets with constraints and priorities, against a search of every plan."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.evaluate.checks import check_plan, peak_nics, slas_kept
from placer.evaluate.evaluation import evaluate
from placer.explain.candidates import explain
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.groups import Constraints
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.plan import Placement, Plan
from placer.model.unplaceable import constraint_faults
from placer.optimal.bounded_plan import BoundedPlan
from placer.optimal.trace_optimum import find_optimum
from placer.policy.rejection import Cause
from placer.policy.rules import LOOK_AHEAD, RULES_BY_NAME
from placer.strategies import STRATEGIES, OnlineStrategy
from placer.strategies.contention_aware import ContentionAware
from placer.strategies.greedy import Greedy
from placer.strategies.monopolization import Monopolization
from placer.testing.strategies import CORES_BY_NF, TOY_PREDICTOR, ToyCatalogue, ToyOracle, arrival, catalogue
from tests.effort import THOROUGH, examples
from tests.placer.fleet.audit import Auditor
from tests.reference import every_plan


def named_nics(nics: Catalogue, *names: tuple[str, ...]) -> Catalogue:
    return replace(nics, kinds=tuple(replace(kind, names=some) for kind, some in zip(nics.kinds, names, strict=True)))


ONLINE = [strategy for strategy in STRATEGIES.values() if issubclass(strategy, OnlineStrategy)]
"""This world has no models: `planned`, which needs an error model, is in tests/placer/optimal/planned."""

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


@pytest.mark.long
@given(traces(), FLEETS)
def test_every_strategy_keeps_cores_counts_and_departures(trace: list[Arrival], nics: Catalogue) -> None:
    """Every arrival is placed once or rejected, and no NIC has more tenants than cores or NICs than there are."""
    for strategy in ONLINE:
        check_plan(strategy(nics, "toy").place(trace), trace, nics.kinds)


@given(traces(), FLEETS)
def test_contention_aware_never_places_against_its_oracle(trace: list[Arrival], nics: Catalogue) -> None:
    """No tenant is ever below its SLA by the oracle that the strategy used."""
    plan = STRATEGIES["contention-aware"](nics, "toy").place(trace)
    assert list(slas_kept(plan, [ToyOracle() for _ in nics.kinds])) == []


@settings(max_examples=examples(40))
@given(traces(), FLEETS)
def test_evaluation_and_checker_find_the_same_violations(trace: list[Arrival], nics: Catalogue) -> None:
    """Whatever the plan, at whatever coinciding times: they share no code, only the definition of a moment."""
    oracles = [ToyOracle() for _ in nics.kinds]
    for strategy in ONLINE:
        plan = strategy(nics, "toy").place(trace)
        stays = evaluate(plan, nics.kinds, oracles).stays or {}
        below = {fault.split(" on ")[0] for fault in slas_kept(plan, oracles)}
        assert {instance for instance, stay in stays.items() if not stay.sla_met} == below


@given(traces())
def test_without_limit_no_arrival_is_rejected(trace: list[Arrival]) -> None:
    """Every SLA by drop can be kept alone, so a fleet without limit rejects no arrival."""
    for strategy in ONLINE:
        assert strategy(catalogue(), "toy").place(trace).rejected == 0


@pytest.mark.long
@settings(deadline=None)
@given(traces(), FLEETS)
def test_the_optimum_is_between_its_bound_and_every_plan_without_violations(
    trace: list[Arrival], nics: Catalogue
) -> None:
    """It keeps all constraints and SLAs, costs no less than its bound and no more than a plan without violations."""
    oracles = [ToyOracle() for _ in nics.kinds]
    optimum = find_optimum(trace, nics, oracles, time_limit=10)
    plans = [strategy(nics, "toy").place(trace) for strategy in ONLINE]
    without_violations = [plan for plan in plans if evaluate(plan, nics.kinds, oracles).violated == 0]
    for plan in without_violations:
        optimum = optimum.choose_better(plan, nics.kinds)
    check_plan(optimum.plan, trace, nics.kinds)
    assert list(slas_kept(optimum.plan, oracles)) == [] and optimum.nics == peak_nics(optimum.plan)
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
    assert fewer.proven and more.proven and fewer.nics <= more.nics


NAMED = st.sampled_from(
    [
        named_nics(catalogue(), ("x", "y")),
        named_nics(catalogue((3, 1.0)), ("x", "y", "z")),
        named_nics(catalogue((2, 1.0), (None, 1.0)), ("x",), ("y", "z")),
    ]
)


@st.composite
def traces_of_running_fleets(draw: st.DrawFn, departures: bool = True) -> tuple[list[Arrival], Catalogue]:
    """A trace of which some instances already run on NICs with names, as many as have the cores."""
    nics = draw(NAMED)
    free = {name: kind.cores for kind in nics.kinds for name in kind.names}
    trace = []
    for one in draw(traces(departures, most=10)):
        nic = draw(st.none() | st.sampled_from(sorted(free)))
        if nic is not None and free[nic] >= CORES_BY_NF[one.workload.nf]:
            free[nic] -= CORES_BY_NF[one.workload.nf]
            one = replace(one, nic=nic)
        trace.append(one)
    return trace, nics


@pytest.mark.long
@settings(deadline=None)
@given(traces_of_running_fleets() | traces_of_running_fleets(departures=False))
def test_what_already_runs_stays_in_every_plan(given_: tuple[list[Arrival], Catalogue]) -> None:
    """Every strategy and the optimum keep it, and the optimum costs no more than a plan that breaks no further SLA."""
    trace, nics = given_
    oracles = [ToyOracle() for _ in nics.kinds]
    plans = [strategy(nics, "toy").place(trace) for strategy in ONLINE]
    optimum = find_optimum(trace, nics, oracles, time_limit=10)
    for plan in (*plans, optimum.plan):
        check_plan(plan, trace, nics.kinds)
        assert all(one.nic == one.arrival.nic for one in plan.placements if one.arrival.nic is not None)
    assert list(slas_kept(optimum.plan, oracles)) == []
    assert optimum.lower_bound <= optimum.cost + 1e-9 and optimum.nics == peak_nics(optimum.plan)
    for plan in plans:
        if not any(slas_kept(plan, oracles)):
            optimum = optimum if optimum.proven else optimum.choose_better(plan, nics.kinds)
            cost = evaluate(plan, nics.kinds, oracles).cost
            assert (optimum.plan.rejected, optimum.cost) <= (plan.rejected, cost + 1e-9)


@pytest.mark.long
@settings(deadline=None)
@given(traces_of_running_fleets())
def test_contention_aware_breaks_no_sla_that_was_kept(given_: tuple[list[Arrival], Catalogue]) -> None:
    """An SLA that is broken before bars only further arrivals there."""
    trace, nics = given_
    plan = STRATEGIES["contention-aware"](nics, "toy").place(trace)
    assert list(slas_kept(plan, [ToyOracle() for _ in nics.kinds])) == []


@settings(deadline=None)
@given(traces(), FLEETS)
def test_verdicts_agree_with_the_checker(trace: list[Arrival], nics: Catalogue) -> None:
    """For every NIC in use at every arrival; and every NIC is in exactly one class."""
    checker = Auditor(nics.kinds, [ToyOracle() for _ in nics.kinds])
    homes: dict[str, tuple[str, Arrival]] = {}
    for explanation in explain(trace, nics.kinds, [ToyOracle() for _ in nics.kinds], LOOK_AHEAD, None):
        arriving = explanation.arrival
        here: dict[str, list[Tenant]] = {}
        for home, other in homes.values():
            if other.departure is None or other.departure > arriving.time:
                here.setdefault(home, []).append(other.tenant)
        assert sorted(nic for verdict in explanation.verdicts for nic in verdict.nics) == sorted(here)
        for verdict in explanation.verdicts:
            for nic in verdict.nics:
                together = [*here[nic], arriving.tenant]
                assert checker.fits(verdict.kind.index, together) is verdict.fits
                cores = verdict.kind.cores_taken(tenant.workload for tenant in together)
                assert (verdict.cause == Cause.CORES) is (cores > verdict.kind.cores)
                if verdict.violated is not None:
                    below = checker.violating(verdict.kind.index, together)
                    assert verdict.violated in {one.workload for one in together if one.id in below}
            if not verdict.nics and verdict.cause != Cause.NONE_LEFT:
                assert checker.fits(verdict.kind.index, [arriving.tenant]) is verdict.fits
        chosen = [verdict for verdict in explanation.verdicts if verdict.chosen]
        assert len(chosen) == (explanation.nic is not None)
        assert all(verdict.fits and (explanation.nic in verdict.nics or not verdict.nics) for verdict in chosen)
        if explanation.nic is not None:
            homes[arriving.id] = explanation.nic, arriving


INSTANCES = 2_000 if THOROUGH else 50
MOST_ARRIVALS = 8
CLOSE = 1e-9


@dataclass(frozen=True)
class Instance:
    """A trace, the fleet, and the best plans for cost and for NICs."""

    seed: int
    trace: list[Arrival]
    fleet: ToyCatalogue
    best: every_plan.BestPlan
    fewest: every_plan.BestPlan


def draw_fleet(draw: random.Random) -> ToyCatalogue:
    """Up to four kinds of NIC in up to two pools and three domains, some of limited count."""
    kinds = tuple(
        NicKind(
            at,
            f"toy-{at}",
            draw.choice((4, 6, 8)),
            CORES_BY_NF,
            draw.choice((None, 1, 1, 2)),
            draw.choice((1.0, 1.0, 2.0)),
            pool=draw.choice(("", "", "p1", "p2")),
            domain=draw.choice(("", "r1", "r2", "r3")),
        )
        for at in range(draw.randint(1, 4))
    )
    return ToyCatalogue(kinds, (), ())


def draw_trace(draw: random.Random, fleet: ToyCatalogue) -> list[Arrival]:
    """Up to eight arrivals in up to three groups of each column, of up to three priorities, in pools of the fleet."""
    pools = sorted({kind.pool for kind in fleet.kinds})
    pools += ["p1|p2"] * ("p1" in pools and "p2" in pools)
    times = sorted(draw.randrange(6) for _ in range(draw.randint(1, MOST_ARRIVALS)))
    leaving, grouped, ranked = draw.random() < 0.5, draw.random(), draw.random() < 0.7
    trace = []
    for number, time in enumerate(times):
        names = ("g1", "g2", "g3")
        values = {name: draw.choice(names) for name in ("spread", "apart", "together") if draw.random() < grouped / 2}
        values |= {
            f"most_per_{place}": draw.choice(("1 g", "2 g", "2 h", "3 g"))
            for place in ("nic", "domain") if draw.random() < grouped / 3
        }  # fmt: skip
        if draw.random() < grouped / 3:
            values["exclusive"] = draw.choice(("alice", "bob"))
        values["pool"] = draw.choice(pools)
        given = tuple(sorted((name, value) for name, value in values.items() if value))
        leaves = float(time + draw.randint(1, 4)) if leaving and draw.random() < 0.6 else None
        plain = arrival(f"a{number}", time, draw.choice("abcd"), draw.choice((0.0, 0.05, 0.1, 0.2, 0.5)), leaves)
        priority = draw.choice((-1, 0, 7)) if ranked else 0
        trace.append(replace(plain, constraints=Constraints(given), priority=priority))
    return trace


def instances(count: int) -> Iterator[Instance]:
    """Random instances by their seeds, each with the best plans of a search of all."""
    for seed in range(count):
        draw = random.Random(seed)
        fleet = draw_fleet(draw)
        trace = draw_trace(draw, fleet)
        best, fewest = every_plan.find_best(trace, fleet.kinds), every_plan.find_best(trace, fleet.kinds, by_nics=True)
        yield Instance(seed, trace, fleet, best, fewest)


def assignment_of(plan: Plan) -> every_plan.Assignment:
    return [
        (one.nic, one.kind.index) if one.nic is not None and one.kind is not None else None for one in plan.placements
    ]


def plan_of(trace: Sequence[Arrival], kinds: Sequence[NicKind], assignment: every_plan.Assignment) -> Plan:
    placements = (
        Placement(arrival) if place is None else Placement(arrival, place[0], kinds[place[1]])
        for arrival, place in zip(trace, assignment, strict=True)
    )
    return Plan("best", None, tuple(placements), 0.0)


def check_optimum(instance: Instance, found: BoundedPlan) -> None:
    """The plan is the best one, and the optimum says so."""
    trace, kinds, best, fewest = instance.trace, instance.fleet.kinds, instance.best, instance.fewest
    assigned = assignment_of(found.plan)
    losses, cost = every_plan.losses_of(trace, assigned), every_plan.cost_of(trace, kinds, assigned)
    assert every_plan.keeps_slas(trace, assigned)
    assert found.cost == pytest.approx(cost) and found.nics == every_plan.nics_of(trace, assigned)
    assert found.lower_bound <= best.worth + CLOSE and found.nics_lower_bound <= fewest.worth
    assert found.proven and losses == best.losses and cost == pytest.approx(best.worth)


def check_instance(instance: Instance) -> None:
    """No plan breaks a constraint, and none without SLA violations is better than the best of all plans."""
    trace, fleet = instance.trace, instance.fleet
    oracles = fleet.truth()
    found = find_optimum(trace, fleet, oracles, time_limit=10.0)
    rules = [ContentionAware(fleet, TOY_PREDICTOR, oracles, rule=rule) for rule in RULES_BY_NAME.values()]
    plans = [found.plan, *(strategy.place(trace) for strategy in (Greedy(fleet), Monopolization(fleet), *rules))]
    for plan in plans:
        check_plan(plan, trace, fleet.kinds)
        assigned = assignment_of(plan)
        assert not every_plan.breaks_constraint(trace, fleet.kinds, assigned), plan.strategy
        if every_plan.keeps_slas(trace, assigned):
            value = every_plan.losses_of(trace, assigned), every_plan.cost_of(trace, fleet.kinds, assigned) + CLOSE
            assert value >= (instance.best.losses, instance.best.worth), plan.strategy
    check_optimum(instance, found)


def test_the_optimum_is_the_best_of_all_plans_and_no_other_plan_is_better() -> None:
    for instance in instances(INSTANCES):
        try:
            check_instance(instance)
        except AssertionError as wrong:
            raise AssertionError(f"instance of seed {instance.seed}: {wrong}") from wrong


def test_the_best_plan_keeps_every_constraint_and_is_worth_what_it_says() -> None:
    """The search against checks of whole plans, which know nothing of it."""
    for instance in instances(INSTANCES):
        trace, kinds = instance.trace, instance.fleet.kinds
        for best in (instance.best, instance.fewest):
            assert not every_plan.breaks_constraint(trace, kinds, best.assignment) and every_plan.keeps_slas(
                trace, best.assignment
            )
            check_plan(plan_of(trace, kinds, best.assignment), trace, kinds)
            assert every_plan.losses_of(trace, best.assignment) == best.losses
        assert every_plan.cost_of(trace, kinds, instance.best.assignment) == pytest.approx(instance.best.worth)
        assert every_plan.nics_of(trace, instance.fewest.assignment) == instance.fewest.worth
        assert instance.best.losses == instance.fewest.losses


def test_what_is_refused_conflicts_even_without_all_other_arrivals() -> None:
    """The whole fleet, empty, places at most all but one of a group that is refused."""
    refused = 0
    for instance in instances(INSTANCES):
        for last, column, message, _ in constraint_faults(instance.trace, instance.fleet.kinds):
            named = [one for one in instance.trace if f"'{one.id}'" in message or one is last]
            refused += 1
            assert sum(every_plan.find_best(named, instance.fleet.kinds).losses) > 0, (instance.seed, column, message)
    assert refused
