"""Cost and accuracy of profiling methods: models trained on few runs against one of a full grid (Tomur, section 7.6).
The full grid is every traffic profile with every contention level. A fifth of it is held out: no model is trained on
it, and every model is evaluated on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from experiments.methodology.accuracy import errors_pct
from experiments.tomur.methodology.simulated_card import CARD
from predictor.training.disagreement import disagreement
from predictor.training.measurements import NfMeasurements
from predictor.training.nf import plausible_models
from profiler.contention import (
    BenchLevels,
    Contention,
    MemoryContention,
    Neighbour,
    measure_benches,
    measure_neighbours,
)
from profiler.methods import DEFAULT_QUOTA, find_method
from profiler.profiling import profile_nf
from profiler.quota import QuotaShares
from profiler.runs.nf_runs import least_work
from profiler.runs.outliers import ConfirmedTestbed
from profiler.sampling import at, traffic_ranges, traffic_with
from profiles import COUNTERS, Load, TrafficProfile, Workload
from profiles.arrays import Floats

COMPARED_METHODS = ("random", "adaptive", "active")
GRID_QUOTAS = 300  # the full grid has this many times the runs of the default quota
GRID_LEVELS = 60
GRID_SEED = 1000
HELD_OUT = 5  # one run of the grid in five is held out (Tomur, section 7.6)
RUN_CHUNK = 4096
REALISTIC_QUANTILE = 0.995  # contention is realistic up to this quantile over random co-locations
CO_LOCATIONS = 4000
OTHER_NFS = 3
READS_COUNTER, WRITES_COUNTER = COUNTERS.index("l2crd"), COUNTERS.index("l2cwr")


@dataclass(frozen=True)
class Grid:
    """The full profile of one NF: every traffic profile with every contention level."""

    traffic: Floats  # a row per run, shape (N, 3)
    counters: Floats  # shape (N, 7)
    throughput: Floats  # shape (N,)

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Marks the held-out runs, shape (N,)."""
        chosen: NDArray[np.bool_] = np.random.default_rng(GRID_SEED).random(len(self.throughput)) < 1 / HELD_OUT
        return chosen


@cache
def alone(seed: int) -> tuple[BenchLevels, list[Neighbour]]:
    """Measurements of every bench and of every NF alone."""
    return measure_benches(CARD, seed, lambda runs: None), measure_neighbours(CARD, seed, lambda runs: None)


@cache
def grid(nf: str, runs: int) -> Grid:
    """The full profile of `nf` with about `runs` runs; measured once, with a seed of its own."""
    description = CARD.describe()
    target = description.nf(nf)
    levels, neighbours = alone(GRID_SEED)
    memory = MemoryContention(
        levels.memory, description.nic.cores - target.cores, np.random.default_rng(GRID_SEED), neighbours
    )
    base = least_work(description, target)
    ranges = {
        name: bounds
        for name, bounds in traffic_ranges(description).items()
        if not (target.accelerators and name == "mtbr")
    }
    contentions = list(dict.fromkeys(memory.draw(GRID_LEVELS)))
    points = _points(len(ranges), runs / len(contentions))
    axes = [[at(bounds, step / (points - 1)) for step in range(points)] for bounds in ranges.values()]
    traffics = [traffic_with(base, dict(zip(ranges, values, strict=True))) for values in product(*axes)]
    return _measure(nf, [(traffic, contention) for traffic in traffics for contention in contentions])


def _points(attributes: int, traffics: float) -> int:
    """Points per attribute for a grid of at least that many traffic profiles."""
    points = 2
    while points**attributes < traffics:
        points += 1
    return points


def _measure(nf: str, co_locations: Sequence[tuple[TrafficProfile, Contention]]) -> Grid:
    throughput = np.empty(len(co_locations))
    for start in range(0, len(co_locations), RUN_CHUNK):
        part = co_locations[start : start + RUN_CHUNK]
        loads: list[list[Load]] = [[Workload(nf, traffic), *contention.loads] for traffic, contention in part]
        runs = CARD.run_many(loads, seed=GRID_SEED)
        throughput[start : start + len(part)] = [run.measurements[0].throughput_kpps for run in runs]
    return Grid(
        np.array([traffic.as_tuple() for traffic, _ in co_locations]),
        np.array([contention.counters.as_array() for _, contention in co_locations]),
        throughput,
    )


@cache
def most_accesses() -> float:
    """The most cache accesses per second of realistic contention: 99.5 % of random triples of NFs make fewer."""
    _, neighbours = alone(GRID_SEED)
    rates = np.array([neighbour.counters.l2crd + neighbour.counters.l2cwr for neighbour in neighbours])
    drawn = np.random.default_rng(GRID_SEED).choice(rates, size=(CO_LOCATIONS, OTHER_NFS))
    return float(np.quantile(drawn.sum(axis=1), REALISTIC_QUANTILE))


@dataclass(frozen=True)
class GridErrors:
    """Errors (%) on the held-out runs, with contention that three NFs can cause and with stronger contention."""

    realistic: Floats
    stronger: Floats

    @classmethod
    def of(cls, predicted: Floats, counters: Floats, throughput: Floats) -> "GridErrors":
        """The errors, split by the competitors' counters, shape (N, 7)."""
        realistic = counters[:, READS_COUNTER] + counters[:, WRITES_COUNTER] <= most_accesses()
        errors = errors_pct(predicted, throughput)
        return cls(errors[realistic], errors[~realistic])


@cache
def full_errors(nf: str, runs: int) -> GridErrors:
    """Errors of gradient boosting, the paper's model, trained on all of the grid that is not held out."""
    full = grid(nf, runs)
    features = np.concatenate([full.counters, full.traffic], axis=1)
    held = full.held_out
    model = HistGradientBoostingRegressor(max_iter=400, learning_rate=0.1, max_leaf_nodes=63, random_state=0)
    model.fit(features[~held], np.log(full.throughput[~held]))
    return GridErrors.of(np.exp(model.predict(features[held])), full.counters[held], full.throughput[held])


@cache
def errors(nf: str, method: str, quota: int, seed: int, runs: int) -> GridErrors:
    """Errors of the memory model trained on `quota` runs that a profiling method chose."""
    description, (levels, neighbours) = CARD.describe(), alone(seed)
    profiled = profile_nf(
        ConfirmedTestbed(CARD, CARD),
        description.nf(nf),
        levels,
        find_method(method),
        neighbours,
        shares=QuotaShares(quota, random=0, deciding=0),
        seed=seed,
        suggest=disagreement(seed),
    )
    measured = NfMeasurements.of(profiled, description.nf(nf).cores)
    model, *_ = plausible_models(measured, {}, most_accesses=most_accesses(), seed=seed)
    full = grid(nf, runs)
    held = np.flatnonzero(full.held_out)
    held = held[:: max(len(held) // 4000, 1)]
    nothing = np.zeros((len(held), len(model.execution.uses)))
    predicted = model.throughput(full.counters[held], full.traffic[held], nothing, np.full_like(nothing, np.nan))
    return GridErrors.of(predicted, full.counters[held], full.throughput[held])


def quota_of(share: float) -> int:
    """The quota, given as a share of the default quota."""
    return round(share * DEFAULT_QUOTA)
