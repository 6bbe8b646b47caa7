"""SLAs of the mean latency: what strategies, the optimum and the checker make of them."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from placer.commands.online import refuse_unknown_latencies
from placer.evaluate.checks import slas_kept
from placer.evaluate.evaluation import evaluate
from placer.model.arrival import Arrival
from placer.model.latency_oracle import FittedLatency, SteppedCurve, known_latencies, least_kpps
from placer.model.plan import Plan
from placer.optimal.trace_optimum import find_optimum
from placer.strategies import find_strategy
from profiles import InputError, Workload
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
