"""What would have to go so that a rejected arrival fits: by hand, and against every set of instances."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.explain.candidates import Explanation, explain
from placer.model.arrival import Arrival
from placer.model.constraints import places_for
from placer.model.feasibility import keeps_slas
from placer.model.fleet import Fleet
from placer.model.groups import Constraints
from placer.model.nic import Nic
from placer.model.nic_kind import NicKind
from placer.policy.preemption import find_preemption
from placer.policy.rejection import Cause
from placer.policy.rules import FIRST_FIT
from placer.report.text.explanation import explanation_json, explanation_table
from placer.testing.strategies import ToyOracle, arrival, catalogue

DOCS = Path(__file__).parents[3] / "docs" / "formats" / "explanations.md"


def ranked(identity: str, time: float, nf: str, priority: int, drop: float = 0.5, **groups: str) -> Arrival:
    given = Constraints(tuple(sorted((name, value) for name, value in groups.items() if value)))
    return replace(arrival(identity, time, nf, drop), priority=priority, constraints=given)


def last_of(trace: Sequence[Arrival], count: int) -> Explanation:
    kinds = catalogue((count, 1.0)).kinds
    return next(iter(explain(trace, kinds, [ToyOracle()], FIRST_FIT, trace[-1].id)))


FULL = [ranked("w", 0, "d", 3), ranked("x", 1, "d", 1), ranked("y", 2, "b", 0)]
"""Two of three cores and one of two: the one NIC is full."""


def test_the_fewest_of_lower_priority_would_have_to_go() -> None:
    explanation = last_of([*FULL, ranked("z", 3, "d", 2)], 1)
    assert explanation.nic is None and explanation.preemption is not None
    assert (explanation.preemption.nic, explanation.preemption.ids, explanation.preemption.lower) == (
        "nic-1",
        ("x",),
        True,
    )
    verdict = next(verdict for verdict in explanation.verdicts if verdict.cause == Cause.PRIORITY)
    assert verdict.nics == ("nic-1",) and verdict.met == ("x",) and not verdict.fits
    assert [verdict.nics for verdict in explanation.verdicts] == [("nic-1",), ()]


def test_two_of_lower_priority_go_rather_than_one_of_higher() -> None:
    """The arrival needs three cores: those of `w` and `v`, or those of `u`, which has a higher priority."""
    trace = [
        ranked("u", 0, "d", 9),
        ranked("v", 1, "a", 0),
        ranked("w", 2, "b", 1),
        ranked("x", 3, "b", 9),
        ranked("z", 4, "d", 5),
    ]
    found = last_of(trace, 1).preemption
    assert found is not None and found.ids == ("v", "w")


def test_where_lower_priorities_are_not_enough_it_says_so() -> None:
    explanation = last_of([*FULL, ranked("z", 3, "d", 0)], 1)
    found = explanation.preemption
    assert found is not None and (found.ids, found.lower) == (("x",), False)
    assert Cause.PRIORITY not in [verdict.cause for verdict in explanation.verdicts]
    assert "It would fit on nic-1 without x, not all of lower priority." in explanation_table(explanation)


def test_an_instance_that_a_constraint_meets_would_have_to_go() -> None:
    trace = [ranked("x", 0, "a", 0, spread="g"), ranked("y", 1, "a", 0), ranked("z", 2, "a", 1, spread="g")]
    found = last_of(trace, 1).preemption
    assert found is not None and found.ids == ("x",)


def test_what_already_runs_never_goes_and_what_was_placed_has_no_such_set() -> None:
    running = replace(ranked("x", 0, "d", 0), nic="nic-1")
    explanation = last_of([running, ranked("w", 1, "d", 3), ranked("y", 1, "b", 0), ranked("z", 3, "d", 2)], 1)
    assert explanation.preemption is not None and explanation.preemption.ids == ("w",)
    assert last_of(FULL, 1).preemption is None
    same = [replace(one, priority=4) for one in (*FULL, ranked("z", 3, "d", 2))]
    assert last_of(same, 1).preemption is None and "preemption" not in explanation_json(last_of(same, 1))


def test_reports_name_the_instances() -> None:
    explanation = last_of([*FULL, ranked("z", 3, "d", 2)], 1)
    shown = json.loads(explanation_json(explanation))
    assert shown["preemption"] == {"nic": "nic-1", "nic_model": "toy-0", "ids": ["x"]}
    assert "It would fit on nic-1 without x." in explanation_table(explanation)
    assert "instances of lower priority came first: x" in explanation_table(explanation)
    page = DOCS.read_text(encoding="utf-8")
    assert "`priority`" in page and "`preemption`" in page


@st.composite
def placed(draw: st.DrawFn) -> tuple[tuple[NicKind, ...], list[tuple[Arrival, int]], Arrival]:
    """Up to seven instances on up to three NICs of two kinds, in any domains, and one more arrival."""
    kinds = catalogue((2, 1.0), (1, 1.0)).kinds
    kinds = tuple(replace(kind, domain=draw(st.sampled_from(("", "r1")))) for kind in kinds)
    group = st.sampled_from(("", "", "g"))

    def instance(at: int) -> Arrival:
        values = {name: draw(group) for name in ("spread", "apart", "together")}
        nf, drop = draw(st.sampled_from("abcd")), draw(st.sampled_from((0.0, 0.05, 0.1, 0.5)))
        return ranked(f"a{at}", at, nf, draw(st.integers(0, 2)), drop, **values)

    tenants = [(instance(at), draw(st.integers(0, 2))) for at in range(draw(st.integers(1, 7)))]
    return kinds, tenants, instance(9)


def fleet_of(kinds: Sequence[NicKind], tenants: Sequence[tuple[Arrival, int]]) -> Fleet:
    """The instances on NICs 0 to 2, of which the last is of the second kind, whatever their SLAs and groups."""
    fleet = Fleet(kinds)
    for instance, number in tenants:
        name = f"n{number}"
        nic = fleet.nics.get(name) or fleet.open(kinds[number // 2], name)
        if nic.kind.cores_taken(nic.co_location) + nic.kind.cores_for(instance.workload) <= nic.kind.cores:
            fleet.place(instance.tenant, nic)
    return fleet


def takes(fleet: Fleet, kinds: Sequence[NicKind], one: Arrival) -> bool:
    """Whether any NIC takes the arrival."""
    allowed = places_for(fleet, one.tenant)
    options: list[Nic] = [nic for nic in fleet.nics.values() if allowed is None or allowed.allow(nic)]
    options += [Nic("new", kind) for kind in fleet.available() if allowed is None or kind in allowed.to_open]
    return any(keeps_slas(nic.kind, ToyOracle(), [*nic.tenants, one.tenant]) for nic in options)


@settings(deadline=None)
@given(placed())
@pytest.mark.long
def test_no_smaller_and_no_lower_set_would_do(
    drawn: tuple[tuple[NicKind, ...], list[tuple[Arrival, int]], Arrival],
) -> None:
    kinds, tenants, coming = drawn
    fleet = fleet_of(kinds, tenants)
    if takes(fleet, kinds, coming):
        return
    priorities = {instance.id: instance.priority for instance, _ in tenants if fleet.nic_of(instance.id)}
    home = {identity: fleet.nic_of(identity) for identity in priorities}
    values = []
    for size in range(1, len(priorities) + 1):
        for going in combinations(priorities, size):
            left = Fleet(kinds)
            for instance, _ in tenants:
                nic = home.get(instance.id)
                if nic is not None and instance.id not in going:
                    left.place(instance.tenant, left.nics.get(nic.id) or left.open(nic.kind, nic.id))
            if takes(left, kinds, coming):
                of = sorted((priorities[one] for one in going), reverse=True)
                values.append((max(of) >= coming.priority, size, of))
    found = find_preemption(fleet, [ToyOracle()] * 2, coming.tenant, coming.priority, priorities)
    if found is None:
        assert not values
    else:
        of = sorted((priorities[one] for one in found.ids), reverse=True)
        assert (not found.lower, len(found.ids), of) == min(values)
