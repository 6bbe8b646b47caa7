"""Promised latencies: workloads at a rate, the ground truth on a testbed that answers by hand, and SLAs of the mean."""

import math
import pickle
from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest

from placer.commands.online import refuse_unknown_latencies
from placer.evaluate.checks import slas_kept
from placer.evaluate.evaluation import evaluate
from placer.model.arrival import Arrival
from placer.model.gpu_oracle import GpuOracle, GpuSchedule, Scheduled
from placer.model.latency_oracle import FittedLatency, PacedTruth, SteppedCurve, known_latencies, least_kpps
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, co_location_of
from placer.model.plan import Plan
from placer.optimal.trace_optimum import find_optimum
from placer.strategies import find_strategy
from placer.testing.strategies import TOY_TRAFFIC
from profiler.testbed import Measurement, PacketLatency, Run, Testbed
from profiles import Counters, InputError, Load, TestbedDescription, Workload
from profiles.gpu import GpuSettings
from profiles.workload import GpuWorkload
from tests.placer.toy_gpu import MixedCatalogue, ToyCurve, mixed, promised


class HalfMean(ToyCurve):
    """The mean is half as long as the p99."""

    statistics = ("p99", "mean")

    def latency_us(self, workload: Workload, kpps: float, risk: float | None = None) -> float:
        share = 0.5 if workload.latency_statistic == "mean" else 1.0
        return share * super().latency_us(workload, kpps, risk)

    def least_kpps(self, workload: Workload, risk: float | None = None) -> float:
        times = 2.0 if workload.latency_statistic == "mean" else 1.0
        return super().least_kpps(replace(workload, latency_us=times * workload.latency_us), risk)


CURVES = {"a": HalfMean(), "c": HalfMean()}
KNOWN = {statistic: frozenset(CURVES) for statistic in ("p99", "mean")}
P99 = [
    promised(str(number), "ac"[number % 2], 50.0, latency, number) for number, latency in enumerate((70, 90, 64) * 3)
]
MEAN = [
    replace(one, workload=replace(one.workload, latency_us=one.workload.latency_us / 2, latency_statistic="mean"))
    for one in P99
]


def fleet() -> MixedCatalogue:
    """NICs that know both, and GPUs."""
    found = mixed(curves=CURVES)
    return replace(found, kinds=(replace(found.kinds[0], latency_of=KNOWN), found.kinds[1]))


def plan_of(strategy: str, trace: Sequence[Arrival]) -> Plan:
    """The optimum as the plan of a strategy of that name."""
    if strategy == "optimal":
        return find_optimum(trace, fleet(), fleet().oracles("toy"), time_limit=5).plan
    return find_strategy(strategy).build(fleet(), "toy").place(trace)


@pytest.mark.parametrize("strategy", ["monopolization", "contention-aware", "optimal"])
def test_a_mean_is_placed_as_the_p99_of_which_it_is_half(strategy: str) -> None:
    """The same NICs for the same instances; the checker and the evaluation find no violated SLA."""
    plan, by_p99 = plan_of(strategy, MEAN), plan_of(strategy, P99)
    assert [placed.nic for placed in plan.placements] == [placed.nic for placed in by_p99.placements]
    assert plan.rejected == 0
    assert not any(slas_kept(plan, fleet().oracles("toy")))
    assert evaluate(plan, fleet().kinds, fleet().truth()).violated == 0


def test_a_missed_mean_is_a_violated_sla() -> None:
    """`greedy` looks at no SLA: the checker and the evaluation name the same instances."""
    plan = plan_of("greedy", MEAN)
    faults = list(slas_kept(plan, fleet().oracles("toy")))
    missed = {fault.split()[0] for fault in faults}
    stays = evaluate(plan, fleet().kinds, fleet().truth()).stays or {}
    assert missed == {identity for identity, stay in stays.items() if not stay.sla_met} != set()
    for placement in plan.placed:
        stay = stays[placement.arrival.id]
        assert stay.latency_us is not None
        assert (stay.latency_us > placement.arrival.workload.latency_us) is (placement.arrival.id in missed)


def test_only_nics_whose_mean_is_known_host_it() -> None:
    """Admission tests of GPUs and fitted curves know p99s only."""
    nic, gpu = fleet().kinds
    assert [kind.hosts(P99[0].workload) for kind in (nic, gpu)] == [True, True]
    assert [kind.hosts(MEAN[0].workload) for kind in (nic, gpu)] == [True, False]
    fitted = {"a": FittedLatency(SteppedCurve((0.9,), (1.0,)))}
    assert known_latencies(fitted) == {"p99": frozenset("a")}
    assert least_kpps(MEAN[0].workload, fitted) == math.inf


def test_a_running_fleet_refuses_it() -> None:
    """Its events and its state know the p99 only."""
    refuse_unknown_latencies("t.csv", P99)
    with pytest.raises(InputError, match=r"t\.csv: sla_mean_latency_us: a running fleet does not know"):
        refuse_unknown_latencies("t.csv", [*P99, *MEAN])


PLAIN = Workload("a", TOY_TRAFFIC)
SLOW, FAST = (Workload("a", TOY_TRAFFIC, 50.0, latency_us=latency) for latency in (200.0, 100.0))


def test_rate_and_promise_make_workloads_different() -> None:
    """Equal ones are equal and hash alike, also in another process; a plain workload is another one."""
    again = pickle.loads(pickle.dumps(FAST))
    assert again == FAST and hash(again) == hash(FAST) and len({PLAIN, SLOW, FAST, again}) == 3
    assert FAST != PLAIN and PLAIN != FAST


def test_workloads_of_both_sorts_have_one_order() -> None:
    """By NF, traffic, rate, cores and promise; a saturated one last."""
    expected = (FAST, SLOW, PLAIN, Workload("b", TOY_TRAFFIC))
    assert co_location_of(reversed(expected)) == expected


def test_without_rate_and_promise_they_are_plain() -> None:
    assert FAST.saturated == PLAIN.saturated == PLAIN and PLAIN.saturated is PLAIN
    assert PLAIN.latency_us == inf and FAST.latency_us == 100.0


def test_a_kind_hosts_what_it_knows_enough_of() -> None:
    """Any NF without a promise, NFs of known latency with one; a GPU none without a rate."""
    rated = replace(PLAIN, rate_kpps=5.0)
    unknown = NicKind(0, "nic", 8, {"a": 1})
    assert [unknown.hosts(one) for one in (PLAIN, rated, FAST)] == [True, True, False]
    known = NicKind(0, "server", 8, {"a": 1}, latency_of={"p99": frozenset("a")})
    assert [known.hosts(one) for one in (PLAIN, rated, FAST)] == [True, True, True]
    gpu = NicKind(0, "gpu", 8, {"a": 1}, latency_of={"p99": frozenset("a")}, paced=True)
    assert [gpu.hosts(one) for one in (PLAIN, rated, FAST)] == [False, True, True]


COUNTERS = Counters(1, 1, 1, 1, 1, 1, 1)
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
