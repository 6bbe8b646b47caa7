"""Spare NICs: what a plan is said to survive, it does by a search that tries every place; and no NIC is wasted."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.evaluate.checks import peak_nics
from placer.evaluate.spare_checks import Failures, Spare
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import NicKind
from placer.model.plan import Placement, Plan
from placer.optimal.trace_optimum import find_optimum
from placer.spare import find_spare, refuse_too_many_failures
from placer.strategies import find_strategy
from placer.testing.strategies import CORES_BY_NF, NF_PRESSURE, NF_SENSITIVITY, arrival, catalogue
from profiles import InputError
from tests.effort import examples
from tests.placer.model.test_constraints import RACKS, breaks, nics
from tests.placer.model.test_constraints import traces as constrained_traces
from tests.properties.test_plans import FLEETS, traces

Together = Callable[[Sequence[Arrival]], bool]
"""Whether these instances may share a toy NIC."""


def keep_slas(arrivals: Sequence[Arrival]) -> bool:
    total = fsum(NF_PRESSURE[one.workload.nf] for one in arrivals)
    drops = [NF_SENSITIVITY[one.workload.nf] * (total - NF_PRESSURE[one.workload.nf]) for one in arrivals]
    return all(drop <= (one.sla.max_drop or 0.0) + 1e-9 for one, drop in zip(arrivals, drops, strict=True))


def add_up(arrivals: Sequence[Arrival]) -> bool:
    return fsum(3 * NF_PRESSURE[one.workload.nf] for one in arrivals) <= 1 + 1e-6


RULES: dict[str, Together] = {
    "greedy": add_up,
    "monopolization": lambda arrivals: len(arrivals) == 1,
    "contention-aware": keep_slas,
    "optimal": keep_slas,
}


def plan_and_spare(name: str, trace: list[Arrival], fleet: Catalogue, failures: Failures) -> tuple[Plan, Spare]:
    if name == "optimal":
        oracles = fleet.truth()
        assert oracles is not None
        plan = find_optimum(trace, fleet, oracles, time_limit=2.0).plan
        return plan, find_spare(plan, failures, fleet, None, oracles)
    strategy = find_strategy(name)
    plan = strategy.build(fleet, "toy").place(trace)
    return plan, find_spare(plan, failures, fleet, strategy)


@dataclass
class Replay:
    """Every failure of a plan, at every time at which an instance arrives or leaves, with every place tried."""

    plan: Plan
    kinds: Sequence[NicKind]
    together: Together

    def survives(self, failures: int, added: Sequence[NicKind], *, domains: bool = False) -> bool:
        there = Counter({kind: peak_nics(self.plan, kind) for kind in self.kinds})
        there.update(added)
        times = {p.arrival.begins for p in self.plan.placed} | {p.arrival.departure or 0.0 for p in self.plan.placed}
        return all(self._survives_at(time, failures, Counter(there), domains) for time in times)

    def _survives_at(self, time: float, failures: int, there: Counter[NicKind], domains: bool) -> bool:
        on: dict[str, list[Placement]] = {}
        for p in self.plan.placed:
            if p.arrival.begins <= time and (p.arrival.departure is None or time < p.arrival.departure):
                on.setdefault(str(p.nic), []).append(p)
        used = [(nic, placements[0].kind) for nic, placements in on.items()]
        in_use = Counter(kind for _, kind in used)
        every = [
            *used,
            *((f"empty {kind.index} {at}", kind) for kind in self.kinds for at in range(there[kind] - in_use[kind])),
        ]
        places: dict[object, list[tuple[str, NicKind | None]]] = {}
        for nic, kind in every:
            places.setdefault((kind.domain if domains and kind else "") or nic, []).append((nic, kind))
        return all(
            self._replaced([nic for place in failed for nic in places[place]], on, every)
            for size in range(1, failures + 1)
            for failed in combinations(places, size)
        )

    def _replaced(
        self,
        failed: Sequence[tuple[str, NicKind | None]],
        on: dict[str, list[Placement]],
        every: Sequence[tuple[str, NicKind | None]],
    ) -> bool:
        lost = [p for nic, _ in failed for p in on.get(nic, ())]
        left = {nic: (kind, list(on.get(nic, ()))) for nic, kind in every if (nic, kind) not in failed}
        return self._place(lost, left, {nic: len(placements) for nic, (_, placements) in left.items()})

    def _place(
        self, lost: list[Placement], left: dict[str, tuple[NicKind | None, list[Placement]]], before: dict[str, int]
    ) -> bool:
        if not lost:
            return True
        tried = set()
        for nic, (kind, placements) in left.items():
            if not placements and not before[nic]:
                if kind in tried:
                    continue
                tried.add(kind)
            moved = Placement(replace(lost[0].arrival, nic=None), nic, kind)
            placements.append(moved)
            if self._may_be(moved, kind, placements, left) and self._place(lost[1:], left, before):
                return True
            placements.pop()
        return False

    def _may_be(
        self,
        moved: Placement,
        kind: NicKind | None,
        placements: list[Placement],
        left: dict[str, tuple[NicKind | None, list[Placement]]],
    ) -> bool:
        assert kind is not None
        arrivals = [p.arrival for p in placements]
        if sum(CORES_BY_NF[one.workload.nf] for one in arrivals) > kind.cores or not self.together(arrivals):
            return False
        now = [replace(p, arrival=replace(p.arrival, time=0.0, departure=None)) for _, on in left.values() for p in on]
        return not breaks(Plan("", None, tuple(now), 0.0))


def check(name: str, trace: list[Arrival], fleet: Catalogue, failures: int) -> None:
    """The promise holds; without any of the spare NICs it does not; equal NICs need no more than may fail."""
    plan, spare = plan_and_spare(name, trace, fleet, Failures(failures))
    replay = Replay(plan, fleet.kinds, RULES[name])
    if spare.added is None:
        free = [kind for kind in fleet.kinds for _ in range((kind.count or 9) - peak_nics(plan, kind))]
        assert all(kind.count is not None for kind in fleet.kinds) and not replay.survives(failures, free)
        return
    assert replay.survives(failures, spare.added)
    for kind in set(spare.added):
        fewer = list(spare.added)
        fewer.remove(kind)
        assert not replay.survives(failures, fewer)
    if len(fleet.kinds) == 1:
        assert len(spare.added) <= failures


@pytest.mark.parametrize("name", ["greedy", "contention-aware"])
@settings(deadline=None, max_examples=examples(60))
@given(constrained_traces(), st.sampled_from((None, 1, 2)), st.integers(0, 1))
def test_any_domain_may_fail_with_all_its_nics(name: str, trace: list[Arrival], count: int | None, one: int) -> None:
    """A NIC without a domain is one of its own."""
    fleet = nics(*RACKS, count=count)
    plan, spare = plan_and_spare(name, trace, fleet, Failures(one, 1))
    if spare.added is None:
        return
    replay = Replay(plan, fleet.kinds, RULES[name])
    assert replay.survives(1, spare.added, domains=True)
    for kind in set(spare.added):
        fewer = list(spare.added)
        fewer.remove(kind)
        assert not (replay.survives(1, fewer, domains=True) and (not one or replay.survives(1, fewer)))


@pytest.mark.parametrize("count", [None, 3])
def test_a_rack_is_replaced_by_the_other_ones(count: int | None) -> None:
    """Two full NICs in each of two racks; the third takes those of either."""
    fleet = nics(("", "r1"), ("", "r2"), ("", "r3"), count=count)
    full = [arrival(str(at), 0.0, "a", 0.5) for at in range(32)]
    placements = [Placement(one, f"nic-{at // 8 + 1}", fleet.kinds[at // 16]) for at, one in enumerate(full)]
    plan = Plan("by hand", None, tuple(placements), 0.0)
    strategy = find_strategy("greedy")
    assert find_spare(plan, Failures(domains=1), fleet, strategy).added == (fleet.kinds[2],) * 2
    assert len(find_spare(plan, Failures(domains=2), fleet, strategy).added or ()) == (0 if count else 8)
    assert find_spare(plan, Failures(nics=1), fleet, strategy).added == fleet.kinds[:1]


def test_more_failures_than_can_be_tried_get_an_empty_nic_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine NICs with an a of their own could take those of any two; of a limited fleet that is not said."""
    monkeypatch.setattr("placer.spare.failover.MAX_FAILURES", 0)
    trace = [arrival(str(at), float(at), "a", 0.1 + at / 100) for at in range(9)]
    for count in (None, 10):
        fleet = catalogue((count, 1.0))
        placements = tuple(Placement(one, f"nic-{at}", fleet.kinds[0]) for at, one in enumerate(trace, 1))
        plan = Plan("by hand", None, placements, 0.0)
        assert find_spare(plan, Failures(1), fleet, find_strategy("greedy")).added == ()
        spare = find_spare(plan, Failures(2), fleet, find_strategy("greedy"))
        assert (spare.added, spare.without) == (None if count else fleet.kinds * 2, ())


def test_nics_are_added_one_by_one_after_many_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found then survives, too, and no NIC of it can be left out; a dearer one may be among them."""
    monkeypatch.setattr("placer.spare.failover.MAX_ADDITIONS", 1)
    fleet = catalogue((2, 5.0), (None, 1.0), (3, 2.0))
    full = [arrival(str(at), 0.0, "a", 0.5) for at in range(16)]
    placements = tuple(Placement(one, f"nic-{at // 8 + 1}", fleet.kinds[at // 8]) for at, one in enumerate(full))
    plan = Plan("by hand", None, placements, 0.0)
    spare = find_spare(plan, Failures(2), fleet, find_strategy("greedy"))
    replay = Replay(plan, fleet.kinds, add_up)
    assert spare.added is not None and len(spare.added) == 2 and replay.survives(2, spare.added)
    assert not any(replay.survives(2, [kind]) for kind in spare.added)


def refuses(trace: list[Arrival], fleet: Catalogue, failures: int) -> bool:
    try:
        refuse_too_many_failures(Failures(failures), fleet.kinds)
    except InputError:
        return True
    return not trace


@pytest.mark.parametrize("name", RULES)
@settings(deadline=None, max_examples=examples(60))
@given(traces(most=9), FLEETS)
def test_any_nic_of_a_plan_may_fail(name: str, trace: list[Arrival], fleet: Catalogue) -> None:
    if not refuses(trace, fleet, 1):
        check(name, trace, fleet, 1)


@pytest.mark.parametrize("name", RULES)
@settings(deadline=None, max_examples=examples(60))
@given(constrained_traces(), st.sampled_from((None, 1, 2)))
def test_groups_and_pools_hold_after_a_failure(name: str, trace: list[Arrival], count: int | None) -> None:
    check(name, trace, nics(*RACKS, count=count), 1)


@pytest.mark.parametrize("name", ["greedy", "contention-aware"])
@settings(deadline=None, max_examples=examples(40))
@given(traces(most=7), FLEETS)
def test_any_two_nics_may_fail_empty_ones_too(name: str, trace: list[Arrival], fleet: Catalogue) -> None:
    if not refuses(trace, fleet, 2):
        check(name, trace, fleet, 2)
