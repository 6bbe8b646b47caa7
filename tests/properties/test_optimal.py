"""The pattern program against exhaustive search, with random oracles."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placer.optimal
from placer.evaluate.checks import check_plan, slas_kept
from placer.evaluate.evaluation import evaluate
from placer.model.arrival import Arrival
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.sla import Sla
from placer.optimal import Optimum, optimal_plan
from placer.optimal.co_location_pricer import generate_plan
from placer.optimal.incumbent import first_incumbent
from placer.optimal.trace_optimum import find_optimum
from profiles import CoLocation
from tests.effort import examples
from tests.placer.optimal.exhaustive import MOST_ARRIVALS, exhaustive_plan, exhaustive_trace
from tests.placer.optimal.instances import CrowdingOracle, ErraticOracle, WithoutModels, faults_of, tenant

NFS = ("acl", "nat", "nids")
EVER = float("inf")
Instance = tuple[list[Tenant], list[NicKind], list[Oracle]]


@st.composite
def tenants_of(draw: st.DrawFn, least: int = 0, most: int = 6, drops_only: bool = False) -> list[Tenant]:
    """A few tenants of a few NFs with either kind of SLA."""
    tenants = []
    for i in range(draw(st.integers(least, most))):
        nf = draw(st.sampled_from(NFS))
        if drops_only or draw(st.booleans()):
            tenants.append(tenant(f"t{i}", nf, drop=draw(st.sampled_from((0.0, 0.05, 0.1, 0.2, 0.3, 0.4)))))
        else:
            tenants.append(tenant(f"t{i}", nf, kpps=draw(st.sampled_from((60.0, 75.0, 90.0, 100.0, 110.0)))))
    return tenants


@st.composite
def instances(draw: st.DrawFn, oracle: Callable[[int], Oracle] = ErraticOracle) -> Instance:
    """Tenants, one to three kinds of NIC with counts and costs, and an oracle for each."""
    kinds = []
    for index in range(draw(st.integers(1, 3))):
        cores_of = {nf: draw(st.integers(1, 3)) for nf in NFS if index or nf != "nids"}
        count = draw(st.sampled_from((None, None, 0, 1, 2)))
        kinds.append(
            NicKind(index, f"nic-{index}", 4, cores_of, count, draw(st.sampled_from((1.0, 1.0, 0.0, 0.7, 2.5))))
        )
    oracles = [oracle(draw(st.integers(0, 10**6))) for _ in kinds]
    return draw(tenants_of()), kinds, oracles


def compare_program_with_exhaustive_search(instance: Instance) -> None:
    """Fails where pattern program and exhaustive search differ, or either violates a constraint."""
    tenants, kinds, oracles = instance
    optimum, best = optimal_plan(*instance), exhaustive_plan(*instance)
    assert faults_of(optimum, tenants, kinds, oracles) == []
    assert faults_of(best, tenants, kinds, oracles) == []
    assert len(optimum.unplaced) == len(best.unplaced) and abs(optimum.cost - best.cost) < 1e-9
    assert optimum.proven


def compare_generation_with_exhaustive_search(instance: Instance) -> None:
    """Fails where column generation is better than exhaustive search, or its bound higher."""
    tenants, kinds, oracles = instance
    incumbent = first_incumbent(tenants, kinds, oracles, EVER)
    plan, bound = generate_plan(incumbent, kinds, oracles, deadline=EVER)
    best = exhaustive_plan(*instance)
    generated = Optimum(
        nics=[(kinds[number], tenants_on) for number, tenants_on in plan.nics],
        unplaced=list(plan.unplaced),
        cost=float(plan.cost(kinds)),
        lower_bound=float(bound),
        nics_lower_bound=0,
        proven=False,
    )
    assert faults_of(generated, tenants, kinds, oracles) == []
    assert plan.cost(kinds) <= incumbent.cost(kinds)
    if len(best.unplaced) == len(plan.unplaced):
        assert generated.lower_bound <= best.cost + 1e-9 <= generated.cost + 2e-9


@given(instances())
@settings(max_examples=examples(150))
def test_the_pattern_program_agrees_with_exhaustive_search(instance: Instance) -> None:
    """Whatever the oracle, the program places as many tenants as can be, at the least cost, and proves it."""
    compare_program_with_exhaustive_search(instance)


@given(instances())
@settings(max_examples=examples(40))
def test_without_all_co_locations_the_plan_and_the_bound_are_valid(instance: Instance) -> None:
    """Whatever the oracle, the plan of the neighbourhood search has no violations, and its bound is valid."""
    tenants, kinds, oracles = instance
    with patch.object(placer.optimal, "MOST_CO_LOCATIONS", 0):
        optimum = optimal_plan(*instance, time_limit=0.03)
    best = exhaustive_plan(*instance)
    assert faults_of(optimum, tenants, kinds, oracles) == []
    assert (len(best.unplaced), best.cost) <= (len(optimum.unplaced), optimum.cost + 1e-9)
    if len(best.unplaced) == len(optimum.unplaced):
        assert optimum.lower_bound <= best.cost + 1e-9
    if optimum.proven:
        assert abs(optimum.cost - best.cost) < 1e-9


@given(instances())
@settings(max_examples=examples(100))
def test_column_generation_makes_valid_plans_and_bounds(instance: Instance) -> None:
    """Whatever the oracle, the plan of generated columns has no violations, and the bound is valid."""
    compare_generation_with_exhaustive_search(instance)


@pytest.mark.slow
@given(instances() | instances(CrowdingOracle))
@settings(max_examples=10_000, deadline=None, database=None, derandomize=False)
def test_ten_thousand_instances_agree(instance: Instance) -> None:
    """Exhaustive search, pattern program and column generation never contradict one another."""
    compare_program_with_exhaustive_search(instance)
    compare_generation_with_exhaustive_search(instance)


@given(instances(CrowdingOracle), tenants_of(1, 1))
@settings(max_examples=examples(60))
def test_one_more_tenant_never_lowers_the_optimum(instance: Instance, arriving: list[Tenant]) -> None:
    """Where neighbours only slow down and all tenants are placed, one tenant more costs at least as much. With other
    oracles this need not be so: the arrival can make others faster."""
    tenants, kinds, oracles = instance
    after = optimal_plan([*tenants, Tenant("arrival", arriving[0].workload, arriving[0].sla)], kinds, oracles)
    if not after.unplaced:
        assert optimal_plan(tenants, kinds, oracles).cost <= after.cost + 1e-9


@given(instances(), st.integers(0, 5))
@settings(max_examples=examples(60))
def test_a_looser_sla_never_makes_the_optimum_worse(instance: Instance, which: int) -> None:
    """Whatever the oracle, when one tenant requires less, no fewer are placed, and as many cost no more."""
    tenants, kinds, oracles = instance
    looser = [
        tenant(t.id, t.workload.nf, drop=min(t.sla.max_drop + 0.2, 0.9))
        if i == which and t.sla.max_drop is not None
        else t
        for i, t in enumerate(tenants)
    ]
    before, after = optimal_plan(tenants, kinds, oracles), optimal_plan(looser, kinds, oracles)
    assert (len(after.unplaced), after.cost) <= (len(before.unplaced), before.cost + 1e-9)


SmallTrace = tuple[list[Arrival], list[NicKind], list[Oracle]]


@st.composite
def small_traces(draw: st.DrawFn, most: int = 6, departures: bool = True) -> SmallTrace:
    """One to three kinds of NIC with counts and costs, and up to `most` arrivals, some of them at one time."""
    _, kinds, oracles = draw(instances(draw(st.sampled_from((ErraticOracle, CrowdingOracle)))))
    return _arrivals(draw, 1, most, departures), kinds, oracles


@st.composite
def traces_on_one_kind(draw: st.DrawFn) -> SmallTrace:
    """Four to eight arrivals for NICs of one kind, and an oracle that is not monotone."""
    kind = NicKind(0, "nic-0", draw(st.sampled_from((4, 6))), {nf: draw(st.integers(1, 3)) for nf in NFS})
    return _arrivals(draw, 4, MOST_ARRIVALS, True), [kind], [ErraticOracle(draw(st.integers(0, 10**6)))]


def _arrivals(draw: st.DrawFn, least: int, most: int, departures: bool) -> list[Arrival]:
    tenants = draw(tenants_of(least, most))
    lasts = st.none() | st.integers(1, 4) if departures else st.none()
    times = sorted(draw(st.lists(st.integers(0, 5), min_size=len(tenants), max_size=len(tenants))))
    stays = draw(st.lists(lasts, min_size=len(tenants), max_size=len(tenants)))
    return [
        Arrival(one.id, float(begins), one.workload, one.sla, departure=None if stay is None else float(begins + stay))
        for one, begins, stay in zip(tenants, times, stays, strict=True)
    ]


@st.composite
def traces_with_running(draw: st.DrawFn, departures: bool = True) -> SmallTrace:
    """A small trace of which some instances already run: each on a NIC of a kind that has the cores for all there."""
    arrivals, kinds, oracles = draw(small_traces(departures=departures))
    kinds = [replace(kind, names=tuple(f"{kind.model}-{i}" for i in range(min(kind.count or 2, 2)))) for kind in kinds]
    kinds = [replace(kind, names=kind.names if kind.count != 0 else ()) for kind in kinds]
    free = {name: kind.cores for kind in kinds for name in kind.names}
    kind_of = {name: kind for kind in kinds for name in kind.names}
    settled = []
    for one in arrivals:
        fitting = [name for name in free if kind_of[name].cores_of.get(one.workload.nf, 9) <= free[name]]
        nic = draw(st.none() | st.sampled_from(fitting)) if fitting else None
        if nic is not None:
            free[nic] -= kind_of[nic].cores_of[one.workload.nf]
        settled.append(replace(one, nic=nic))
    return settled, kinds, oracles


class ErraticOnCores(ErraticOracle):
    """The same where throughputs depend on cores and rates, too."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [
            self._answer([f"{workload.nf}/{workload.cores}/{workload.rate_kpps:g}" for workload in co_location])
            for co_location in co_locations
        ]


@st.composite
def traces_at_rates(draw: st.DrawFn) -> SmallTrace:
    """A small trace of which most instances have a rate, and get as many cores as they take."""
    traces = st.sampled_from((small_traces(5), traces_with_running(), small_traces(5, departures=False)))
    arrivals, kinds, oracles = draw(draw(traces))
    rates = draw(st.lists(st.sampled_from((EVER, 65.0, 80.0, 95.0)), min_size=len(arrivals), max_size=len(arrivals)))
    loaded = [
        replace(
            given, workload=replace(given.workload, rate_kpps=rate), sla=Sla(max_drop=0.0) if rate < EVER else given.sla
        )
        for given, rate in zip(arrivals, rates, strict=True)
    ][:5]
    counts = [dict.fromkeys(kind.cores_of, (1, 2, 4)) for kind in kinds]
    on_cores = [ErraticOnCores(oracle.seed) for oracle in oracles if isinstance(oracle, ErraticOracle | CrowdingOracle)]
    return loaded, [replace(kind, core_counts=of) for kind, of in zip(kinds, counts, strict=True)], [*on_cores]


def compare_with_exhaustive_search(trace: SmallTrace) -> None:
    """Fails where the optimum is not proven, rejects or costs more than needed, or has an SLA violation."""
    arrivals, kinds, oracles = trace
    found = find_optimum(arrivals, WithoutModels(kinds), oracles, time_limit=20)
    check_plan(found.plan, arrivals, kinds)
    assert list(slas_kept(found.plan, oracles)) == []
    if all(one.nic is None for one in arrivals):
        assert evaluate(found.plan, kinds, oracles).violated == 0
    best = exhaustive_trace(arrivals, kinds, oracles)
    assert found.plan.rejected == best.rejected and found.cost == pytest.approx(best.cost)
    assert found.proven and found.lower_bound == pytest.approx(best.cost)
    assert found.nics_lower_bound <= best.nics <= found.nics
    assert (found.shortfall is None) == (best.rejected == 0)
    assert found.shortfall is None or found.shortfall.proven


@pytest.mark.parametrize(
    ("traces", "count"),
    [
        pytest.param(small_traces(), examples(200), marks=pytest.mark.long),
        (small_traces(departures=False), examples(100)),  # SLAs are kept while the NICs fill up, too
        pytest.param(traces_on_one_kind(), examples(60), marks=pytest.mark.long),  # an oracle that is not monotone
        pytest.param(traces_with_running(), 200, marks=pytest.mark.long),  # with whatever SLAs broken: it stays
        # the pattern program has what is left of NICs in use as further kinds
        pytest.param(traces_with_running(departures=False), 100, marks=pytest.mark.long),
        (traces_at_rates(), examples(100)),  # with cores to be chosen
    ],
    ids=["with departures", "without departures", "eight arrivals", "beside running", "static beside running", "rates"],
)
def test_the_optimum_of_a_small_trace_is_proven(traces: st.SearchStrategy[SmallTrace], count: int) -> None:
    """Whatever the oracle and the fleet: as few rejections and as little cost as exhaustive search finds, proven."""
    settings(max_examples=count, deadline=None)(given(traces)(compare_with_exhaustive_search))()


@pytest.mark.slow
@given(
    small_traces()
    | traces_on_one_kind()
    | traces_with_running()
    | traces_with_running(departures=False)
    | traces_at_rates()
)
@settings(max_examples=3_000, deadline=None, database=None, derandomize=False)
def test_the_optimum_of_thousands_of_small_traces_is_proven(trace: SmallTrace) -> None:
    """Exhaustive search never contradicts the optimum."""
    compare_with_exhaustive_search(trace)
