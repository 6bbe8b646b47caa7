"""What every constraint of arrivals must do, on traces of the toy world."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import inf

from placer.evaluate.checks import InvalidPlan, check_plan
from placer.model.arrival import Arrival
from placer.model.constraints import CONSTRAINTS, Constraint, GroupConstraint, KindConstraint, SharingConstraint
from placer.model.groups import UNCONSTRAINED, Constraints
from placer.model.nic_kind import NicKind
from placer.model.plan import Placement, Plan
from placer.optimal.trace_optimum import find_optimum
from placer.policy.rules import RULES_BY_NAME
from placer.strategies.contention_aware import ContentionAware
from placer.strategies.greedy import Greedy
from placer.strategies.monopolization import Monopolization
from placer.testing.strategies import CORES_BY_NF, TOY_PREDICTOR, ToyCatalogue, arrival

PLAN_COUNT, TRACE_COUNT = 400, 30
MOST_ARRIVALS = 7
OPTIMUM_SECONDS = 2.0

TOY_PLACES = (("", "r1"), ("", "r1"), ("p1", "r2"), ("p2", ""), ("", ""))
"""Pool and domain of each kind of NIC of the toy world: `toy-0`, `toy-1` and so on."""


def check_constraint(constraint: type[Constraint], values: Sequence[str] = ("g1", "g2"), *, seed: int = 0) -> None:
    """Hold a constraint to what every constraint must do, on random plans and traces of a toy world.

    It is registered under its name; `faults` finds exactly the plans that its relation forbids (`allows` of a
    constraint on kinds; `same`, `by_domain` and `most` of one on groups; `may_share` of one on sharing), names an
    instance, and says nothing where all instances already run; every online strategy and the optimum keep it.
    `values`: what cells of its column hold, of which some must conflict in the toy world: NICs are of the models
    `toy-0` to `toy-4`, in the pools `p1`, `p2` or none, in the domains `r1`, `r2` or none. Raises `AssertionError` with
    the first fact that does not hold."""
    name = getattr(constraint, "name", None)
    assert isinstance(name, str) and name, f"{constraint.__name__} has no name"
    assert isinstance(getattr(constraint, "text", None), str) and constraint.text, f"{name} has no text"
    assert CONSTRAINTS.get(name) is constraint, f"{name} is not registered: decorate {constraint.__name__} by @register"
    known = issubclass(constraint, (KindConstraint, GroupConstraint, SharingConstraint))
    assert known, f"{name} is one on neither kinds nor groups nor sharing"
    if issubclass(constraint, GroupConstraint):
        supported = not (constraint.same and constraint.by_domain)
        assert supported, f"{name}: groups that share a domain, not a NIC, are not supported (same with by_domain)"
    _check_faults(constraint, values, random.Random(seed))
    _check_strategies(constraint, values, random.Random(seed))


def _check_faults(constraint: type[Constraint], values: Sequence[str], draw: random.Random) -> None:
    kinds = _draw_kinds(None)
    outcomes = set()
    for number in range(PLAN_COUNT):
        nics = [draw.randrange(2 * len(kinds)) for _ in range(MOST_ARRIVALS)]
        placements = tuple(
            Placement(one) if draw.random() < 0.1 else Placement(one, f"n{nic}", kinds[nic // 2])
            for one, nic in zip(_draw_trace(constraint, values, draw), nics, strict=False)
        )
        plan = Plan("random", None, placements, 0.0)
        place = f"{constraint.name}, plan {number}"
        faults, wrong = list(constraint.faults(plan)), _violates(constraint, plan)
        assert bool(faults) is wrong, f"{place}: {_list(plan)}: faults are {faults}, by the relation there are {wrong}"
        ids = [placement.arrival.id for placement in plan.placements]
        for fault in faults:
            assert any(identity in fault for identity in ids), f"{place}: '{fault}' names no instance"
        running = [
            replace(placement, arrival=replace(placement.arrival, nic=placement.nic)) for placement in plan.placed
        ]
        again = list(constraint.faults(replace(plan, placements=tuple(running))))
        assert not again, f"{place}: instances that already run were nobody's decision: {again}"
        outcomes.add(wrong)
    assert outcomes == {True, False}, f"{constraint.name}: plans with these values never differ: give others"


def _check_strategies(constraint: type[Constraint], values: Sequence[str], draw: random.Random) -> None:
    for number in range(TRACE_COUNT):
        fleet = ToyCatalogue(_draw_kinds(draw), (), ())
        trace, oracles = _draw_trace(constraint, values, draw), fleet.truth()
        rules = [ContentionAware(fleet, TOY_PREDICTOR, oracles, rule=rule) for rule in RULES_BY_NAME.values()]
        plans = [strategy.place(trace) for strategy in (Greedy(fleet), Monopolization(fleet), *rules)]
        for plan in (*plans, find_optimum(trace, fleet, oracles, time_limit=OPTIMUM_SECONDS).plan):
            place = f"{constraint.name}, {plan.strategy}, trace {number}"
            assert not _violates(constraint, plan), f"{place}: it is violated: {_list(plan)}"
            try:
                check_plan(plan, trace, fleet.kinds)
            except InvalidPlan as invalid:
                raise AssertionError(f"{place}: {invalid}") from invalid


def _violates(constraint: type[Constraint], plan: Plan) -> bool:
    """Whether the relation of the constraint forbids the plan, by every instance and every pair."""
    placed = [(placement.arrival, placement.nic, placement.kind) for placement in plan.placed if placement.kind]
    if issubclass(constraint, KindConstraint):
        return any(not constraint.allows(one.constraints.of(constraint.name), kind) for one, _, kind in placed)
    if issubclass(constraint, SharingConstraint):
        return any(
            nic == other_nic
            and max(first.time, second.time) < min(first.departure or inf, second.departure or inf)
            and not constraint.may_share(first.constraints.of(constraint.name), second.constraints.of(constraint.name))
            for (first, nic, _), (second, other_nic, _) in combinations(placed, 2)
        )
    assert issubclass(constraint, GroupConstraint)
    for first, nic, kind in placed:
        value, apart, together = first.constraints.of(constraint.name), 0, 0
        for second, other_nic, other in placed:
            present = second.time <= first.time < (second.departure or inf)
            if second is not first and present and value and value == second.constraints.of(constraint.name):
                named = constraint.by_domain and kind.domain
                shared = kind.domain == other.domain if named else nic == other_nic
                apart, together = apart + (not shared), together + shared
        if apart if constraint.same else value and together >= constraint.most(value):
            return True
    return False


def _draw_kinds(draw: random.Random | None) -> tuple[NicKind, ...]:
    """A kind of NIC for each toy place, of limited count or not."""
    return tuple(
        NicKind(at, f"toy-{at}", 8, CORES_BY_NF, draw.choice((None, 1, 2)) if draw else None, pool=pool, domain=domain)
        for at, (pool, domain) in enumerate(TOY_PLACES)
    )


def _draw_trace(constraint: type[Constraint], values: Sequence[str], draw: random.Random) -> list[Arrival]:
    """Arrivals, some of which leave and most of which have a value of the constraint."""
    trace = []
    for number in range(draw.randint(1, MOST_ARRIVALS)):
        value = draw.choice((*values, *values, ""))
        leaves = float(number + draw.randint(1, 4)) if draw.random() < 0.4 else None
        one = arrival(f"a{number}", float(number), draw.choice("abcd"), draw.choice((0.0, 0.1, 0.5)), leaves)
        given = Constraints(((constraint.name, value),)) if value else UNCONSTRAINED
        trace.append(replace(one, constraints=given))
    return trace


def _list(plan: Plan) -> str:
    return ", ".join(
        f"{placed.arrival.id} {placed.arrival.constraints.values} on {placed.nic}" for placed in plan.placements
    )
