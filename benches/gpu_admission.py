"""Admission to a GPU by predicted p99 beside a search that asks the server itself; the admitted plans are measured."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from random import Random
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from benches.bench import register
from placer.gpu.device import GpuDevice
from placer.gpu.exact import admit_exactly
from placer.gpu.methods.predicted import admit_whole_plans
from placer.gpu.plan import Admitted, LatencySlo, PlanLatencies, SmShare
from placer.inputs.gpu.predicted_plans import PredictedPlans, describe_by, load_at_rate
from predictor.gpu.models import GpuModels
from predictor.gpu.prediction import Overload
from predictor.training.gpu import train_gpu
from profiler.gpu.profiling import profile_gpu
from profiler.testbed import Testbed, TestbedError
from profiler.testbeds import open_testbed
from profiles.gpu_tables import read_gpu_profile

ROOT = Path(__file__).resolve().parents[1]
SIMULATED, PROFILE = "simulated:gpu", ROOT / "traces" / "gpu-simulated"
UNSEEN = ROOT / "tests" / "data" / "random_gpu.py"
MOST_SLOS, SMS = 8, (2, 8)  # SLOs of a set, at most, and the SMs that they may use: few, so that NFs share some
RATES_KPPS, TIGHTNESS = (50.0, 800.0), (1.05, 4.0)
"""Promised latencies are so many times the shortest p99 of the NF alone, which the server says."""
CARRIED = 0.95
"""The share of the rate that must leave, for an SLO to be kept. Packets come at random, so that a run is offered a few
percent more or fewer; one that leaves many behind is late as well."""
ORACLE, PREDICTED = "oracle", "predicted"

Sets = Annotated[int, typer.Option(min=1, help="Sets of SLOs on the simulated GPU; 0.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the sets; calibration used 1,000 and above.")]
UnseenGpus = Annotated[str, typer.Option(help="Numbers of unseen GPUs; 100 to 199 were used for calibration.")]
UnseenSets = Annotated[int, typer.Option(min=1, help="Sets of SLOs on each unseen GPU.")]
Profiles = Annotated[Path | None, typer.Option(help="Where profiles of unseen GPUs are kept.")]
Skip = Annotated[bool, typer.Option("--skip-simulated", help="Only unseen GPUs.")]


class MeasuredPlans:
    """A `PlanLatencies` of the server itself, without noise; plans that it has run are not run again."""

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self.traffic = testbed.describe().traffic
        self._known: dict[tuple[object, ...], Sequence[float]] = {}

    def p99_us(self, plan: Sequence[Admitted]) -> Sequence[float]:
        """As of `PlanLatencies`."""
        loads = tuple(load_at_rate(one, one.slo.nf, self.traffic) for one in plan)
        if loads not in self._known:
            try:
                found = self.testbed.run(loads, noise=False).measurements
            except TestbedError:
                return [inf] * len(plan)
            self._known[loads] = [
                one.latency_us.p99 if one.latency_us and one.throughput_kpps >= CARRIED * load.rate_kpps else inf
                for one, load in zip(found, loads, strict=True)
            ]
        return self._known[loads]


class MeanPlans(PredictedPlans):
    """A naive `PlanLatencies`: the predicted mean, without a margin."""

    def p99_us(self, plan: Sequence[Admitted]) -> Sequence[float]:
        """The mean in place of the p99."""
        try:
            return [one.mean_us for one in self.models.predict([self._load(one) for one in plan], extrapolate=True)]
        except Overload:
            return [inf] * len(plan)


@dataclass(frozen=True)
class Judged:
    """What a method admits of one set."""

    method: str
    slos: int
    admitted: int
    late: int  # admitted SLOs whose measured p99 is above the promise
    seconds: float


@register("gpu-admission")
def run(
    sets: Sets = 60,
    seed: Seed = 0,
    unseen: UnseenGpus = "1,2,3",
    unseen_sets: UnseenSets = 10,
    profiles: Profiles = None,
    skip_simulated: Skip = False,
) -> pd.DataFrame:
    """Per server and method: SLOs admitted, as a share of the oracle's (all sets; quartiles over sets), and late ones.
    All but `device` search alike; `oracle` asks the server, `predicted` the models with their margin, `mean` the models
    for the mean without a margin. `device` is `placer admit --models` with `--method exact`."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        if not skip_simulated:
            with open_testbed(SIMULATED) as testbed:
                models = train_gpu(read_gpu_profile(PROFILE))
                rows += _rows(SIMULATED, judged_sets(testbed, models, sets, seed))
        pooled: list[Judged] = []
        for number in unseen.split(",") if unseen else ():
            with open_testbed(f"exec:{sys.executable} {UNSEEN} --seed {number}") as testbed:
                out = (profiles or Path(folder)) / f"p{number}"
                models = train_gpu(read_gpu_profile(profile_gpu(testbed, out)))
                judged = list(judged_sets(testbed, models, unseen_sets, seed))
            rows += _rows(f"unseen {number}", judged)
            pooled += judged
        rows += _rows("all unseen", pooled)
    return pd.DataFrame(rows)


def judged_sets(testbed: Testbed, models: GpuModels, sets: int, seed: int) -> Iterator[Judged]:
    """Every method on every set."""
    truth = MeasuredPlans(testbed)
    for number in range(seed, seed + sets):
        rng = Random(f"admission {number}")
        slos = drawn(truth, models, rng)
        device = replace(describe_by(models, slos)[0], sms=min(rng.randint(*SMS), testbed.describe().nic.sms or 1))
        for method, plan in _methods(device, slos, models, truth).items():
            begun = time.perf_counter()
            admitted = plan()
            seconds = time.perf_counter() - begun
            found = truth.p99_us(admitted) if admitted else []
            late = sum(one > slo.slo.latency_us for one, slo in zip(found, admitted, strict=True))
            yield Judged(method, len(slos), len(admitted), late, seconds)


def drawn(truth: MeasuredPlans, models: GpuModels, rng: Random) -> list[LatencySlo]:
    """A set of SLOs."""
    return [_slo(str(at), truth, models, rng) for at in range(rng.randint(1, MOST_SLOS))]


def _slo(name: str, truth: MeasuredPlans, models: GpuModels, rng: Random) -> LatencySlo:
    nf, rate = rng.choice(models.nfs), RATES_KPPS[0] * (RATES_KPPS[1] / RATES_KPPS[0]) ** rng.random()
    tightness = TIGHTNESS[0] * (TIGHTNESS[1] / TIGHTNESS[0]) ** rng.random()
    nic = models.testbed.nic
    while (shortest := _shortest_us(truth, nf, rate, (nic.executors_per_sm or 1) * models.per_executor)) == inf:
        rate /= 2
    return LatencySlo(name, nf, rate, tightness * shortest)


def _shortest_us(truth: MeasuredPlans, nf: str, rate_kpps: float, most: int) -> float:
    """The shortest p99 of an NF alone; larger batches are not tried once their wait is longer than that."""
    shortest = inf
    for power in range(most.bit_length()):
        slo = LatencySlo("alone", nf, rate_kpps, inf)
        if 1000.0 * (1 << power) / rate_kpps > 2 * shortest:
            break
        shortest = min(shortest, *truth.p99_us([Admitted(slo, 1 << power, 0, (SmShare(0, 1 << power),))]))
    return shortest


def _methods(
    device: GpuDevice, slos: list[LatencySlo], models: GpuModels, truth: MeasuredPlans
) -> dict[str, Callable[[], Sequence[Admitted]]]:
    def searching(latencies: PlanLatencies) -> Callable[[], Sequence[Admitted]]:
        return lambda: admit_whole_plans(device, slos, latencies)[0]

    def by_device() -> Sequence[Admitted]:
        described, named = describe_by(models, slos)
        own = {slo.id: slo for slo in slos}
        found = admit_exactly(replace(described, sms=device.sms), named, 1.0).admitted
        return [replace(one, slo=own[one.slo.id]) for one in found]

    return {
        ORACLE: searching(truth),
        PREDICTED: searching(PredictedPlans(models)),
        "mean": searching(MeanPlans(models)),
        "device": by_device,
    }


def _rows(server: str, judged: Iterator[Judged] | Sequence[Judged]) -> Iterator[dict[str, object]]:
    """A row per method."""
    of = pd.DataFrame(judged)
    if not len(of):
        return
    oracle = of[of["method"] == ORACLE]["admitted"].to_numpy()
    for method in of["method"].unique():
        mine = of[of["method"] == method]
        admitted, late = mine["admitted"].to_numpy(), int(mine["late"].sum())
        shares = 100 * admitted[oracle > 0] / oracle[oracle > 0]
        low, high = np.quantile(shares, [0.25, 0.75]) if len(shares) else (np.nan, np.nan)
        yield {
            "server": server,
            "method": method,
            "sets": len(mine),
            "slos": int(mine["slos"].sum()),
            "admitted": int(admitted.sum()),
            "of_oracle_pct": round(100 * admitted.sum() / max(oracle.sum(), 1), 1),
            "from": round(float(low), 1),
            "to": round(float(high), 1),
            "late": late,
            "late_pct": round(100 * late / max(int(admitted.sum()), 1), 2),
            "seconds": round(float(mine["seconds"].median()), 2),
        }
