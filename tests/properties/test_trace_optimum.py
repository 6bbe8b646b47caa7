"""The optimum of small traces against exhaustive search, with departures and oracles that are not monotone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.evaluate.checks import check_plan, slas_kept
from placer.evaluate.evaluation import evaluate
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import NicKind
from placer.model.oracle import Oracle
from placer.optimal.trace_optimum import find_optimum
from tests.effort import examples
from tests.placer.optimal.exhaustive_trace import MOST_ARRIVALS, exhaustive_trace
from tests.placer.optimal.instances import CrowdingOracle, ErraticOracle
from tests.properties.test_optimal import NFS, instances, tenants_of

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


def compare_with_exhaustive_search(trace: SmallTrace) -> None:
    """Fails where the optimum is not proven, rejects or costs more than needed, or has an SLA violation."""
    arrivals, kinds, oracles = trace
    found = find_optimum(arrivals, Catalogue(tuple(kinds), (), ()), oracles, time_limit=20)
    check_plan(found.plan, arrivals, kinds)
    assert list(slas_kept(found.plan, oracles)) == []
    if all(one.nic is None for one in arrivals):
        assert evaluate(found.plan, kinds, oracles).violated == 0
    best = exhaustive_trace(arrivals, kinds, oracles)
    assert found.plan.rejected == best.rejected
    assert found.cost == pytest.approx(best.cost)
    assert found.proven
    assert found.lower_bound == pytest.approx(best.cost)
    assert found.nics_lower_bound <= best.nics <= found.nics
    assert (found.shortfall is None) == (best.rejected == 0)
    assert found.shortfall is None or found.shortfall.proven


@pytest.mark.long
@given(small_traces())
@settings(max_examples=examples(200))
def test_the_optimum_of_a_small_trace_with_departures_is_proven(trace: SmallTrace) -> None:
    """Whatever the oracle and the fleet: as few rejections and as little cost as exhaustive search finds, proven."""
    compare_with_exhaustive_search(trace)


@given(small_traces(departures=False))
@settings(max_examples=examples(100))
def test_the_optimum_of_a_small_trace_without_departures_is_proven(trace: SmallTrace) -> None:
    """SLAs are kept while the NICs fill up, too, and the optimum is proven under this constraint."""
    compare_with_exhaustive_search(trace)


@pytest.mark.long
@given(traces_on_one_kind())
@settings(max_examples=examples(60))
def test_the_optimum_of_eight_arrivals_is_proven(trace: SmallTrace) -> None:
    """Up to eight arrivals on one kind of NIC, with an oracle that is not monotone."""
    compare_with_exhaustive_search(trace)


@pytest.mark.long
@given(traces_with_running())
@settings(max_examples=200, deadline=None)
def test_the_optimum_beside_what_already_runs_is_proven(trace: SmallTrace) -> None:
    """Whatever runs where, with whatever SLAs broken: it stays, and the rest is placed as exhaustive search does."""
    compare_with_exhaustive_search(trace)


@pytest.mark.long
@given(traces_with_running(departures=False))
@settings(max_examples=100, deadline=None)
def test_the_static_optimum_beside_what_already_runs_is_proven(trace: SmallTrace) -> None:
    """Without departures the pattern program has what is left of NICs in use as further kinds."""
    compare_with_exhaustive_search(trace)


@pytest.mark.slow
@given(small_traces() | traces_on_one_kind() | traces_with_running() | traces_with_running(departures=False))
@settings(max_examples=3_000, deadline=None, database=None, derandomize=False)
def test_the_optimum_of_thousands_of_small_traces_is_proven(trace: SmallTrace) -> None:
    """Exhaustive search never contradicts the optimum."""
    compare_with_exhaustive_search(trace)
