"""Profiling methods, on a toy testbed whose surface is known."""

import contextlib
import math
from pathlib import Path

import numpy as np
import pytest

from profiler.contention import MemoryContention, measure_benches
from profiler.methods import METHODS, find_method
from profiler.profiling import profile
from profiler.runs.nf_runs import NfRuns, QuotaSpent
from profiler.runs.outliers import ConfirmedTestbed
from profiler.sampling import EvenPoints, at, parameter_at
from profiles import InputError, Workload
from tests.profiler.toy_testbed import STEP, ToyTestbed, description


def profiled(method: str, toy: ToyTestbed, quota: int | None) -> NfRuns:
    """The runs of the toy's NF after a method has spent its quota."""
    rng = np.random.default_rng(1)
    memory = MemoryContention(measure_benches(toy, 0, lambda runs: None).memory, 4, rng)
    runs = NfRuns(ConfirmedTestbed(toy, toy), toy.described.nfs[0], memory, quota=quota, seed=0, done=lambda runs: None)
    # a model that is most uncertain where flows are many
    runs.uncertainty = lambda co_locations: np.array([traffic.flows for traffic, _ in co_locations])
    with contextlib.suppress(QuotaSpent):
        find_method(method).profile(runs, rng)
    return runs


def test_every_file_of_the_package_that_registers_a_class_is_a_method() -> None:
    assert list(METHODS) == ["active", "adaptive", "full", "random"]


def test_a_misspelt_method_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"--method: 'adaptiv' is not a profiling method\nhint: did you mean adaptive\?"
    ):
        find_method("adaptiv")


def test_adaptive_prunes_an_attribute_without_effect() -> None:
    """Packet size changes nothing: except at the ends of its range, it stays at its default."""
    sizes = [traffic.packet_size for traffic, _, _ in profiled("adaptive", ToyTestbed(), 200).all()]
    assert set(sizes) == {64, 512, 1500} and sizes.count(512) > 0.9 * len(sizes)


def test_adaptive_bisects_where_throughput_falls() -> None:
    """Half of all runs off default traffic are within a factor of four of the step, which is a fifth of the range."""
    runs = profiled("adaptive", ToyTestbed(), 200)
    flows = np.array([traffic.flows for traffic, _, _ in runs.all() if traffic.flows not in (1, 1000, 100000)])
    assert (np.abs(np.log(flows / STEP)) < math.log(4)).mean() > 0.5 and min(abs(flows / STEP - 1)) < 0.2


def test_adaptive_finds_a_change_that_appears_only_under_contention() -> None:
    """A change that solo throughput hides, because the NF's data fits the cache alone, is bisected as well."""
    flows = {traffic.flows for traffic, _, _ in profiled("adaptive", ToyTestbed(hidden=True), 200).all()}
    assert len(flows) > 10 and min(abs(np.array(sorted(flows)) / STEP - 1)) < 0.2


def test_active_measures_where_the_model_is_least_certain() -> None:
    """Runs at many flows, where this model is uncertain, are at least half as many again as without it."""
    flows = np.array([traffic.flows for traffic, _, _ in profiled("active", ToyTestbed(), 300).all()])
    adaptive = np.array([traffic.flows for traffic, _, _ in profiled("adaptive", ToyTestbed(), 300).all()])
    assert (flows > 30000).mean() > 1.5 * (adaptive > 30000).mean() and (flows == 1000).mean() > 0.1


def test_active_needs_a_model(tmp_path: Path) -> None:
    """Without a model to query it is refused."""
    with pytest.raises(InputError, match="active needs a model to query"):
        profile(ToyTestbed(), tmp_path / "p", method="active", quota=200)


def test_an_effect_near_the_threshold_is_decided_by_three_runs() -> None:
    """At each end of the range, so that noise does not decide."""
    near, clear = ToyTestbed(step=0.954), ToyTestbed(step=0.5)
    for toy in (near, clear):
        profiled("adaptive", toy, 200)
    ends = [sum(isinstance(one[0], Workload) and one[0].traffic.flows in (1, 100000) for one in toy.requests)
            for toy in (near, clear)]  # fmt: skip
    assert ends[0] > ends[1] + 8


@pytest.mark.parametrize("method", ["adaptive", "active", "random"])
@pytest.mark.parametrize("quota", [25, 200])
def test_the_quota_is_never_exceeded(method: str, quota: int) -> None:
    """A method makes exactly its quota of runs, both extremes of contention among them."""
    runs = profiled(method, ToyTestbed(), quota)
    assert sum(len(measured) for _, _, measured in runs.all()) == quota and runs.left == 0
    assert {0, 4} <= {len(contention.levels) for _, contention, _ in runs.all()}


@pytest.mark.parametrize("method", ["adaptive", "active", "random", "full"])
def test_methods_end_where_there_is_nothing_to_choose(method: str) -> None:
    """With fixed traffic and no bench there is one point, and no method requests it for ever."""
    assert len(profiled(method, ToyTestbed(description(attributes={}, benches=[])), 200).all()) == 1


def test_random_is_uniform_over_the_declared_ranges() -> None:
    """Half of the flows are above the middle of the range."""
    flows = np.array([traffic.flows for traffic, _, _ in profiled("random", ToyTestbed(), 300).all()])
    assert 0.35 < (flows > 50000).mean() < 0.65


def test_full_is_a_grid() -> None:
    """Every traffic profile of a grid meets every contention level; a quota makes the grid coarser."""
    runs = profiled("full", ToyTestbed(), 1000)
    traffics = {traffic for traffic, _, _ in runs.all()}
    levels = {contention for _, contention, _ in runs.all()}
    assert len(runs.all()) == len(traffics) * len(levels) <= 1000
    assert len({t.flows for t in traffics}) * len({t.packet_size for t in traffics}) == len(traffics)


@pytest.mark.parametrize("dimensions", [0, 1, 2, 5])
def test_even_points_fill_every_part(dimensions: int) -> None:
    """However many are taken at a time, points stay in the unit cube and no tenth of any axis stays empty."""
    points = EvenPoints(dimensions, np.random.default_rng(0))
    taken = np.concatenate([points.take(30), points.take(34)])
    assert taken.shape == (64, dimensions) and ((taken >= 0) & (taken < 1)).all()
    for axis in taken.T:
        assert set((axis * 10).astype(int)) == set(range(10))


@pytest.mark.parametrize("bounds", [(1, 500000), (64, 1500), (0, 1100), (5, 5), (0.2, 0.7)])
def test_positions_span_a_range(bounds: tuple[float, float]) -> None:
    """Position 0 is the lower end, 1 the upper, and everything between lies inside, in order."""
    values = [at(bounds, step / 50) for step in range(51)]
    assert values == sorted(values)
    assert bounds[0] <= values[0] and values[-1] <= bounds[1]
    assert values[0] == pytest.approx(bounds[0], abs=0.5) and values[-1] == pytest.approx(bounds[1], abs=0.5)
    parameters = [parameter_at(bounds, step / 50) for step in range(51)]
    assert parameters == sorted(parameters)
    assert parameters[0] == bounds[0] and parameters[-1] == bounds[1]
