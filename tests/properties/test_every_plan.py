"""Plans of small fleets with constraints and priorities, against a search of every plan."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from placer.evaluate.checks import check_plan
from placer.model.arrival import Arrival
from placer.model.fleet import NicKind
from placer.model.groups import Constraints
from placer.model.plan import Placement, Plan
from placer.model.unplaceable import constraint_faults
from placer.optimal.bounded_plan import BoundedPlan
from placer.optimal.trace_optimum import find_optimum
from placer.policy.rules import RULES_BY_NAME
from placer.strategies.contention_aware import ContentionAware
from placer.strategies.greedy import Greedy
from placer.strategies.monopolization import Monopolization
from placer.testing.strategies import CORES_BY_NF, TOY_PREDICTOR, ToyCatalogue, arrival
from tests.effort import THOROUGH
from tests.reference import every_plan

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
