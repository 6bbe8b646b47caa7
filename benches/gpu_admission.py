"""Admission to GPUs that nothing was tuned on: each is profiled, models are trained on the profile, and random sets of
SLOs are admitted by them (`placer admit --method predicted`). What is admitted runs on the card: an SLO is late if its
p99 is above what was promised, or if not all of its packets leave. `oracle` searches in the same way, but asks the card
itself in place of models. Random cards (`--card`) are `simulated:gpu` or `simulated:gpu-b` with each time, speed and
cost of an NF up to twice as large or small."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields, is_dataclass, replace
from functools import cache
from math import inf
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from benches.bench import register
from placer.gpu.methods.predicted import admit_whole_plans
from placer.gpu.plan import Admitted, LatencySlo, SmShare
from placer.inputs.gpu.predicted_plans import PredictedPlans, describe_by, load_at_rate
from predictor.gpu.models import GpuModels
from predictor.training.gpu import train_gpu
from profiler.gpu.profiling import profile_gpu
from profiler.simulated_gpu import SIMULATED_GPUS, SimulatedGpu
from profiler.testbed import Testbed, TestbedError
from profiler.testbeds import open_testbed
from profiles import GpuWorkload
from profiles.gpu_tables import read_gpu_profile

MOST_SLOS, SMS = 8, (2, 8)  # SLOs of a set, at most, and the SMs that they may use: few, so that NFs share some
RATES_KPPS, TIGHTNESS = (50.0, 800.0), (1.05, 4.0)
"""Promised latencies are so many times the shortest p99 of the NF alone on the card."""
CARRIED_SHARE = 0.95  # of the rate that must leave; packets come at random, so that a run is offered more or less
MOST_FACTOR = 2.0  # between a random card and the one that it is made of
SIZES = ("executors_per_sm", "packets_per_executor", "payload_bytes", "header_bytes", "buffer_bytes", "grows_bytes")
SHARES = ("locality", "burst_shape", "memory_wait")  # like sizes, they are not scaled

Testbeds = Annotated[
    list[str] | None, typer.Option("--testbed", help="A GPU; repeatable. By default, simulated:gpu-b.")
]
Cards = Annotated[list[int] | None, typer.Option("--card", help="The number of a random card; repeatable.")]
Quota = Annotated[int, typer.Option(help="Runs of the profile for each NF.")]
Sets = Annotated[int, typer.Option(min=1, help="Sets of SLOs on each GPU.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the sets.")]


@register("gpu-admission")
def run(
    testbed: Testbeds = None, card: Cards = None, quota: Quota = 160, sets: Sets = 10, seed: Seed = 0
) -> pd.DataFrame:
    """A row per GPU: errors of co-locations that trained no model, SLOs admitted, and those that are late."""
    rows = []
    with ExitStack() as opened:
        names = testbed or ([] if card else ["simulated:gpu-b"])
        gpus: dict[str, Testbed] = {name: opened.enter_context(open_testbed(name)) for name in names}
        gpus |= {f"card {number}": draw_gpu(number) for number in card or ()}
        for name, gpu in gpus.items():
            with tempfile.TemporaryDirectory() as folder:
                models = train_gpu(read_gpu_profile(profile_gpu(gpu, Path(folder) / "profile", quota=quota)))
            found = np.sum([_judge(gpu, models, Random(f"admission {seed + at}")) for at in range(sets)], axis=0)
            slos, oracle, admitted, late = map(int, found)
            errors = {f"{what}_error_pct": round(models.errors.error_pct(what), 2) for what in ("mean", "p99")}
            counts = {"slos": slos, "oracle": oracle, "admitted": admitted, "late": late}
            shares = {"of_oracle_pct": 100 * admitted / max(oracle, 1), "late_pct": 100 * late / max(admitted, 1)}
            rows.append({"gpu": name, **errors, **counts} | {key: round(share, 1) for key, share in shares.items()})
    return pd.DataFrame(rows)


def draw_gpu(number: int) -> SimulatedGpu:
    """A random card with its NFs."""
    draw = Random(f"card {number}")
    card, nfs = draw.choice(list(SIMULATED_GPUS.values()))
    return SimulatedGpu(card=_scale(card, draw), nfs=[_scale(nf, draw) for nf in nfs])


def _scale(part: Any, draw: Random) -> Any:
    """A card, a bus or an NF with each of its numbers that is no size larger or smaller."""
    changed: dict[str, Any] = {}
    for field in fields(part):
        value, factor = getattr(part, field.name), MOST_FACTOR ** draw.uniform(-1, 1)
        if is_dataclass(value):
            changed[field.name] = _scale(value, draw)
        elif field.name not in (*SIZES, *SHARES) and not isinstance(value, str):
            changed[field.name] = value * factor if isinstance(value, float) else max(round(value * factor), 1)
    return replace(part, **changed)


class MeasuredPlans:
    """The `PlanLatencies` of a card itself, without noise."""

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        self._run = cache(self._measure)

    def p99_us(self, plan: Sequence[Admitted]) -> Sequence[float]:
        """Infinite where packets do not leave."""
        traffic = self._testbed.describe().traffic
        return self._run(tuple(load_at_rate(admitted, admitted.slo.nf, traffic) for admitted in plan))

    def _measure(self, loads: tuple[GpuWorkload, ...]) -> Sequence[float]:
        try:
            found = self._testbed.run(loads, noise=False).measurements
        except TestbedError:
            return [inf] * len(loads)
        return [
            run.latency_us.p99 if run.latency_us and run.throughput_kpps >= CARRIED_SHARE * load.rate_kpps else inf
            for run, load in zip(found, loads, strict=True)
        ]


def _judge(gpu: Testbed, models: GpuModels, draw: Random) -> tuple[int, int, int, int]:
    """SLOs of a random set, those that the oracle admits, those that models admit, and how many of these are late."""
    truth = MeasuredPlans(gpu)
    slos = list(_draw_slos(truth, models, draw))
    device = replace(describe_by(models, slos)[0], sms=min(draw.randint(*SMS), gpu.describe().nic.sms or 1))
    best, admitted = (admit_whole_plans(device, slos, plans)[0] for plans in (truth, PredictedPlans(models)))
    found = truth.p99_us(admitted) if admitted else []
    late = sum(p99 > tenant.slo.latency_us for p99, tenant in zip(found, admitted, strict=True))
    return len(slos), len(best), len(admitted), late


def _draw_slos(truth: MeasuredPlans, models: GpuModels, draw: Random) -> Iterator[LatencySlo]:
    for at in range(draw.randint(1, MOST_SLOS)):
        nf, rate = draw.choice(models.nfs), RATES_KPPS[0] * (RATES_KPPS[1] / RATES_KPPS[0]) ** draw.random()
        tightness = TIGHTNESS[0] * (TIGHTNESS[1] / TIGHTNESS[0]) ** draw.random()
        most = (models.testbed.nic.executors_per_sm or 1) * models.per_executor
        while (shortest := _shortest_us(truth, nf, rate, most)) == inf:
            rate /= 2
        yield LatencySlo(str(at), nf, rate, tightness * shortest)


def _shortest_us(truth: MeasuredPlans, nf: str, rate_kpps: float, most: int) -> float:
    """The shortest p99 of an NF alone; larger batches are not tried once their wait is longer than that."""
    shortest, batch = inf, 1
    while batch <= most and 1000.0 * batch / rate_kpps <= 2 * shortest:
        alone = Admitted(LatencySlo("alone", nf, rate_kpps, inf), batch, 0, (SmShare(0, batch),))
        shortest, batch = min(shortest, *truth.p99_us([alone])), 2 * batch
    return shortest
