"""Plans for instances at offered rates, with the cores that each gets."""

import time
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.model.sla import Sla
from placer.optimal.loads import LoadPlan, LoadPlanner, OracleJudge
from placer.testing.strategies import TOY_TRAFFIC
from profiles import CoLocation, Workload

COUNTS = (1, 2, 4)
PER_CORE = {"a": 100.0, "b": 60.0}
DISTURBANCE = {"a": 0.03, "b": 0.08}
KIND = NicKind(0, "toy", 8, dict.fromkeys(PER_CORE, 2), core_counts=dict.fromkeys(PER_CORE, COUNTS))


class Disturbed(Oracle):
    """Cores add up, and every neighbour takes a share of them, by how much of its own cores it uses."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        answers = []
        for co_location in co_locations:
            exerted = [DISTURBANCE[one.nf] * min(one.rate_kpps / self._most(one), 1.0) for one in co_location]
            lost = sum(exerted)
            answers.append(
                [self._most(one) * (1.0 - lost + own) for one, own in zip(co_location, exerted, strict=True)]
            )
        return answers

    @staticmethod
    def _most(workload: Workload) -> float:
        return PER_CORE[workload.nf] * (workload.cores or 2)


def _tenants(*loads: tuple[str, float]) -> list[Tenant]:
    return [Tenant(str(at), Workload(nf, TOY_TRAFFIC, kpps), Sla(max_drop=0.0)) for at, (nf, kpps) in enumerate(loads)]


def _planner(tenants: Sequence[Tenant], kind: NicKind = KIND) -> LoadPlanner:
    oracle = Disturbed()
    return LoadPlanner(
        tenants,
        kind,
        OracleJudge(oracle),
        lambda workload: {"cores": kind.cores_for(workload) / kind.cores},
        lambda workloads: [oracle.solo(workload) for workload in workloads],
    )


def _plan(tenants: Sequence[Tenant], kind: NicKind = KIND) -> LoadPlan:
    return _planner(tenants, kind).plan(0.0, time.monotonic() + 20)


def test_an_instance_gets_the_cores_that_its_rate_takes() -> None:
    """90, 150 and 300 kpps of an NF that carries 100 on a core: one, two and four cores, on one NIC."""
    plan = _plan(_tenants(("a", 90.0), ("a", 150.0), ("a", 300.0)))
    (nic,) = plan.nics
    assert sorted(tenant.workload.cores for tenant in nic) == [1, 2, 4]
    assert (plan.bound, plan.left_out) == (1, [])


def test_the_bound_is_that_of_cores() -> None:
    """Nine instances that take a core each need two NICs of eight; three that take four each need two."""
    assert _planner(_tenants(*[("a", 50.0)] * 9)).bound == 2
    assert _planner(_tenants(*[("a", 350.0)] * 3)).bound == 2


def test_the_bound_is_that_of_the_port() -> None:
    """Ten instances of 1 Gb/s each, on one core, need three ports of 4 Gb/s."""
    kpps = 1e6 / (8 * (TOY_TRAFFIC.packet_size + 20))
    kind = NicKind(0, "toy", 8, KIND.cores_of, core_counts=KIND.core_counts, line_rate_gbps=4.0)
    plan = _plan(_tenants(*[("a", kpps)] * 10), kind)
    assert plan.bound == 3
    assert [sum(map(kind.gbps_of, (tenant.workload for tenant in nic))) <= 4.0 for nic in plan.nics] == [True] * 3


def test_what_no_number_of_cores_carries_is_left_out() -> None:
    assert [tenant.id for tenant in _plan(_tenants(("a", 401.0), ("a", 403.0), ("a", 10.0))).left_out] == ["1"]


def test_a_neighbour_that_disturbs_costs_a_core() -> None:
    """Alone 98 kpps take one core; beside b at 60 kpps, which takes 8 %, they take two."""
    (nic,) = _plan(_tenants(("a", 98.0), ("b", 60.0))).nics
    assert {tenant.workload.nf: tenant.workload.cores for tenant in nic} == {"a": 2, "b": 2}


def _partitions(items: list[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(len(rest) + 1):
        for others in combinations(rest, size):
            left = [item for item in rest if item not in others]
            for more in _partitions(left):
                yield [[first, *others], *more]


def _serves(tenants: Sequence[Tenant], oracle: Oracle) -> bool:
    """Whether one NIC serves all of these with some numbers of cores."""
    for counts in product(COUNTS, repeat=len(tenants)):
        if sum(counts) <= KIND.cores:
            co_location = tuple(
                Workload(tenant.workload.nf, TOY_TRAFFIC, tenant.workload.rate_kpps, cores=cores)
                for tenant, cores in zip(tenants, counts, strict=True)
            )
            answers = oracle.throughput([co_location])[0]
            if all(kpps >= tenant.required_kpps(0.0) for tenant, kpps in zip(tenants, answers, strict=True)):
                return True
    return False


def _fewest_nics(tenants: Sequence[Tenant]) -> int:
    """By trying all: every way to share NICs, and all numbers of cores."""
    oracle = Disturbed()
    together: dict[tuple[int, ...], bool] = {}

    def serves(part: list[int]) -> bool:
        key = tuple(part)
        if key not in together:
            together[key] = _serves([tenants[at] for at in part], oracle)
        return together[key]

    possible = (parts for parts in _partitions(list(range(len(tenants)))) if all(map(serves, parts)))
    return min(map(len, possible))


LOADS = st.tuples(st.sampled_from(sorted(PER_CORE)), st.floats(5.0, 220.0))


@settings(max_examples=25, deadline=None)
@given(st.lists(LOADS, min_size=1, max_size=5))
def test_no_plan_is_better_than_the_best_of_all_and_none_is_far(loads: list[tuple[str, float]]) -> None:
    """Of up to five instances: at most one NIC more than the fewest, never fewer, and the bound is below."""
    tenants = _tenants(*loads)
    plan, fewest = _plan(tenants), _fewest_nics(tenants)
    assert plan.bound <= fewest <= len(plan.nics) <= fewest + 1


@settings(max_examples=25, deadline=None)
@given(st.lists(LOADS, min_size=1, max_size=40))
def test_every_plan_keeps_cores_and_slas(loads: list[tuple[str, float]]) -> None:
    """Each instance is on one NIC, none has too many, and what it carries there is what it is offered."""
    tenants, oracle = _tenants(*loads), Disturbed()
    plan = _plan(tenants)
    assert sorted(tenant.id for nic in plan.nics for tenant in nic) == sorted(tenant.id for tenant in tenants)
    assert len(plan.nics) >= plan.bound
    for nic in plan.nics:
        assert KIND.fits([tenant.workload for tenant in nic])
        answers = oracle.throughput([tuple(tenant.workload for tenant in nic)])[0]
        assert all(kpps >= tenant.required_kpps(0.0) for tenant, kpps in zip(nic, answers, strict=True))


def test_a_plan_that_is_begun_from_another_is_no_worse() -> None:
    """Twenty light instances, each on a NIC of its own, end on the three NICs of the bound."""
    tenants = _tenants(*[("a", 40.0 + at) for at in range(20)])
    planner = _planner(tenants)
    plan = planner.shrink([[tenant] for tenant in tenants], 0.0, time.monotonic() + 20)
    assert planner.bound <= len(plan.nics) <= planner.bound + 1 and plan.left_out == []


@pytest.mark.parametrize("allowed", [0.0, 0.1])
def test_the_same_instances_give_the_same_plan(allowed: float) -> None:
    tenants = _tenants(*[("ab"[at % 2], 20.0 + 9 * at) for at in range(16)])
    plans = [_planner(tenants).plan(allowed, time.monotonic() + 20).nics for _ in range(2)]
    assert plans[0] == plans[1]


def test_where_nics_are_few_most_instances_are_placed() -> None:
    """One NIC of eight cores takes six of one core and one of two, and leaves out the three that take four each."""
    kind = NicKind(0, "toy", 8, KIND.cores_of, count=1, core_counts=KIND.core_counts)
    plan = _plan(_tenants(*[("a", 350.0)] * 3, *[("a", 60.0)] * 6, ("a", 150.0)), kind)
    (nic,) = plan.nics
    assert sorted(tenant.id for tenant in nic) == ["3", "4", "5", "6", "7", "8", "9"]
    assert [tenant.id for tenant in plan.left_out] == ["0", "1", "2"]
