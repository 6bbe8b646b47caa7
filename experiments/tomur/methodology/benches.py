"""Runs of an NF co-located with contention benches, and the inputs of predictors for them (section 6)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments.registry import Setting
from experiments.tomur.methodology.simulated_card import CARD, DEFAULT_TRAFFIC, truth
from predictor import Predictor
from profiler.contention import BenchLevel, Contention
from profiler.simulated import SimulatedTestbed
from profiles import BenchLoad, TrafficProfile, Workload
from profiles.arrays import Floats
from profiles.profile import rate_column, service_column

MEMORY_BENCH = "mem-bench"
RATE_SETTING = "rate_kpps"
PACKET_SIZE = DEFAULT_TRAFFIC.packet_size
MATCH_RATES = (0.0, 1100.0)
BENCH_RATES = {"regex": (50.0, 1000.0), "compression": (50.0, 1200.0)}
"""Request rates (kpps) of a bench, by accelerator: from a light load to more than the accelerator can serve."""


def mem_bench(wss_mb: float, access_mops: float) -> BenchLoad:
    """mem-bench with that working set and access rate."""
    return BenchLoad.of(MEMORY_BENCH, {"wss_mb": wss_mb, "access_mops": access_mops})


def accelerator_bench(accelerator: str, rate_kpps: float = 0.0, mtbr: float = 0.0) -> BenchLoad:
    """The bench of an accelerator, with requests of the default packet size; rate 0 is unlimited."""
    matches = {"mtbr": mtbr} if accelerator == "regex" else {}
    return BenchLoad.of(f"{accelerator}-bench", {RATE_SETTING: rate_kpps, "packet_size": PACKET_SIZE, **matches})


def random_mem_bench(rng: np.random.Generator) -> BenchLoad:
    """mem-bench with 0.1 to 24 MB and 1 to 180 million accesses/s."""
    return mem_bench(float(rng.uniform(0.1, 24)), float(rng.uniform(1, 180)))


def random_accelerator_bench(accelerator: str, rng: np.random.Generator) -> BenchLoad:
    """The bench of an accelerator at a random request rate and, for regex, a random match rate."""
    return accelerator_bench(
        accelerator, float(rng.uniform(*BENCH_RATES[accelerator])), float(rng.uniform(*MATCH_RATES))
    )


@dataclass(frozen=True)
class RunsWithBenches:
    """Runs of one NF co-located with benches."""

    nf: str
    table: pd.DataFrame
    """A row per run, as `Predictor.predict_contention` takes it: the NF's traffic, and the counters and accelerator
    demand of its benches, summed."""
    truth: Floats  # Noise-free throughput of the NF (kpps), a value per row

    def predicted(self, predictor: Predictor) -> Floats:
        """The predicted throughput (kpps) of every run."""
        return predictor.predict_contention(self.nf, self.table)


def run_with_benches(
    nf: str, runs: Sequence[tuple[TrafficProfile, Sequence[BenchLoad]]], setting: Setting, card: SimulatedTestbed = CARD
) -> RunsWithBenches:
    """Run `nf` with each traffic profile and its benches. Each bench is also measured alone, as in profiling."""
    levels = _levels(sorted({load for _, loads in runs for load in loads}), setting, card)
    rows = [_row(traffic, Contention(tuple(levels[load] for load in loads)), card) for traffic, loads in runs]
    measured = truth([[Workload(nf, traffic), *loads] for traffic, loads in runs], card)
    return RunsWithBenches(nf, pd.DataFrame(rows), measured)


def _row(traffic: TrafficProfile, contention: Contention, card: SimulatedTestbed) -> dict[str, float]:
    row = traffic.as_dict() | contention.counters.as_dict()
    for accelerator in card.describe().nic.accelerators:
        row[service_column(accelerator)] = contention.service_ms(accelerator)
        row[rate_column(accelerator)] = contention.rate_kpps(accelerator)
    return row


def _levels(loads: Sequence[BenchLoad], setting: Setting, card: SimulatedTestbed) -> Mapping[BenchLoad, BenchLevel]:
    """Counters and rates of each bench alone. A run without rate limit gives its service time."""
    without_limit = [BenchLoad.of(load.name, dict(load.parameters) | _no_rate(load)) for load in loads]
    limited = [run.measurements[0] for run in card.run_many([[load] for load in loads], seed=setting.seed)]
    saturated = [run.measurements[0] for run in card.run_many([[load] for load in without_limit], seed=setting.seed)]
    levels = {}
    for load, run, fastest in zip(loads, limited, saturated, strict=True):
        accelerator = None if load.name == MEMORY_BENCH else load.name.removesuffix("-bench")
        rate = dict(load.parameters).get(RATE_SETTING, 0.0)
        levels[load] = BenchLevel(
            load,
            1,
            run.counters,
            run.throughput_kpps,
            accelerator,
            1 / fastest.throughput_kpps if accelerator else 0.0,
            rate if 0 < rate < fastest.throughput_kpps else math.nan,
        )
    return levels


def _no_rate(load: BenchLoad) -> dict[str, float]:
    return {RATE_SETTING: 0.0} if RATE_SETTING in dict(load.parameters) else {}


def cache_access_rate(table: pd.DataFrame) -> Floats:
    """Cache access rate (CAR) of the competitors, million reads and writes per second."""
    rate: Floats = (table["l2crd"] + table["l2cwr"]).to_numpy(dtype=np.float64) / 1e6
    return rate
