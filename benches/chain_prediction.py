"""Errors of `placer chain predict` on chains that were measured, beside those of plain methods on the same runs.

Without `--chains`, these are chains of nginx, socat and squid in `../shared/data/nfv-chains`: profiles from one order
of the VNFs, runs from the other; `control` predicts an order from its own profiles, without runs. The profile of a VNF
is what the chain reaches at its CPU shares while the others have a whole core. With `--chains`, they are those of a
folder that `python -m benches chains --part shares` wrote, from profiles of functions alone.

Errors are of settings that were not run, in % of the median of their repeats. The plain method is the one of linear,
ridge, forest, boosting, nearest neighbours, Gaussian process and weakest link that predicts left-out runs best;
`hindsight` is the one that is best on the settings that were not run. `repeats_pct` is how far a run is from the median
of the others at its setting."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from benches.bench import register
from experiments.vnf_chains.methodology.scaling import profile_of
from experiments.vnf_chains.methodology.shares import Topology, place_on_cores, topologies
from predictor.chains.chain_fitting import fit_chain
from predictor.chains.placed_chain import PlacedChain
from predictor.chains.profiled_nf import ProfiledNf
from profiles import InputError
from profiles.arrays import Floats
from profiles.chain_table import CHAIN_KPPS, CHAINS_FILE, LATENCY_COLUMNS, read_chains

MEASUREMENTS = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "nfv-chains" / "measurements.csv"
ORDERS = ("nx-sc-sq", "sc-sq-nx")
RUN_COUNTS = (10, 15)
LEAST_LEFT = 3  # settings of a chain that are predicted, beside those that were run
MEASURE, FOLDS = "throughput_kbyte_per_second", 5
ALL_CHAINS = "mean"

File = Annotated[Path, typer.Option(help="Table of the chains.")]
Chains = Annotated[Path | None, typer.Option(help="Folder of chains that were measured at shares of cores.")]
Measure = Annotated[str, typer.Option(help=f"With --chains: {CHAIN_KPPS}, or a latency of chains.csv.")]
Draws = Annotated[int, typer.Option(min=1, help="Random choices of runs.")]


@register("chain-prediction")
def run(
    file: File = MEASUREMENTS, chains: Chains = None, measure: Measure = CHAIN_KPPS, draws: Draws = 8
) -> pd.DataFrame:
    """Mean errors by chains and number of runs."""
    if chains:
        return pd.DataFrame(measured_rows(chains, measure, draws))
    if not file.is_file():
        raise InputError.of("--file", f"{file} is not there")
    table = pd.read_csv(file)
    rows = [control_row(table, order) for order in ORDERS]
    for profiled, order in (ORDERS, ORDERS[::-1]):
        chain, profiles = MeasuredOrder.of(table, order), MeasuredOrder.of(table, profiled).profiles()
        for count in RUN_COUNTS:
            errors = mean_errors(chain, profiles, PlacedChain.of(chain.nfs), count, draws)
            rows.append({"profiles": profiled, "order": order, "runs": count, **errors})
    return pd.DataFrame(rows).fillna("")


def measured_rows(folder: Path, measure: str, draws: int) -> Iterator[dict[str, Any]]:
    """Every chain of a folder with its errors; at the end, their mean by number of runs."""
    if measure not in (CHAIN_KPPS, *LATENCY_COLUMNS):
        raise InputError.of("--measure", f"'{measure}' is none of {', '.join((CHAIN_KPPS, *LATENCY_COLUMNS))}")
    found = topologies(read_chains(folder / CHAINS_FILE), measure)
    functions = {name: one for name, one in found.items() if len(one.nfs) == 1}
    fitted = {name: profile_of(one) for name, one in functions.items()}
    rows: list[dict[str, Any]] = []
    for name, chain in found.items():
        if len(chain.nfs) > 1 and all(nf in fitted for nf in chain.nfs):
            of_chain = {nf: fitted[nf] for nf in chain.nfs}
            for count in RUN_COUNTS:
                if count + LEAST_LEFT > (settings := len(chain.settings)):
                    left_out = f"{name}: {count} of its {settings} settings leave fewer than {LEAST_LEFT} to predict"
                    print(left_out, file=sys.stderr, flush=True)
                    continue
                errors = mean_errors(
                    RepeatedChain.of_topology(chain), of_chain, place_on_cores(chain, functions), count, draws,
                    higher_is_better=measure == CHAIN_KPPS,
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
    draws: int,
    *,
    higher_is_better: bool = True,
) -> dict[str, float]:
    """The mean of `corrected_errors` over random choices of runs."""
    found = [
        corrected_errors(chain, profiles, placed, count, seed, higher_is_better=higher_is_better)
        for seed in range(draws)
    ]
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
    *,
    higher_is_better: bool = True,
) -> Mapping[str, float]:
    """Errors (%) after single runs of `count` settings, the share of single measurements in 90 % intervals, and CPU."""
    draw = np.random.default_rng([seed, count])
    drawn = draw.permutation(len(chain.at))[:count]
    measured = np.array([draw.choice(chain.repeats[row]) for row in drawn])
    rest = np.setdiff1d(np.arange(len(chain.at)), drawn)
    began = time.process_time()
    model = fit_chain(
        profiles, placed, higher_is_better=higher_is_better, measured_at=chain.columns(drawn), measured=measured
    )
    predicted = model.predict(chain.columns(rest))
    spent = time.process_time() - began
    plain = fit_chain(profiles, placed, higher_is_better=higher_is_better)
    weakest = plain.predict(chain.columns(slice(None))).predicted
    ends = zip(rest, predicted.low, predicted.high, strict=True)
    inside = [np.mean((chain.repeats[row] >= low) & (chain.repeats[row] <= high)) for row, low, high in ends]
    left_out = {"weakest link": mape(weakest[drawn], measured)}
    error = {"weakest link": mape(weakest[rest], chain.median[rest])}
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
    }


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
