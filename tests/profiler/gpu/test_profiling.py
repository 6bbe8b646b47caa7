"""Profiling of a GPU server: which runs, what becomes of them, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.gpu.measuring import GpuRuns, MeasuredGpuRun, StageEstimate
from profiler.gpu.profiling import LEAST_QUOTA, profile_gpu
from profiler.gpu.together import (
    LONGEST_PERIOD_US,
    first_runs,
    pairs,
    random_co_locations,
    several_sharers,
    sm_packets,
    spread_runs,
    workload,
)
from profiler.protocol.request_checks import refusals
from profiler.testbed import Run, Testbed, TestbedError
from profiles import InputError, Load, TestbedDescription
from profiles.gpu_tables import LATENCY_FILE, read_gpu_profile
from tests.profiler.gpu.toy_gpu import EXECUTORS, PER_EXECUTOR, ToyGpu, ToyTimes, toy_description
from tests.profiler.toy_testbed import ToyTestbed

DESCRIPTION = toy_description()


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of both NFs."""
    return profile_gpu(ToyGpu(), tmp_path_factory.mktemp("gpu") / "profile", quota=60)


@pytest.fixture(scope="module")
def times() -> dict[str, StageEstimate]:
    """What is known of both NFs after their first runs."""
    runs = GpuRuns(ToyGpu(), 0)
    return {
        nf: StageEstimate.of(runs.measure([(one,) for one in first_runs(DESCRIPTION, nf, 10)], 1))
        for nf in ("hash", "scan")
    }


@pytest.mark.long
def test_tables_hold_what_was_measured(profiled: Path) -> None:
    """Without noise but in the kernel: transfers are those of the formula."""
    profile = read_gpu_profile(profiled)
    assert set(profile.nfs) == {"hash", "scan"}
    for name, nf in profile.nfs.items():
        for row in nf.transfer.itertuples():
            traffic = DESCRIPTION.traffic.__class__(row.flows, row.packet_size, row.mtbr)
            load = workload(name, traffic, 1.0, [(0, int(row.batch))])
            assert row.mean_us == pytest.approx(ToyTimes.of(load).transfer)
        assert nf.kernel.packets.max() <= EXECUTORS * PER_EXECUTOR and nf.kernel.mean_us.min() > 20
        assert (nf.sharing.others.str.contains(";")).any(), "more than pairs"
    repeated = profile.nfs["hash"].kernel.query("repeats > 1")
    assert len(repeated) and repeated.spread_us.notna().all()


def test_runs_of_latency_are_alone_and_together(profiled: Path) -> None:
    latency = read_gpu_profile(profiled).latency
    sizes = latency.groupby("run").size()
    assert (sizes == 1).any() and (sizes > 1).any()
    parts = latency[[name for name in latency.columns if name.endswith("_us") and "latency" not in name]]
    assert np.allclose(parts.sum(axis=1), latency.latency_mean_us, rtol=0.01)


def test_the_same_command_measures_nothing_again(profiled: Path) -> None:
    before = {path: path.read_bytes() for path in profiled.rglob("*") if path.is_file()}
    server = ToyGpu()
    messages: list[str] = []
    profile_gpu(server, profiled, quota=60, notify=messages.append)
    assert server.runs == 0 and any("nothing to measure" in one for one in messages)
    assert {path: path.read_bytes() for path in profiled.rglob("*") if path.is_file()} == before


class _Failing(ToyGpu):
    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if self.runs == 70:
            raise TestbedError("the power is gone")
        return super().run(loads, noise=noise, seed=seed)


@pytest.mark.long
def test_an_interrupted_profile_is_resumed(profiled: Path, tmp_path: Path) -> None:
    """The profile is the one without interruption, and no run is made twice."""
    with pytest.raises(TestbedError, match="power"):
        profile_gpu(_Failing(), tmp_path / "profile", quota=60)
    server = ToyGpu()
    profile_gpu(server, tmp_path / "profile", quota=60)
    assert 0 < server.runs < 120
    assert (tmp_path / "profile" / LATENCY_FILE).read_bytes() == (profiled / LATENCY_FILE).read_bytes()


def test_chosen_runs_are_none_that_the_server_refuses(times: dict[str, StageEstimate]) -> None:
    rng = np.random.default_rng(3)
    alone = [(one,) for one in spread_runs(DESCRIPTION, "scan", times["scan"], 60, rng)]
    shared = [*pairs(DESCRIPTION, times), *several_sharers(DESCRIPTION, times, 40, rng)]
    together = random_co_locations(DESCRIPTION, times, 60, rng)
    for loads in [*alone, *shared, *together]:
        assert refusals(DESCRIPTION, loads) == []
    assert {len(one) for one in shared} == {2, 3, 4} and max(len(one) for one in together) > 4
    batches = [load.gpu.batch for (load,) in alone if load.gpu]
    assert min(batches) < 8 and max(batches) > sm_packets(DESCRIPTION)
    assert max([1000 * load.gpu.batch / load.rate_kpps for (load,) in alone if load.gpu]) < 1.01 * LONGEST_PERIOD_US


def test_an_overloaded_run_is_left_out(tmp_path: Path) -> None:
    """A tenth of the offered packets leaves."""
    measured = GpuRuns(ToyGpu(), 0).measure(
        [(workload("scan", DESCRIPTION.traffic, rate, [(0, 32)]),) for rate in (10.0, 100_000.0)], 1
    )
    assert [one.overloaded for one in measured] == [False, True]


@pytest.mark.parametrize(("queued_us", "overloaded"), [(0.0, False), (64.0, True)])
def test_a_run_of_few_packets_counts_unless_they_queue(queued_us: float, overloaded: bool) -> None:
    """Of 1,000 kpps 800 leave, in batches of 32: those that are not complete wait for 15.5 gaps of 1.25 us."""
    load = workload("scan", DESCRIPTION.traffic, 1000.0, [(0, 32)])
    (run,) = ToyGpu().run([load]).measurements
    assert run.stages_us
    stages = replace(run.stages_us, batching=15.5 * 1.25 + queued_us)
    few = replace(run, throughput_kpps=800.0, stages_us=stages)
    assert MeasuredGpuRun((load,), ((few,),)).overloaded == overloaded


class _Jumpy(ToyGpu):
    """Its first answer to each request is twice the latency."""

    def __init__(self) -> None:
        super().__init__(noise=0.0)
        self.seen: set[object] = set()

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        run = super().run(loads, noise=noise, seed=1)
        if tuple(loads) in self.seen:
            return run
        self.seen.add(tuple(loads))
        (one,) = run.measurements
        assert one.latency_us and one.stages_us
        off = replace(one.latency_us, mean=2 * one.latency_us.mean)
        return replace(run, measurements=(replace(one, latency_us=off),))


def test_repeats_that_disagree_are_decided_by_a_third() -> None:
    load = workload("scan", DESCRIPTION.traffic, 100.0, [(0, 32)])
    (run,) = GpuRuns(_Jumpy(), 0).measure([(load,)], 2)
    assert len(run.repeats[0]) == 3
    true = ToyGpu(noise=0.0).run([load], seed=1).measurements[0].latency_us
    assert true and run.latency_us(0, "mean") == true.mean


class _Blind(ToyGpu):
    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        run = super().run(loads, noise=noise, seed=seed)
        return replace(run, measurements=tuple(replace(one, stages_us=None) for one in run.measurements))


@pytest.mark.parametrize(
    ("testbed", "options", "error", "message"),
    [
        (ToyGpu(), {"nfs": ["hsh"]}, InputError, "the testbed has no hsh\nhint: did you mean hash"),
        (ToyGpu(), {"quota": LEAST_QUOTA - 1}, InputError, "too small"),
        (ToyGpu(), {"seed": -1}, InputError, "-1 is negative"),
        (ToyTestbed(), {}, InputError, "toy is no GPU server"),
        (_Blind(), {}, TestbedError, r"without latency_us \(mean, p50, p99, max\) and stages_us"),
    ],
)
def test_what_cannot_be_profiled_is_refused(
    tmp_path: Path, testbed: Testbed, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        profile_gpu(testbed, tmp_path / "p", **options)  # type: ignore[arg-type]


def test_a_description_with_one_worker_has_no_co_locations(times: dict[str, StageEstimate]) -> None:
    lone: TestbedDescription = toy_description(workers=1)
    rng = np.random.default_rng(0)
    assert random_co_locations(lone, times, 5, rng) == []
    assert several_sharers(lone, times, 5, rng) == [] and pairs(lone, times) == []


def test_spread_is_between_the_repeats() -> None:
    load = workload("scan", DESCRIPTION.traffic, 100.0, [(0, 32)])
    run: MeasuredGpuRun
    (run,) = GpuRuns(ToyGpu(noise=0.02), 5).measure([(load,)], 2)
    one, other = (measured.stages_us.kernel for measured in run.repeats[0] if measured.stages_us)
    assert run.spread_us(0, "kernel") == pytest.approx(abs(one - other))
