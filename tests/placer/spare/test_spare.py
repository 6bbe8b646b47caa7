"""Spare NICs: what a plan is said to survive, it does by a search that tries every place; and no NIC is wasted.

Recorded traces: any single failure of each strategy's plan is replayed, and everything else stays where it is."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum, inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.evaluate.checks import cores_kept, peak_nics, slas_kept
from placer.evaluate.expected_violations import likeliest_violations
from placer.evaluate.spare_checks import Failures, Spare, Takeover, spare_faults
from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.nic_kind import NicKind
from placer.model.plan import PLANNED, Placement, Plan, Within
from placer.optimal.trace_optimum import find_optimum
from placer.run import choose_strategies
from placer.spare import find_spare, refuse_too_many_failures
from placer.spare.failover import FailoverSearch
from placer.spare.rules import ByExpectation, ByThroughput
from placer.strategies import find_strategy
from placer.testing.strategies import CORES_BY_NF, NF_PRESSURE, NF_SENSITIVITY, arrival, catalogue
from profiles import InputError
from tests.effort import examples
from tests.placer.model.test_constraints import RACKS, breaks, nics
from tests.placer.model.test_constraints import traces as constrained_traces
from tests.properties.test_plans import FLEETS, traces

Together = Callable[[Sequence[Arrival]], bool]  # whether these instances may share a toy NIC


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
@pytest.mark.long
def test_any_nic_of_a_plan_may_fail(name: str, trace: list[Arrival], fleet: Catalogue) -> None:
    if not refuses(trace, fleet, 1):
        check(name, trace, fleet, 1)


@pytest.mark.parametrize("name", RULES)
@settings(deadline=None, max_examples=examples(60))
@given(constrained_traces(), st.sampled_from((None, 1, 2)))
@pytest.mark.long
def test_groups_and_pools_hold_after_a_failure(name: str, trace: list[Arrival], count: int | None) -> None:
    check(name, trace, nics(*RACKS, count=count), 1)


@pytest.mark.parametrize("name", ["greedy", "contention-aware"])
@settings(deadline=None, max_examples=examples(40))
@given(traces(most=7), FLEETS)
def test_any_two_nics_may_fail_empty_ones_too(name: str, trace: list[Arrival], fleet: Catalogue) -> None:
    if not refuses(trace, fleet, 2):
        check(name, trace, fleet, 2)


TRACES = Path(__file__).parents[3] / "traces"


@pytest.fixture(scope="module")
def recorded_catalogue() -> Iterator[Catalogue]:
    with ExitStack() as stack:
        yield open_catalogue(Cards(budget_pct=2.0), stack, lambda line: None)


def plan_of(
    recorded_catalogue: Catalogue, trace: str, strategy: str, predictor: str | None, most: int | None = None
) -> Plan:
    arrivals = read_arrivals(str(TRACES / trace), recorded_catalogue.default_traffic, recorded_catalogue.check)[:most]
    (named,) = choose_strategies([strategy])
    assert named is not None
    return named.build(recorded_catalogue, predictor).place(arrivals)


def after(plan: Plan, takeover: Takeover) -> Plan:
    """What is present at a failure, with the tenants of the failed NICs where they go."""
    present = [p for p in plan.placed if p.arrival.begins <= takeover.time < (p.arrival.departure or inf)]
    homes = [takeover.nic_of.get(p.arrival.id, (p.nic, p.kind)) for p in present]
    placements = (
        replace(p, arrival=replace(p.arrival, time=0.0, departure=None), nic=nic, kind=kind)
        for p, (nic, kind) in zip(present, homes, strict=True)
    )
    return replace(plan, placements=tuple(placements))


@pytest.mark.parametrize(
    ("trace", "strategy", "predictor"),
    [
        ("arrivals-500.csv", "monopolization", None),
        ("arrivals-500.csv", "greedy", None),
        ("arrivals-500.csv", "contention-aware", "slomo"),
        pytest.param("arrivals-500.csv", "contention-aware", "tomur", marks=pytest.mark.long),
        pytest.param("arrivals-mixed.csv", "contention-aware", "tomur", marks=pytest.mark.long),
        pytest.param("arrivals-departures.csv", "greedy", None, marks=pytest.mark.long),
        pytest.param("arrivals-departures.csv", "contention-aware", "tomur", marks=pytest.mark.long),
        pytest.param("arrivals-departures.csv", PLANNED, "tomur", marks=pytest.mark.long),
        pytest.param("arrivals-500.csv", PLANNED, "tomur", marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_any_nic_of_a_plan_of_equal_nics_may_fail_with_one_spare(
    recorded_catalogue: Catalogue, trace: str, strategy: str, predictor: str | None
) -> None:
    plan = plan_of(recorded_catalogue, trace, strategy, predictor)
    spare = find_spare(plan, Failures(1), recorded_catalogue, *choose_strategies([strategy]))
    assert spare.added is not None and len(spare.added) <= 1


@pytest.mark.long
def test_free_capacity_takes_the_tenants_of_every_nic(recorded_catalogue: Catalogue) -> None:
    """By slomo, which ignores accelerators, the plan of 117 NICs has enough; a failure moves nothing else."""
    plan = plan_of(recorded_catalogue, "arrivals-500.csv", "contention-aware", "slomo", 450)
    oracles = recorded_catalogue.oracles("slomo")
    spare, takeovers = FailoverSearch(plan, recorded_catalogue.kinds, ByThroughput(oracles), Failures(1)).find()
    assert spare.added == () and list(spare_faults(plan, recorded_catalogue.kinds, spare, takeovers, oracles)) == []
    home = {placement.arrival.id: placement.nic for placement in plan.placements}
    for takeover in takeovers:
        now = after(plan, takeover)
        assert {p.nic for p in now.placements} <= set(home.values()) - set(takeover.failed)
        assert all(p.nic == home[p.arrival.id] for p in now.placements if home[p.arrival.id] not in takeover.failed)
        assert [*cores_kept(now), *slas_kept(now, oracles)] == []


@pytest.mark.parametrize("trace", ["arrivals-500.csv", pytest.param("arrivals-departures.csv", marks=pytest.mark.long)])
def test_after_a_failure_planned_expects_no_more_than_its_budget(recorded_catalogue: Catalogue, trace: str) -> None:
    """A plan with free capacity: that of greedy, which `planned` might have made at a budget of 5 %."""
    recorded_catalogue = replace(recorded_catalogue, budget_pct=5.0)
    plan = plan_of(recorded_catalogue, trace, "greedy", None, 90)
    within = Within(reserve_pct=1.0, lower_bound=0.0, nics_lower_bound=0, proven=False, scope="")
    plan = replace(plan, strategy=PLANNED, predictor="tomur", within=within)
    worst = {
        identity: chance for identity, (chance, _) in likeliest_violations(plan, recorded_catalogue, "tomur").items()
    }
    rule = ByExpectation(plan, recorded_catalogue, "tomur")
    spare, takeovers = FailoverSearch(plan, recorded_catalogue.kinds, rule, Failures(1)).find()
    assert list(spare_faults(plan, recorded_catalogue.kinds, spare, takeovers)) == []
    used = {placement.nic for placement in plan.placements}
    shared = [takeover for takeover in takeovers if used & {nic for nic, _ in takeover.nic_of.values()}]
    assert shared and sum(worst.values()) <= 0.04 * len(worst)
    for takeover in shared:
        now = likeliest_violations(after(plan, takeover), recorded_catalogue, "tomur")
        total = sum(max(chance, now[identity][0] if identity in now else 0.0) for identity, chance in worst.items())
        assert total <= 0.04 * len(worst) + 1e-6
        assert max(now[identity][0] for identity in takeover.nic_of) <= 0.5
