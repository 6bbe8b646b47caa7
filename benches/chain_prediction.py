"""Errors of `placer chain predict` on chains that were measured, beside those of plain methods on the same runs.

Without `--chains`, these are chains of nginx, socat and squid in `../shared/data/nfv-chains`: profiles from one order
of the VNFs, runs from the other; `control` predicts an order from its own profiles, without runs. The profile of a VNF
is what the chain reaches at its CPU shares while the others have a whole core. With `--chains`, they are those of a
folder that `python -m benches chains --part shares` wrote, from profiles of functions alone.

Errors are of settings that were not run, in % of the median of their repeats. The plain method is the one of linear,
ridge, forest, boosting, nearest neighbours, Gaussian process and weakest link that predicts left-out runs best;
`hindsight` is the one that is best on the settings that were not run. `repeats_pct` is how far a run is from the median
of the others at its setting. A latency is predicted with the throughput of the same runs; `short_pct` is the error of
the weakest link where it is below 10 ms, `long_pct` where it is not.

Where all combinations of shares were run several times at one packet size, `scaled_pct` is for how many of three
targets (40, 60 and 75 % of the most that the chain reaches) the allocation with the least shares is right: by a sweep
of runs that the model did not see, it reaches the target, less their noise, and costs at most 0.1 of a core more than
the least one, mean of the NFs. `swept_pct` is the same of a sweep with one run of each setting, the model's among them.
Sweeps are medians, made to rise with each share, linear between settings (of nginx, socat and squid, only measured
settings are allocated: their throughput bends between four shares); the noise is the median standard deviation at
a setting; where no allocation is predicted to reach a target, all there is is allocated."""

import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from benches.bench import register
from experiments.vnf_chains.methodology.scaling import ALLOCATED_SHARES, profile_of
from experiments.vnf_chains.methodology.shares import CPU_INPUT, Topology, place_on_cores, topologies
from predictor.chains.chain_fitting import fit_chain
from predictor.chains.chain_model import ChainModel, ClosedLoopModel
from predictor.chains.placed_chain import PlacedChain
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.scaling import likely
from profiles import InputError
from profiles.arrays import Floats
from profiles.chain_table import CHAIN_KPPS, CHAINS_FILE, LATENCY_COLUMNS, read_chains

MEASUREMENTS = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "nfv-chains" / "measurements.csv"
ORDERS = ("nx-sc-sq", "sc-sq-nx")
RUN_COUNTS = (10, 15)
LEAST_LEFT = 3  # settings of a chain that are predicted, beside those that were run
MEASURE, FOLDS = "throughput_kbyte_per_second", 5
ALL_CHAINS = "mean"
SHORT_US = 10_000
SWEPT_TARGETS, NEAR_SHARE = (0.4, 0.6, 0.75), 0.1

File = Annotated[Path, typer.Option(help="Table of the chains.")]
Chains = Annotated[Path | None, typer.Option(help="Folder of chains that were measured at shares of cores.")]
Measure = Annotated[str, typer.Option(help=f"With --chains: {CHAIN_KPPS}, or a latency of chains.csv.")]
Draws = Annotated[int, typer.Option(min=1, help="Random choices of runs.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the first draw; the next ones have the next seeds.")]


@register("chain-prediction")
def run(
    file: File = MEASUREMENTS, chains: Chains = None, measure: Measure = CHAIN_KPPS, draws: Draws = 8, seed: Seed = 0
) -> pd.DataFrame:
    """Mean errors by chains and number of runs."""
    if chains:
        return pd.DataFrame(measured_rows(chains, measure, range(seed, seed + draws)))
    if not file.is_file():
        raise InputError.of("--file", f"{file} is not there")
    table = pd.read_csv(file)
    rows = [control_row(table, order) for order in ORDERS]
    for profiled, order in (ORDERS, ORDERS[::-1]):
        chain, profiles = MeasuredOrder.of(table, order), MeasuredOrder.of(table, profiled).profiles()
        for count in RUN_COUNTS:
            errors = mean_errors(chain, profiles, PlacedChain.of(chain.nfs), count, range(seed, seed + draws))
            rows.append({"profiles": profiled, "order": order, "runs": count, **errors})
    return pd.DataFrame(rows).fillna("")


def measured_rows(folder: Path, measure: str, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Every chain of a folder with its errors; at the end, their mean by number of runs."""
    if measure not in (CHAIN_KPPS, *LATENCY_COLUMNS):
        raise InputError.of("--measure", f"'{measure}' is none of {', '.join((CHAIN_KPPS, *LATENCY_COLUMNS))}")
    table = read_chains(folder / CHAINS_FILE)
    if measure in table:  # of the same runs, the throughput serves, too
        table = table[table[measure].notna()]
    found, throughput = topologies(table, measure), topologies(table)
    functions = {name: one for name, one in found.items() if len(one.nfs) == 1}
    fitted = {name: profile_of(one) for name, one in functions.items()}
    loops = fitted if measure == CHAIN_KPPS else {name: profile_of(throughput[name]) for name in functions}
    rows: list[dict[str, Any]] = []
    for name, chain in found.items():
        if len(chain.nfs) > 1 and all(nf in fitted for nf in chain.nfs):
            of_chain = {nf: fitted[nf] for nf in chain.nfs}
            loop = RepeatedChain.of_topology(throughput[name]), {nf: loops[nf] for nf in chain.nfs}
            for count in RUN_COUNTS:
                if count + LEAST_LEFT > (settings := len(chain.settings)):
                    left_out = f"{name}: {count} of its {settings} settings leave fewer than {LEAST_LEFT} to predict"
                    print(left_out, file=sys.stderr, flush=True)
                    continue
                errors = mean_errors(
                    RepeatedChain.of_topology(chain), of_chain, place_on_cores(chain, functions), count, seeds,
                    None if measure == CHAIN_KPPS else loop,
                )  # fmt: skip
                rows.append({"chain": name, "runs": count, **errors})
                yield rows[-1]
    if not rows:
        least = min(RUN_COUNTS) + LEAST_LEFT
        raise InputError.of("--chains", f"{folder} has no chain at {least} settings whose functions ran alone")
    for count, of_count in pd.DataFrame(rows).groupby("runs"):
        means = of_count.drop(columns=["chain", "runs"]).mean().round(2)
        yield {"chain": ALL_CHAINS, "runs": count, **means}


def mean_errors(
    chain: "RepeatedChain",
    profiles: Mapping[str, ProfiledNf],
    placed: PlacedChain,
    count: int,
    seeds: Sequence[int],
    loop: "ClosedLoop | None" = None,
) -> dict[str, float]:
    """The mean of `corrected_errors` over random choices of runs."""
    found = [corrected_errors(chain, profiles, placed, count, seed, loop) for seed in seeds]
    return pd.DataFrame(found).mean().round(2).to_dict()


@dataclass(frozen=True)
class RepeatedChain:
    """A chain at settings, each of which was run several times."""

    names: Sequence[str]  # of the inputs
    at: Floats  # distinct settings, shape (settings, inputs)
    repeats: list[Floats]  # of each setting

    @classmethod
    def of_topology(cls, chain: Topology) -> "RepeatedChain":
        """The settings of a chain of a folder."""
        distinct, of_run = np.unique(chain.at, axis=0, return_inverse=True)
        return cls(chain.inputs, distinct, [chain.kpps[of_run.ravel() == row] for row in range(len(distinct))])

    @property
    def median(self) -> Floats:
        """Of each setting."""
        return np.array([np.median(values) for values in self.repeats])

    @property
    def repeats_pct(self) -> float:
        """How far a run is from the median of the others at its setting, in the mean."""
        several = [values for values in self.repeats if len(values) > 1]
        others = [(value, np.median(np.delete(values, at))) for values in several for at, value in enumerate(values)]
        return mape(*np.array(others).T[::-1]) if others else np.nan

    def columns(self, rows: Any) -> dict[str, Floats]:
        """The settings of these rows."""
        return dict(zip(self.names, self.at[rows].T, strict=True))

    def allocated(self, measured: Floats) -> Floats:
        """The shares that are allocated, of those between which an NF was measured."""
        return np.unique(np.clip(ALLOCATED_SHARES, measured[0], measured[-1]))

    def scaled_pct(self, model: ChainModel, seen: Sequence[int]) -> dict[str, float]:
        """How often the least allocation is right, by the model and by a sweep; none where settings lack for sweeps.
        `seen`: the number of one run of each setting; the others judge."""
        axes = [np.unique(column) for column in self.at.T if np.ptp(column) > 0]
        varying = [name for name, column in zip(self.names, self.at.T, strict=True) if np.ptp(column) > 0]
        whole = np.prod([len(axis) for axis in axes]) == len(self.at) and min(map(len, self.repeats)) > 1
        if not whole or not all(name.endswith(f".{CPU_INPUT}") for name in varying):
            return {}
        shares = np.array(list(product(*map(self.allocated, axes))))
        asked = {name: np.full(len(shares), value) for name, value in zip(self.names, self.at[0], strict=True)}
        predicted = likely(model, model.predict(asked | dict(zip(varying, shares.T, strict=True))))
        others = [np.delete(values, number) for values, number in zip(self.repeats, seen, strict=True)]
        swept = _sweep(axes, [values[number] for values, number in zip(self.repeats, seen, strict=True)], shares)
        reached = _sweep(axes, list(map(np.median, others)), shares)
        noise = float(np.median([values.std() / values.mean() for values in others]))
        by_method = {"scaled_pct": predicted, "swept_pct": swept}
        return {name: _right_pct(expected, reached, shares, noise) for name, expected in by_method.items()}


ClosedLoop = tuple[RepeatedChain, Mapping[str, ProfiledNf]]
"""The throughput of the runs of a latency, and the profiles of it."""


def _sweep(axes: Sequence[Floats], values: Sequence[float] | Floats, shares: Floats) -> Floats:
    """What a sweep says of all shares."""
    from scipy.interpolate import RegularGridInterpolator

    low = high = np.reshape(values, [len(axis) for axis in axes])
    for axis in range(len(axes)):
        low = np.flip(np.minimum.accumulate(np.flip(low, axis), axis), axis)
        high = np.maximum.accumulate(high, axis)
    return np.asarray(RegularGridInterpolator(axes, (low + high) / 2)(shares))


def _right_pct(expected: Floats, reached: Floats, shares: Floats, noise: float) -> float:
    """For how many targets the least allocation by what is expected is right by what is reached, %."""
    cost, right = shares.mean(axis=1), []
    for target in reached.max() * np.array(SWEPT_TARGETS):
        enough = expected >= target
        chosen = np.lexsort((-expected, cost, ~enough))[0] if enough.any() else cost.argmax()
        dearer = cost[chosen] - cost[reached >= target].min()
        right.append(reached[chosen] >= target * (1 - noise) and dearer <= NEAR_SHARE + 1e-9)
    return 100 * float(np.mean(right))


@dataclass(frozen=True)
class MeasuredOrder(RepeatedChain):
    """Chains of the VNFs in one order, at CPU shares."""

    nfs: list[str]

    @classmethod
    def of(cls, table: pd.DataFrame, order: str) -> "MeasuredOrder":
        """The rows of a table of that order."""
        found = table[table["topology"] == order].groupby(["vnf1cpu", "vnf2cpu", "vnf3cpu"])[MEASURE]
        settings, nfs = {setting: values.to_numpy(float) for setting, values in found}, order.split("-")
        return cls([f"{nf}.cpu" for nf in nfs], np.array(list(settings), dtype=float), list(settings.values()), nfs)

    def allocated(self, measured: Floats) -> Floats:
        """Only the measured ones: these are a factor of two apart, and the throughput bends between them."""
        return measured

    def profiles(self) -> dict[str, ProfiledNf]:
        """Each VNF, at settings at which the others have a whole core."""
        found = {}
        for at, nf in enumerate(self.nfs):
            rows = np.flatnonzero((np.delete(self.at, at, axis=1) == 1).all(axis=1))
            share = np.concatenate([np.full(len(self.repeats[row]), self.at[row, at]) for row in rows])
            values = np.concatenate([self.repeats[row] for row in rows])
            found[nf] = ProfiledNf.fit(nf, ("cpu",), share[:, None], values)
        return found


def control_row(table: pd.DataFrame, order: str) -> dict[str, object]:
    """An order from its own profiles."""
    chain = MeasuredOrder.of(table, order)
    predicted = fit_chain(chain.profiles(), PlacedChain.of(chain.nfs)).predict(chain.columns(slice(None)))
    return {
        "profiles": order,
        "order": order,
        "runs": 0,
        "error_pct": round(mape(predicted.predicted, chain.median), 2),
    }


def corrected_errors(
    chain: RepeatedChain,
    profiles: Mapping[str, ProfiledNf],
    placed: PlacedChain,
    count: int,
    seed: int,
    loop: ClosedLoop | None = None,
) -> Mapping[str, float]:
    """Errors (%) after single runs of `count` settings, the share of single measurements in 90 % intervals, and CPU.
    `loop`: the throughput of these runs where the measure is a latency."""
    draw = np.random.default_rng([seed, count])
    drawn = draw.permutation(len(chain.at))[:count]
    runs = [(row, int(draw.integers(len(chain.repeats[row])))) for row in drawn]
    measured = np.array([chain.repeats[row][number] for row, number in runs])
    rest = np.setdiff1d(np.arange(len(chain.at)), drawn)
    seen = draw.integers([len(values) for values in chain.repeats])
    seen[drawn] = [number for _, number in runs]
    began = time.process_time()
    at, higher = chain.columns(drawn), loop is None
    model = fit_chain(profiles, placed, higher_is_better=higher, measured_at=at, measured=measured)
    asking: ChainModel | ClosedLoopModel = model
    if loop is not None:
        kpps = np.array([loop[0].repeats[row][number] for row, number in runs])
        throughput = fit_chain(loop[1], placed, measured_at=at, measured=kpps)
        asking = ClosedLoopModel(model, throughput)
    predicted = asking.predict(chain.columns(rest))
    spent = time.process_time() - began
    plain = fit_chain(profiles, placed, higher_is_better=higher)
    weakest = plain.predict(chain.columns(slice(None))).predicted
    ends = zip(rest, predicted.low, predicted.high, strict=True)
    inside = [np.mean((chain.repeats[row] >= low) & (chain.repeats[row] <= high)) for row, low, high in ends]
    left_out = {"weakest link": mape(weakest[drawn], measured)}
    error = {"weakest link": mape(weakest[rest], chain.median[rest])}
    with warnings.catch_warnings(action="ignore"):  # ten runs are few for the kernel of a Gaussian process
        for name, make in plain_methods().items():
            guessed = np.empty(count)
            for fold in range(FOLDS):
                out = np.arange(count) % FOLDS == fold
                guessed[out] = make().fit(chain.at[drawn[~out]], measured[~out]).predict(chain.at[drawn[out]])
            left_out[name] = mape(guessed, measured)
            whole = make().fit(chain.at[drawn], measured)
            error[name] = mape(whole.predict(chain.at[rest]), chain.median[rest])
    return {
        "error_pct": mape(predicted.predicted, chain.median[rest]),
        "plain_pct": error[min(left_out, key=left_out.__getitem__)],
        "hindsight_pct": min(error.values()),
        "weakest_link_pct": error["weakest link"],
        "inside_pct": 100 * float(np.mean(inside)),
        "repeats_pct": chain.repeats_pct,
        "cpu_s": spent,
    } | (chain.scaled_pct(model, seen) if higher else _by_length(weakest[rest], chain.median[rest]))


def _by_length(predicted: Floats, true: Floats) -> dict[str, float]:
    wrong, short = pd.Series(100 * np.abs(predicted / true - 1)), true < SHORT_US
    return {"short_pct": wrong[short].mean(), "long_pct": wrong[~short].mean()}


def plain_methods() -> dict[str, Any]:
    """Makers of regressors of throughput by CPU shares."""
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.linear_model import LinearRegression, RidgeCV
    from sklearn.neighbors import KNeighborsRegressor

    kernel = ConstantKernel() * RBF() + WhiteKernel(0.1)
    return {
        "linear": LinearRegression,
        "ridge": lambda: RidgeCV(np.logspace(-3, 3, 13)),
        "forest": lambda: RandomForestRegressor(60, random_state=0),
        "boosting": lambda: GradientBoostingRegressor(random_state=0),
        "neighbours": lambda: KNeighborsRegressor(3),
        "gaussian process": lambda: GaussianProcessRegressor(kernel, normalize_y=True, random_state=0),
    }


def mape(predicted: Floats, true: Floats) -> float:
    """Mean absolute error, %."""
    return 100 * float(np.abs(predicted / true - 1).mean())
