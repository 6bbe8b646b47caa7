"""The ground truth of promised latencies, on a testbed that answers by hand."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest

from placer.model.gpu_oracle import GpuOracle, GpuSchedule, Scheduled
from placer.model.latency_oracle import PacedTruth
from placer.model.oracle import Oracle
from placer.testing.strategies import TOY_TRAFFIC
from profiler.testbed import Measurement, PacketLatency, Run, Testbed
from profiles import Counters, Load, TestbedDescription, Workload
from profiles.gpu import GpuSettings
from profiles.workload import GpuWorkload

COUNTERS = Counters(1, 1, 1, 1, 1, 1, 1)
PLAIN = Workload("a", TOY_TRAFFIC)
SETTINGS = GpuSettings.of([(0, 32)], order=0)


class AnsweringTestbed(Testbed):
    """100 kpps for each NF as fast as it goes; at a rate the share `leaves` of it, with this p99."""

    def __init__(self, p99: float | None = 50.0, leaves: float = 0.995) -> None:
        self.p99, self.leaves = p99, leaves
        self.asked: list[tuple[Load, ...]] = []

    def describe(self) -> TestbedDescription:
        raise NotImplementedError

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        assert not noise
        self.asked.append(tuple(loads))
        return Run(tuple(map(self._measured, loads)))

    def _measured(self, load: Load) -> Measurement:
        assert isinstance(load, Workload | GpuWorkload)
        if load.rate_kpps == inf:
            return Measurement(100.0, COUNTERS)
        latency = None if self.p99 is None else PacketLatency(10.0, 10.0, self.p99, 90.0)
        return Measurement(load.rate_kpps * self.leaves, COUNTERS, latency_us=latency)


class OneAtATime:
    """Admits one NF."""

    def schedule(self, workloads: Sequence[Workload]) -> GpuSchedule:
        rest = [Scheduled(None, "workers")] * (len(workloads) - 1)
        return GpuSchedule((Scheduled(40.0, settings=SETTINGS), *rest))

    def shares(self, workload: Workload) -> dict[str, float]:
        return {"workers": 1.0}

    def check(self, workload: Workload) -> list[tuple[str, str]]:
        return []


def test_a_promise_is_judged_by_a_run_at_the_offered_rate() -> None:
    """The neighbour is as fast as it goes; throughput is what is carried of the rate."""
    testbed = AnsweringTestbed()
    truth = PacedTruth(testbed)
    promised = Workload("a", TOY_TRAFFIC, 60.0, latency_us=50.0)
    assert truth.throughput([(PLAIN, promised)]) == [(100.0, 59.7)]
    assert testbed.asked == [(PLAIN, replace(PLAIN, rate_kpps=60.0))]
    assert truth.latency((PLAIN, promised)) == (None, 50.0)


@pytest.mark.parametrize(
    ("p99", "leaves", "kpps"),
    [
        # the promise of 50 us is missed
        (50.1, 1.0, 0.0),
        # packets are lost
        (50.0, 0.5, 30.0),
        # the testbed does not measure latency: throughput is all that is known
        (None, 1.0, 60.0),
    ],
)
def test_a_missed_promise_is_no_throughput(p99: float | None, leaves: float, kpps: float) -> None:
    truth = PacedTruth(AnsweringTestbed(p99, leaves))
    promised = Workload("a", TOY_TRAFFIC, 60.0, latency_us=50.0)
    assert truth.throughput([(promised,)]) == [(kpps,)] and truth.latency((promised,)) == (p99,)


@pytest.mark.parametrize(("mean_us", "kpps"), [(10.0, 59.7), (9.9, 0.0)])
def test_a_promised_mean_is_judged_by_the_mean(mean_us: float, kpps: float) -> None:
    """It is 10 us, whatever the p99."""
    truth = PacedTruth(AnsweringTestbed())
    promised = Workload("a", TOY_TRAFFIC, 60.0, latency_us=mean_us, latency_statistic="mean")
    assert truth.throughput([(promised,)]) == [(kpps,)] and truth.latency((promised,)) == (10.0,)


def test_without_a_promise_the_rate_is_offered_too() -> None:
    testbed = AnsweringTestbed()
    rated = Workload("a", TOY_TRAFFIC, 60.0)
    assert PacedTruth(testbed).throughput([(PLAIN,), (rated,)]) == [(100.0,), (59.7,)]
    assert testbed.asked == [(PLAIN,), (rated,)]


def test_a_gpu_runs_what_its_admission_test_admits_as_it_says() -> None:
    """The rate counts where 99 % of it leave; what is rejected is not run."""
    testbed = AnsweringTestbed()
    truth: Oracle = PacedTruth(testbed, GpuOracle(OneAtATime()))
    promised = Workload("a", TOY_TRAFFIC, 60.0, latency_us=50.0)
    assert truth.throughput([(promised,), (promised, promised)]) == [(60.0,), (0.0, 0.0)]
    assert testbed.asked == [(GpuWorkload(replace(PLAIN, rate_kpps=60.0), SETTINGS),)]
    assert truth.latency((promised,)) == (50.0,)
