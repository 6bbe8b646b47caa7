"""Errors of `placer chain predict` on real VNFs, beside those of plain methods on the same runs.

The chains of nginx, socat and squid in `../shared/data/nfv-chains`: profiles from one order of the VNFs, runs from the
other; `control` predicts an order from its own profiles, without runs. The profile of a VNF is what the chain reaches
at its CPU shares while the others have a whole core. Errors are of settings that were not run, in % of the median of
their ten repeats. The plain method is the one of linear, ridge, forest, boosting, nearest neighbours, Gaussian process
and weakest link that predicts left-out runs best; `hindsight` is the one that is best on the settings that were not
run."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from benches.bench import register
from predictor.chains.chain_fitting import fit_chain
from predictor.chains.placed_chain import PlacedChain
from predictor.chains.profiled_nf import ProfiledNf
from profiles import InputError
from profiles.arrays import Floats

MEASUREMENTS = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "nfv-chains" / "measurements.csv"
ORDERS = ("nx-sc-sq", "sc-sq-nx")
RUN_COUNTS = (10, 15)
MEASURE, FOLDS = "throughput_kbyte_per_second", 5

File = Annotated[Path, typer.Option(help="Table of the chains.")]
Draws = Annotated[int, typer.Option(min=1, help="Random choices of runs.")]


@register("chain-prediction")
def run(file: File = MEASUREMENTS, draws: Draws = 8) -> pd.DataFrame:
    """Mean errors by orders and number of runs."""
    if not file.is_file():
        raise InputError.of("--file", f"{file} is not there")
    table = pd.read_csv(file)
    rows = [control_row(table, order) for order in ORDERS]
    for profiled, order in (ORDERS, ORDERS[::-1]):
        for count in RUN_COUNTS:
            found = [corrected_errors(table, profiled, order, count, seed) for seed in range(draws)]
            rows.append({"profiles": profiled, "order": order, "runs": count, **pd.DataFrame(found).mean().round(2)})
    return pd.DataFrame(rows).fillna("")


@dataclass(frozen=True)
class MeasuredOrder:
    """Chains of the VNFs in one order."""

    nfs: list[str]
    shares: Floats  # distinct CPU shares, shape (settings, VNFs)
    repeats: list[Floats]  # of each setting

    @classmethod
    def of(cls, table: pd.DataFrame, order: str) -> "MeasuredOrder":
        """The rows of a table of that order."""
        found = table[table["topology"] == order].groupby(["vnf1cpu", "vnf2cpu", "vnf3cpu"])[MEASURE]
        settings = {setting: values.to_numpy(float) for setting, values in found}
        return cls(order.split("-"), np.array(list(settings), dtype=float), list(settings.values()))

    @property
    def median(self) -> Floats:
        """Of each setting."""
        return np.array([np.median(values) for values in self.repeats])

    def profiles(self) -> dict[str, ProfiledNf]:
        """Each VNF, at settings at which the others have a whole core."""
        found = {}
        for at, nf in enumerate(self.nfs):
            rows = np.flatnonzero((np.delete(self.shares, at, axis=1) == 1).all(axis=1))
            share = np.concatenate([np.full(len(self.repeats[row]), self.shares[row, at]) for row in rows])
            values = np.concatenate([self.repeats[row] for row in rows])
            found[nf] = ProfiledNf.fit(nf, ("cpu",), share[:, None], values)
        return found

    def columns(self, rows: Any) -> dict[str, Floats]:
        """The settings of these rows."""
        return {f"{nf}.cpu": self.shares[rows, at] for at, nf in enumerate(self.nfs)}


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


def corrected_errors(table: pd.DataFrame, profiled: str, order: str, count: int, seed: int) -> Mapping[str, float]:
    """Errors (%) after single runs of `count` settings, the share of single measurements in 90 % intervals, and CPU."""
    chain, profiles = MeasuredOrder.of(table, order), MeasuredOrder.of(table, profiled).profiles()
    draw = np.random.default_rng([seed, count])
    drawn = draw.permutation(len(chain.shares))[:count]
    measured = np.array([draw.choice(chain.repeats[row]) for row in drawn])
    rest = np.setdiff1d(np.arange(len(chain.shares)), drawn)
    began = time.process_time()
    placed = PlacedChain.of(chain.nfs)
    model = fit_chain(profiles, placed, measured_at=chain.columns(drawn), measured=measured)
    predicted = model.predict(chain.columns(rest))
    spent = time.process_time() - began
    weakest = fit_chain(profiles, placed).predict(chain.columns(slice(None))).predicted
    ends = zip(rest, predicted.low, predicted.high, strict=True)
    inside = [np.mean((chain.repeats[row] >= low) & (chain.repeats[row] <= high)) for row, low, high in ends]
    left_out = {"weakest link": mape(weakest[drawn], measured)}
    error = {"weakest link": mape(weakest[rest], chain.median[rest])}
    for name, make in plain_methods().items():
        guessed = np.empty(count)
        for fold in range(FOLDS):
            out = np.arange(count) % FOLDS == fold
            guessed[out] = make().fit(chain.shares[drawn[~out]], measured[~out]).predict(chain.shares[drawn[out]])
        left_out[name] = mape(guessed, measured)
        whole = make().fit(chain.shares[drawn], measured)
        error[name] = mape(whole.predict(chain.shares[rest]), chain.median[rest])
    return {
        "error_pct": mape(predicted.predicted, chain.median[rest]),
        "plain_pct": error[min(left_out, key=left_out.__getitem__)],
        "hindsight_pct": min(error.values()),
        "weakest_link_pct": error["weakest link"],
        "inside_pct": 100 * float(np.mean(inside)),
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
