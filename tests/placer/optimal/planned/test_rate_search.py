"""Plans for instances at offered rates, with the cores that each gets, and for loads that change over the day."""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.evaluate.checks import check_plan, peak_cost, peak_nics, slas_kept
from placer.model.arrival import Arrival
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Plan
from placer.model.sla import Sla
from placer.optimal.bounded_plan import placements_on
from placer.optimal.planned import rate_nics
from placer.optimal.planned.judges import DayJudge, OracleJudge
from placer.optimal.planned.rate_nics import KnownKind
from placer.optimal.planned.rate_search import RatePlanner
from placer.optimal.trace_optimum import find_optimum
from placer.testing.strategies import TOY_TRAFFIC
from profiles import CoLocation, Workload
from tests.effort import examples
from tests.placer.optimal.exhaustive import exhaustive_trace
from tests.placer.optimal.instances import WithoutModels

COUNTS = (1, 2, 4)
PER_CORE = {"a": 100.0, "b": 60.0}
DISTURBANCE = {"a": 0.03, "b": 0.08}
KIND = NicKind(0, "toy", 8, dict.fromkeys(PER_CORE, 2), core_counts=dict.fromkeys(PER_CORE, COUNTS))


class Disturbed(Oracle):
    """Cores add up, and every neighbour takes a share of them, by how much of its own cores it uses."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        answers = []
        for co_location in co_locations:
            exerted = [
                DISTURBANCE[workload.nf] * min(workload.rate_kpps / self._most(workload), 1.0)
                for workload in co_location
            ]
            lost = sum(exerted)
            answers.append(
                [self._most(one) * (1.0 - lost + own) for one, own in zip(co_location, exerted, strict=True)]
            )
        return answers

    @staticmethod
    def _most(workload: Workload) -> float:
        return PER_CORE[workload.nf] * (workload.cores or 2)


def _arrivals(*loads: tuple[str, float]) -> list[Arrival]:
    return [
        Arrival(str(at), 0.0, Workload(nf, TOY_TRAFFIC, kpps), Sla(max_drop=0.0)) for at, (nf, kpps) in enumerate(loads)
    ]


def _planner(arrivals: Sequence[Arrival], *kinds: NicKind) -> RatePlanner:
    oracle = Disturbed()

    def known(kind: NicKind) -> KnownKind:
        return KnownKind(
            kind,
            OracleJudge(oracle),
            lambda workload: {"cores": kind.cores_for(workload) / kind.cores},
            lambda workloads: [oracle.solo(workload) for workload in workloads],
        )

    return RatePlanner(arrivals, [known(kind) for kind in kinds or (KIND,)])


def _plan(arrivals: Sequence[Arrival], *kinds: NicKind) -> list[list[Tenant]]:
    return [[*tenants] for _, tenants in _planner(arrivals, *kinds).plan(0.0, time.monotonic() + 20)]


def _ids(nics: Sequence[Sequence[Tenant]]) -> list[str]:
    return sorted(tenant.id for nic in nics for tenant in nic)


def test_an_instance_gets_the_cores_that_its_rate_takes() -> None:
    """90, 150 and 300 kpps of an NF that carries 100 on a core: one, two and four cores, on one NIC."""
    (nic,) = _plan(_arrivals(("a", 90.0), ("a", 150.0), ("a", 300.0)))
    assert sorted(tenant.workload.cores for tenant in nic) == [1, 2, 4]


def test_the_bound_is_that_of_cores() -> None:
    """Nine instances that take a core each need two NICs of eight; three that take four each need two."""
    assert _planner(_arrivals(*[("a", 50.0)] * 9)).fewest.nics == 2
    assert _planner(_arrivals(*[("a", 350.0)] * 3)).fewest.nics == 2


def test_the_bound_is_that_of_the_port() -> None:
    """Ten instances of 1 Gb/s each, on one core, need three ports of 4 Gb/s."""
    kpps = 1e6 / (8 * (TOY_TRAFFIC.packet_size + 20))
    kind = NicKind(0, "toy", 8, KIND.cores_of, core_counts=KIND.core_counts, line_rate_gbps=4.0)
    arrivals = _arrivals(*[("a", kpps)] * 10)
    assert _planner(arrivals, kind).fewest.nics == 3
    assert [kind.has_port_for(tenant.workload for tenant in nic) for nic in _plan(arrivals, kind)] == [True] * 3


def test_rates_that_fill_the_port_share_it() -> None:
    """Four of 25 Gb/s take a port of 100 Gb/s, and a tenth of them one of 10, whatever rounding makes of their sum."""
    for gbps in (25.0, 2.5):
        kpps = gbps / (8e-6 * (TOY_TRAFFIC.packet_size + 20))
        kind = NicKind(0, "toy", 8, {"e": 1}, line_rate_gbps=4 * gbps)
        tenants = [arrival.tenant for arrival in _arrivals(*[("e", kpps)] * 4)]
        assert kind.has_port_for(tenant.workload for tenant in tenants)
        assert not kind.has_port_for(replace(tenant.workload, rate_kpps=1.0001 * kpps) for tenant in tenants)


def test_what_no_number_of_cores_carries_is_left_out() -> None:
    assert _ids(_plan(_arrivals(("a", 401.0), ("a", 403.0), ("a", 10.0)))) == ["0", "2"]


def test_a_neighbour_that_disturbs_costs_a_core() -> None:
    """Alone 98 kpps take one core; beside b at 60 kpps, which takes 8 %, they take two."""
    (nic,) = _plan(_arrivals(("a", 98.0), ("b", 60.0)))
    assert {tenant.workload.nf: tenant.workload.cores for tenant in nic} == {"a": 2, "b": 2}


LOADS = st.tuples(st.sampled_from(sorted(PER_CORE)), st.floats(5.0, 220.0))
SMALL = replace(KIND, model="small", cores=4, names=("s1",))
LARGE = replace(KIND, index=1, model="large", cost=1.7, names=("l1",))


@st.composite
def traces(draw: st.DrawFn) -> tuple[list[Arrival], list[NicKind]]:
    """Up to five instances, of which some leave and some already run, and one or two kinds of NIC, some limited."""
    kinds = draw(
        st.sampled_from([[KIND], [SMALL, LARGE], [SMALL, replace(LARGE, count=1)], [replace(SMALL, count=1), LARGE]])
    )
    homes = [None, None, None, *([] if len(kinds) == 1 else ["s1", "l1"])]
    arrivals, free = [], {"s1": 4, "l1": 8}
    for at in range(draw(st.integers(1, 5))):
        nf, kpps = draw(LOADS)
        stay, home = draw(st.sampled_from([None, 1.5, 3.0])), draw(st.sampled_from(homes))
        if home and free[home] < 2:
            home = None
        free[home or ""] = free.get(home or "", 0) - 2
        workload = Workload(nf, TOY_TRAFFIC, kpps)
        departure = None if stay is None else at + stay
        arrivals.append(Arrival(str(at), float(at), workload, Sla(max_drop=0.0), departure, home))
    return arrivals, kinds


@settings(max_examples=60, deadline=None)
@given(traces())
@pytest.mark.long
def test_no_plan_is_better_than_the_best_of_all_and_none_is_far(of: tuple[list[Arrival], list[NicKind]]) -> None:
    """All are placed that can be, for the cost of at most one NIC more, never for less, and the bound is below."""
    (arrivals, kinds), oracle = of, Disturbed()
    planner = _planner(arrivals, *kinds)
    found = planner.plan(0.0, time.monotonic() + 20)
    plan = Plan("planned", None, placements_on(arrivals, kinds, found), 0.0)
    check_plan(plan, arrivals, kinds)
    assert not any(slas_kept(plan, [oracle] * len(kinds)))
    best = exhaustive_trace(arrivals, kinds, [oracle] * len(kinds))
    assert plan.rejected == best.rejected
    cost, bound = peak_cost(plan, kinds), planner.bound_of(plan)
    assert best.cost - 1e-9 <= cost <= best.cost + max(kind.cost for kind in kinds) + 1e-9
    assert peak_nics(plan) >= best.nics
    if not plan.rejected:
        assert bound.cost <= best.cost + 1e-9
        assert bound.nics <= best.nics


@settings(max_examples=25, deadline=None)
@given(st.lists(LOADS, min_size=1, max_size=40))
def test_every_plan_keeps_cores_and_slas(loads: list[tuple[str, float]]) -> None:
    """Each instance is on one NIC, none has too many, and what it carries there is what it is offered."""
    arrivals, oracle = _arrivals(*loads), Disturbed()
    nics = _plan(arrivals)
    assert _ids(nics) == sorted(arrival.id for arrival in arrivals)
    assert len(nics) >= _planner(arrivals).fewest.nics
    for nic in nics:
        assert KIND.fits([tenant.workload for tenant in nic])
        answers = oracle.throughput([tuple(tenant.workload for tenant in nic)])[0]
        assert all(kpps >= tenant.required_kpps(0.0) for tenant, kpps in zip(nic, answers, strict=True))


def test_a_plan_that_is_begun_from_another_is_no_worse() -> None:
    """Twenty light instances, each on a NIC of its own, end on the three NICs of the bound."""
    arrivals = _arrivals(*[("a", 40.0 + at) for at in range(20)])
    planner = _planner(arrivals)
    nics = planner.shrink([(KIND, [arrival.tenant]) for arrival in arrivals], 0.0, time.monotonic() + 20)
    assert planner.fewest.nics <= len(nics) <= planner.fewest.nics + 1
    assert sum(len(tenants) for _, tenants in nics) == 20


@pytest.mark.parametrize("allowed", [0.0, 0.1])
def test_the_same_instances_give_the_same_plan(allowed: float) -> None:
    arrivals = _arrivals(*[("ab"[at % 2], 20.0 + 9 * at) for at in range(16)])
    plans = [_planner(arrivals).plan(allowed, time.monotonic() + 20) for _ in range(2)]
    assert plans[0] == plans[1]


def test_where_nics_are_few_most_instances_are_placed() -> None:
    """One NIC of eight cores takes six of one core and one of two, and leaves out the three that take four each."""
    kind = NicKind(0, "toy", 8, KIND.cores_of, count=1, core_counts=KIND.core_counts)
    (nic,) = _plan(_arrivals(*[("a", 350.0)] * 3, *[("a", 60.0)] * 6, ("a", 150.0)), kind)
    assert sorted(tenant.id for tenant in nic) == ["3", "4", "5", "6", "7", "8", "9"]


def test_instances_that_follow_each_other_share_a_nic_in_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where so many moments are merged that the search keeps the two apart."""
    monkeypatch.setattr(rate_nics, "MOST_MOMENTS", 1)
    first, second = _arrivals(("a", 350.0), ("a", 350.0))
    kind = NicKind(0, "toy", 4, KIND.cores_of, core_counts=KIND.core_counts)
    planner = _planner([replace(first, departure=1.0), replace(second, time=2.0, departure=3.0)], kind)
    assert (planner.fewest.nics, len(planner.plan(0.0, time.monotonic() + 20))) == (1, 2)


def test_a_plan_that_is_begun_with_a_broken_nic_uses_no_more_nics_than_there_are() -> None:
    """What runs on the first of two NICs violates its SLA, so nobody joins it: both others share the second."""
    kind = NicKind(0, "toy", 8, KIND.cores_of, count=2, core_counts=KIND.core_counts)
    broken, first, second = _arrivals(("a", 450.0), ("a", 90.0), ("a", 90.0))
    broken = replace(broken, nic="nic-1", workload=replace(broken.workload, cores=4))
    planner = _planner([broken, first, second], kind)
    nics = planner.shrink([(kind, [broken.tenant, first.tenant]), (kind, [second.tenant])], 0.5, time.monotonic() + 20)
    assert sorted(_ids([tenants]) for _, tenants in nics) == [["0"], ["1", "2"]]


DAY_DISTURBANCE = {"a": 0.3, "b": 0.35}
GBPS_OF_KPPS = 8e-6 * (TOY_TRAFFIC.packet_size + 20)
PORT_KPPS = 335.0
DAY_KIND = NicKind(
    0, "toy", 8, dict.fromkeys(PER_CORE, 2), core_counts=dict.fromkeys(PER_CORE, COUNTS),
    line_rate_gbps=PORT_KPPS * GBPS_OF_KPPS,
)  # fmt: skip
SHARES = (0.0, 0.1, 0.4, 0.7, 1.0)
Load = tuple[str, float, tuple[float, ...], float | None]
"""An NF, its rate (kpps), the shares of it, and what it must carry (kpps); None for all."""


def _carried(workloads: Sequence[tuple[str, float, int]]) -> list[float]:
    """What NFs with a rate and cores can carry together: each loses a share by how busy its neighbours are."""
    most = [PER_CORE[nf] * cores for nf, _, cores in workloads]
    exerted = [DAY_DISTURBANCE[nf] * min(rate / of, 1.0) for (nf, rate, _), of in zip(workloads, most, strict=True)]
    return [of * max(1.0 - (sum(exerted) - own), 0.05) for of, own in zip(most, exerted, strict=True)]


class Busy(Oracle):
    """`_carried`, as an oracle."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [
            _carried([(workload.nf, workload.rate_kpps, workload.cores or 2) for workload in together])
            for together in co_locations
        ]


def _day_arrivals(loads: Sequence[Load]) -> list[Arrival]:
    return [
        Arrival(str(at), 0.0, Workload(nf, TOY_TRAFFIC, kpps), Sla(0.0) if least is None else Sla(None, least), day=day)
        for at, (nf, kpps, day, least) in enumerate(loads)
    ]


def _day_planner(loads: Sequence[Load]) -> RatePlanner:
    oracle = Busy()
    known = KnownKind(
        DAY_KIND,
        DayJudge(OracleJudge(oracle)),
        lambda workload: {"cores": DAY_KIND.cores_for(workload) / DAY_KIND.cores},
        lambda workloads: [oracle.solo(workload) for workload in workloads],
    )
    return RatePlanner(_day_arrivals(loads), [known])


def _day_plan(planner: RatePlanner) -> list[Sequence[Tenant]]:
    return [tenants for _, tenants in planner.plan(0.0, time.monotonic() + 60)]


# All plans, by code of its own.


def _serves(loads: Sequence[Load], cores: Sequence[int]) -> bool:
    """Whether one NIC carries these in every part of the day."""
    if sum(cores) > DAY_KIND.cores:
        return False
    for part in range(len(loads[0][2])):
        there = [
            (nf, kpps * day[part], count, least)
            for (nf, kpps, day, least), count in zip(loads, cores, strict=True)
            if day[part] > 0
        ]
        if sum(rate for _, rate, _, _ in there) > PORT_KPPS * (1 + 1e-9):
            return False
        capacity = _carried([(nf, rate, count) for nf, rate, count, _ in there])
        for (_, rate, _, least), kpps in zip(there, capacity, strict=True):
            if kpps < 0.995 * (rate if least is None else min(least, rate)):
                return False
    return True


def _partitions(items: list[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(len(rest) + 1):
        for others in combinations(rest, size):
            for more in _partitions([item for item in rest if item not in others]):
                yield [[first, *others], *more]


def _fewest_nics(loads: Sequence[Load]) -> int:
    """By trying every way to share NICs, and all numbers of cores; of those that a NIC carries alone."""
    able = [at for at, load in enumerate(loads) if any(_serves([load], [count]) for count in COUNTS)]
    known: dict[tuple[int, ...], bool] = {}

    def shares(part: list[int]) -> bool:
        if tuple(part) not in known:
            together = [loads[at] for at in part]
            known[tuple(part)] = any(_serves(together, cores) for cores in product(COUNTS, repeat=len(part)))
        return known[tuple(part)]

    return min(len(parts) for parts in _partitions(able) if all(map(shares, parts)))


@st.composite
def _few_loads(draw: st.DrawFn) -> list[Load]:
    parts = draw(st.integers(2, 4))
    shares = st.lists(st.sampled_from(SHARES), min_size=parts, max_size=parts).filter(any).map(tuple)
    rate = st.sampled_from([30.0, 55.0, 90.0, 130.0, 190.0, 260.0, 330.0])
    some = st.tuples(st.sampled_from(["a", "b"]), rate, shares, st.sampled_from([None, None, 0.8, 0.5]))
    drawn = draw(st.lists(some, min_size=1, max_size=5))
    return [(nf, kpps, day, None if least is None else least * kpps) for nf, kpps, day, least in drawn]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(_few_loads())
def test_every_plan_carries_every_part_of_the_day_and_none_is_below_the_bound(loads: list[Load]) -> None:
    planner = _day_planner(loads)
    plan, fewest = _day_plan(planner), _fewest_nics(loads)
    for nic in plan:
        assert _serves([loads[int(tenant.id)] for tenant in nic], [tenant.workload.cores for tenant in nic])
    placed = sorted(int(tenant.id) for nic in plan for tenant in nic)
    assert placed == [at for at, load in enumerate(loads) if any(_serves([load], [count]) for count in COUNTS)]
    assert planner.fewest.nics <= fewest <= len(plan)


@settings(max_examples=examples(15), deadline=None)
@given(_few_loads())
def test_the_optimum_of_few_instances_is_proven_for_hours_and_for_peaks(loads: list[Load]) -> None:
    found = find_optimum(_day_arrivals(loads), WithoutModels([DAY_KIND]), [Busy()], time_limit=60)
    check_plan(found.plan, _day_arrivals(loads), [DAY_KIND])
    assert not any(slas_kept(found.plan, [Busy()]))
    assert (found.proven, found.nics, found.nics_lower_bound) == (True, *[_fewest_nics(loads)] * 2)
    assert found.plan.peak_nics == _fewest_nics([(nf, kpps, (1.0,), least) for nf, kpps, _, least in loads])


@pytest.mark.long
def test_few_plans_have_a_nic_too_many_and_hours_save_one_in_many() -> None:
    """Of 150 sets of five instances, at most a tenth has one NIC too many, and none has two.

    Hours save a NIC in at least a quarter of the sets, where all plans are tried by hours and by peaks.
    """
    rng = random.Random(7)
    beyond: Counter[int] = Counter()
    saved: Counter[int] = Counter()
    for _ in range(150):
        loads: list[Load] = []
        parts = rng.randint(2, 4)
        for _ in range(5):
            day = tuple(rng.choice(SHARES) for _ in range(parts - 1))
            place = rng.randint(0, parts - 1)
            loads.append(("a", rng.uniform(70, 180), (*day[:place], 1.0, *day[place:]), None))
        fewest = _fewest_nics(loads)
        beyond[len(_day_plan(_day_planner(loads))) - fewest] += 1
        saved[_fewest_nics([(nf, kpps, (1.0,), least) for nf, kpps, _, least in loads]) - fewest] += 1
    assert set(beyond) <= {0, 1} and beyond[0] >= 135
    assert min(saved) == 0 and saved.total() - saved[0] >= 38
