"""The optimum of a fleet of NICs and GPUs, against exhaustive search. NIC kinds that differ in nothing but their
number. The optimum beside instances that already run, on cases worked by hand and against exhaustive search."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings

import placer.optimal
from placer.evaluate.checks import check_plan, slas_kept
from placer.evaluate.evaluation import evaluate, to_buy
from placer.model.arrival import Arrival, running_nics
from placer.model.catalogue import Catalogue
from placer.model.gpu_oracle import GpuOracle, GpuSchedule, Scheduled
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.sla import Sla
from placer.optimal import optimal_plan
from placer.optimal.certificate import certificate, refuse_uncertifiable
from placer.optimal.cores_bound import cores_bounds
from placer.optimal.merged_kinds import MergedKinds
from placer.optimal.neighbourhoods import neighbourhood_plan
from placer.optimal.trace_optimum import find_optimum
from placer.testing.strategies import ToyCatalogue, ToyOracle, arrival, catalogue
from profiles import InputError, Workload
from tests.effort import examples
from tests.placer.optimal.exhaustive import exhaustive_plan, exhaustive_trace
from tests.placer.optimal.instances import TableOracle, faults_of, workload
from tests.placer.toy_gpu import ToyAdmission, mixed, promised
from tests.properties.test_optimal import Instance, SmallTrace, instances, traces_with_running


def drawn(seed: int, tenants: int) -> list[Tenant]:
    """Random tenants, two thirds of which are promised a latency."""
    draw = random.Random(seed)
    found = []
    for number in range(tenants):
        nf = draw.choice("aab")
        if draw.random() < 1 / 3:
            found.append(arrival(str(number), 0, draw.choice("abcd"), draw.choice([0.05, 0.1, 0.3])).tenant)
        else:
            rate, latency = draw.choice([50.0, 90.0, 300.0, 1500.0]), draw.choice([35.0, 45.0, 60.0, 95.0])
            found.append(promised(str(number), nf, rate, latency).tenant)
    return found


@pytest.mark.parametrize("seed", range(examples(40)))
def test_it_is_that_of_exhaustive_search(seed: int) -> None:
    """As many tenants placed, at the same cost, and proven; GPUs may cost more or less, and be few."""
    draw = random.Random(seed)
    fleet = mixed(draw.choice([None, 1, 2]), draw.choice([0.5, 1.0, 2.5]), draw.choice([None, 1]))
    tenants = drawn(seed, draw.randint(1, 7))
    oracles = fleet.oracles("toy")
    found, best = optimal_plan(tenants, fleet.kinds, oracles), exhaustive_plan(tenants, fleet.kinds, oracles)
    assert faults_of(found, tenants, fleet.kinds, oracles) == []
    assert len(found.unplaced) == len(best.unplaced) and found.cost == pytest.approx(best.cost)
    assert found.proven and found.departure_safe


@pytest.mark.parametrize("seed", range(examples(10)))
def test_the_search_by_neighbourhoods_keeps_its_bound(seed: int) -> None:
    """Its plan has no fault, and its bounds are no higher than the least cost."""
    fleet, tenants = mixed(), drawn(100 + seed, 8)
    tenants = [one for one in tenants if any(kind.hosts(one.workload) for kind in fleet.kinds)]
    oracles = fleet.oracles("toy")
    best = exhaustive_plan(tenants, fleet.kinds, oracles)
    placed = [one for one in tenants if one.id not in {left.id for left in best.unplaced}]
    found = neighbourhood_plan(placed, fleet.kinds, oracles, None, deadline=time.monotonic() + 0.3, solver="cp-sat")
    assert faults_of(found, placed, fleet.kinds, oracles) == []
    assert found.lower_bound <= best.cost + 1e-9 <= found.cost + 1e-6
    assert cores_bounds(placed, fleet.kinds, 0, 1.0)[1] <= len(best.nics)


def test_of_a_trace_it_uses_each_device_for_what_it_does_best() -> None:
    """Six NFs that need 45 us share three GPUs, two on each; what needs no latency stays on a NIC."""
    fleet = mixed(gpu_cost=0.9)
    trace = [*(promised(str(n), "b", 300.0, 45.0, n) for n in range(6)), arrival("d", 7, "d"), arrival("e", 8, "d")]
    found = find_optimum(trace, fleet, fleet.oracles("toy"), time_limit=5)
    assert found.proven and found.cost == pytest.approx(3 * 0.9 + 1)
    assert not any(slas_kept(found.plan, fleet.oracles("toy")))
    assert {p.kind.model for p in found.plan.placed if p.kind and p.arrival.workload.nf == "d"} == {"toy"}


class Undecided(ToyAdmission):
    """Does not know whether two NFs can share a GPU."""

    def schedule(self, workloads: Sequence[Workload]) -> GpuSchedule:
        if len(workloads) == 1:
            return super().schedule(workloads)
        return GpuSchedule(tuple(Scheduled(None, "kernel") for _ in workloads), proven=len(workloads) > 2)


def test_a_bound_allows_for_what_the_admission_test_leaves_undecided() -> None:
    """Four NFs get a GPU each, for two may be unable to share one; two GPUs may be enough, so nothing is proven."""
    fleet = replace(mixed(curves={}), gpus={1: GpuOracle(Undecided())})
    trace = [promised(str(n), "b", 10.0, 90.0, n) for n in range(4)]
    found = find_optimum(trace, fleet, fleet.oracles("toy"), time_limit=5)
    assert (found.nics, found.lower_bound, found.nics_lower_bound, found.proven) == (4, 2.0, 2, False)
    assert found.scope.endswith("; 1 admission test undecided")


@pytest.mark.parametrize("home", [None, "x"])
@pytest.mark.parametrize("leaves", [None, 9.0])
def test_beside_gpus_no_port_has_more_packets_than_it_carries(home: str | None, leaves: float | None) -> None:
    """Each of four instances is offered 0.36 Gb/s: two share a port of 1 Gb/s, of which one may already run there."""
    fleet = mixed(curves={})
    nic = replace(fleet.kinds[0], line_rate_gbps=1.0, names=("x",))
    fleet = replace(fleet, kinds=(nic, fleet.kinds[1]))
    trace = [
        Arrival(str(n), float(n), replace(workload("c"), rate_kpps=30.0), Sla(max_drop=0.0), leaves) for n in range(4)
    ]
    trace[0] = replace(trace[0], nic=home)
    found = find_optimum(trace, fleet, fleet.oracles("toy"), time_limit=10)
    check_plan(found.plan, trace, fleet.kinds)
    assert (found.nics, found.lower_bound, found.proven) == (2, 2.0, True)


KIND = NicKind(0, "bluefield-2", 8, {"acl": 2, "nids": 4}, count=1)
FIVE = [
    Arrival(str(i), float(i), workload(nf), Sla(max_drop=0.1))
    for i, nf in enumerate(("acl", "acl", "nids", "nids", "acl"))
]


@pytest.mark.parametrize("lasts", [None, 3.0])
def test_a_thousand_nics_of_a_kind_each_are_one_kind(lasts: float | None) -> None:
    """Five arrivals and 1,000 fleet tables of one NIC each: two different NICs, proven within the time limit."""
    kinds = tuple(replace(KIND, index=i) for i in range(1_000))
    trace = [replace(one, departure=None if lasts is None else one.time + lasts) for one in FIVE]
    catalogue = Catalogue(kinds, (), (), specs=("none",) * len(kinds))
    found = find_optimum(trace, catalogue, [TableOracle({})] * len(kinds), time_limit=60)
    assert (found.nics, found.proven) == (2, True)
    used = {(placement.nic, placement.kind.index) for placement in found.plan.placed if placement.kind}
    assert len(used) == len({kind for _, kind in used}) == 2
    if lasts is None:
        assert len(certificate(trace, catalogue, found)["bound"]["nic_prices"]) == len(kinds)


def test_kinds_of_different_cost_or_oracle_stay_apart() -> None:
    """Owned NICs and bought ones, or NICs that another oracle predicts, are different kinds; counts add up."""
    oracle = TableOracle({})
    kinds = [KIND, replace(KIND, index=1, cost=2), replace(KIND, index=2), replace(KIND, index=3, count=4)]
    merged = MergedKinds.of(kinds, [oracle, oracle, TableOracle({}), oracle])
    assert [(kind.index, kind.count) for kind in merged.kinds] == [(0, 5), (1, 1), (2, 1)]
    assert [merged.kind_of(0, number).index for number in range(5)] == [0, 3, 3, 3, 3]


@given(instances())
@settings(max_examples=examples(60))
def test_listing_kinds_twice_is_doubling_their_number(given_: Instance) -> None:
    """Whatever the oracle, the optimum over kinds that are listed twice is that of exhaustive search."""
    tenants, kinds, oracles = given_
    twice = [*kinds, *(replace(kind, index=len(kinds) + kind.index) for kind in kinds)]
    optimum = optimal_plan(tenants, twice, [*oracles, *oracles])
    expected = exhaustive_plan(tenants, twice, [*oracles, *oracles])
    assert faults_of(optimum, tenants, twice, [*oracles, *oracles]) == []
    assert (len(optimum.unplaced), optimum.proven) == (len(expected.unplaced), True)
    assert optimum.cost == pytest.approx(expected.cost)
    assert all(count <= (kind.count or 99) for kind, count in Counter(kind for kind, _ in optimum.nics).items())


RUNNING = [
    arrival("c", 9, "c", 0.09, nic="x"),
    arrival("c2", 9, "c", 0.1, nic="y"),
    arrival("b1", 9, "b", 0.5, nic="y"),
    arrival("b2", 9, "b", 0.5, nic="y"),
]
FURTHER = [arrival(f"d{number}", number, "d", 0.5) for number in range(3)]


def optimum_of(arrivals: list[Arrival], nics: ToyCatalogue) -> tuple[dict[str, str | None], int, float, float, bool]:
    """The NIC of each instance, the NICs, their cost, the bound on it, and whether it is proven; all checked."""
    found = find_optimum(arrivals, nics, [ToyOracle() for _ in nics.kinds], time_limit=10)
    check_plan(found.plan, arrivals, nics.kinds)
    assert not list(slas_kept(found.plan, [ToyOracle() for _ in nics.kinds]))
    homes = {placement.arrival.id: placement.nic for placement in found.plan.placements}
    return homes, found.nics, found.cost, found.lower_bound, found.proven


@pytest.mark.parametrize("leaves", [None, 20.0])
def test_nics_in_use_are_filled_as_far_as_their_slas_allow(leaves: float | None) -> None:
    """c on x loses 6 % next to one d, 12 % next to two, and accepts 9 %. On y, c loses 20 % next to two b: it is broken
    before, and bars all. Three d take more cores than a NIC has. So one is on x, two share a new NIC, and three NICs
    are the least; if what arrives leaves again, too."""
    trace = [*(replace(one, departure=leaves) for one in FURTHER), *RUNNING]
    homes, nics, cost, bound, proven = optimum_of(trace, catalogue())
    assert (nics, cost, bound, proven) == (3, 3.0, 3.0, True)
    assert sorted(str(homes[one.id]) for one in FURTHER) == ["nic-3", "nic-3", "x"]


def test_what_leaves_makes_room() -> None:
    """y is whole again when b2 leaves at 4 s, but c would lose 14 % beside b and a, and 16 % beside b and d. So a goes
    to x, and when b1 leaves, at 5 s, d fits beside c on y: no further NIC is needed. Two d at 4 s need one."""
    leaving = {"b1": 5.0, "b2": 4.0}
    running = [replace(one, time=0, departure=leaving.get(one.id)) for one in RUNNING]
    homes, nics, *_, proven = optimum_of([*running, arrival("a", 4, "a", 0.5), arrival("d", 5, "d", 0.5)], catalogue())
    assert (homes["a"], homes["d"], nics, proven) == ("x", "y", 2, True)
    homes, nics, *_, proven = optimum_of(
        [*running, arrival("d", 4, "d", 0.5), arrival("d2", 4, "d", 0.5)], catalogue((2, 1.0))
    )
    assert ([homes["d"], homes["d2"]].count("x"), [homes["d"], homes["d2"]].count(None)) == (1, 1)
    assert (nics, proven) == (2, True)


def test_a_limited_fleet_lacks_what_does_not_fit_beside_what_runs() -> None:
    """Of two NICs both are in use: two of three arrivals are left out, and one more NIC is enough for them."""
    found = find_optimum([*FURTHER, *RUNNING], catalogue((2, 1.0)), [ToyOracle()], time_limit=10)
    assert (found.plan.rejected, found.nics, found.proven) == (2, 2, True) and found.shortfall is not None
    assert (found.shortfall.proven, found.shortfall.to_add, found.shortfall.everything) == (True, {"toy-0": 1}, False)


def test_only_what_already_runs_is_a_plan_too() -> None:
    """Nothing is decided; its broken SLA is counted, and the NICs in use are the optimum."""
    homes, nics, cost, bound, proven = optimum_of(RUNNING, catalogue())
    assert set(homes.values()) == {"x", "y"} and (nics, cost, bound, proven) == (2, 2.0, 2.0, True)
    found = find_optimum(RUNNING, catalogue(), [ToyOracle()], time_limit=10)
    assert evaluate(found.plan, catalogue().kinds, [ToyOracle()]).violated == 1


@pytest.mark.parametrize("leaves", [None, 50.0])
def test_of_plans_that_cost_the_same_owned_nics_are_used(leaves: float | None) -> None:
    """Five d that share with nobody need five NICs: of the second kind three are owned, and one of these is in use."""
    nics = catalogue((None, 1.0), (None, 1.0), (None, 2.0))
    kinds = (nics.kinds[0], replace(nics.kinds[1], owned=3, names=("x",)), nics.kinds[2])
    nics = replace(nics, kinds=kinds)
    trace = [arrival("0", 0, "d", 0.0, leaves, nic="x"), *(arrival(str(i), 1, "d", 0.0, leaves) for i in range(1, 5))]
    found = find_optimum(trace, nics, [ToyOracle() for _ in kinds], time_limit=10)
    check_plan(found.plan, trace, kinds)
    assert (found.cost, found.proven) == (5, True) and sum(to_buy(found.plan, kinds).values()) == 2


def test_what_already_runs_is_not_certified() -> None:
    """A certificate is of a plan from the start."""
    with pytest.raises(InputError, match="instances of the trace already run"):
        refuse_uncertifiable(RUNNING)


@pytest.mark.long
@given(traces_with_running(departures=False))
@settings(max_examples=40, deadline=None)
def test_without_all_co_locations_the_plan_and_the_bound_are_valid(trace: SmallTrace) -> None:
    """The neighbourhood search, too, keeps what runs where it is, and its bounds are no higher than the optimum."""
    arrivals, kinds, oracles = trace
    arrivals = [replace(one, time=0.0) for one in arrivals]
    running = running_nics(arrivals, kinds)
    further = [one.tenant for one in arrivals if one.nic is None]
    with patch.object(placer.optimal, "MOST_CO_LOCATIONS", 0):
        optimum = optimal_plan(further, kinds, oracles, time_limit=0.03, running=running)
    best = exhaustive_trace(arrivals, kinds, oracles)
    for nic in running:
        assert any(kind is nic.kind and set(nic.tenants) <= set(tenants) for kind, tenants in optimum.nics)
    assert (best.rejected, best.cost) <= (len(optimum.unplaced), optimum.cost + 1e-9)
    assert optimum.cost == pytest.approx(sum(kind.cost for kind, _ in optimum.nics))
    if best.rejected == len(optimum.unplaced):
        assert optimum.lower_bound <= best.cost + 1e-9 and optimum.nics_lower_bound <= best.nics
    if optimum.proven:
        assert optimum.cost == pytest.approx(best.cost)
