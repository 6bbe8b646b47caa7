"""Retraining a model of a deployed chain with samples at random loads, or with canary samples (the paper's section 7).
A canary gets a part of the traffic, which rises step by step: its samples are in ascending order and end in the middle
of the load. It is to predict the upper half, which no run has seen then."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.methodology.accuracy import errors_pct
from experiments.vnf_chains.methodology.loads import LoadedChain, LoadRuns
from predictor.chains.regressor import REGRESSORS
from predictor.chains.settings import settings_of
from profiles.arrays import Floats

Places = NDArray[np.intp]
Orders = Callable[[LoadedChain], Sequence[Places]]
"""Indices of loads in the order in which they are sampled; one or several such orders for a chain."""
Tested = Callable[[LoadedChain, Places], Places]  # at which loads a model that was trained at others is tested

OF_THE_PAPER = (
    "interpolation", "gaussian-process", "neural-network", "lasso-1", "lasso-2", "lasso-3", "elastic-net-3"
)  # fmt: skip
"""Without Multi Lasso: with the load as the only input, it is `lasso-2`."""
OUR_REGRESSORS = ("smooth", "monotone")
ALL_REGRESSORS = OF_THE_PAPER + OUR_REGRESSORS
RMSE, MAPE = "rmse_ms", "mape_pct"
ALL_SAMPLES = 1_000_000  # samples: as many as there are loads
LOAD_NOTE = (
    "The load is a number of flows that each wait for one packet; the response time is that number over the measured "
    "throughput (Little's law). The paper's is the 95 % response time of files, and its chains are others. Its figure "
    "prints no numbers: 'published' is what its text says. 'not printed' is what it does not say."
)


@dataclass(frozen=True)
class Retrained:
    """A chain, and with what its model is trained and judged."""

    chain: LoadedChain
    samples: Floats  # response times (ms) of training, shape (loads,)
    truth: Floats  # response times (ms) of tests, shape (loads,)

    def errors(self, name: str, trained: Places, tested: Places) -> tuple[float, float]:
        """RMSE (ms) and MAPE (%) at the loads `tested` of a regressor that was trained at the loads `trained`."""
        inputs = _inputs(name, self.chain)
        settings = settings_of(("load",), inputs[trained], self.samples[trained])
        predicted = np.exp(REGRESSORS.find(name)().fit(settings).predict(inputs[tested]))
        truth = self.truth[tested]
        return float(np.sqrt(((predicted - truth) ** 2).mean())), float(errors_pct(predicted, truth).mean())


def on_measured(runs: LoadRuns) -> list[Retrained]:
    """Trained with single runs of each chain, judged by its other runs."""
    return [Retrained(chain, chain.once, chain.truth) for chain in runs.chains]


def on_predicted(runs: LoadRuns) -> list[Retrained]:
    """Trained with what the functions alone predict of each chain, and judged by the same."""
    return [Retrained(chain, of := runs.predicted(chain), of) for chain in runs.chains]


def before_retraining(runs: LoadRuns) -> list[Retrained]:
    """Trained with what the functions alone predict of each chain, judged by its runs."""
    return [Retrained(chain, runs.predicted(chain), chain.truth) for chain in runs.chains]


def error_table(
    retrained: Iterable[Retrained], names: Sequence[str], orders: Orders, counts: Sequence[int], tested: Tested
) -> pd.DataFrame:
    """Errors after so many samples: a row per chain, regressor, number of samples and order. `retrained`: the chains.
    `names`: of the regressors. `orders`: in which loads are sampled. `counts`: numbers of samples; an order that is
    shorter is used up. `tested`: where a model is tested."""
    rows = []
    for regressor in retrained:
        for order in orders(regressor.chain):
            for count in counts:
                trained = order[:count]
                of_tests = tested(regressor.chain, trained)
                keys = {"chain": regressor.chain.name, "placed": regressor.chain.placed, "samples": count}
                for name in names:
                    rmse, mape = regressor.errors(name, trained, of_tests)
                    rows.append(keys | {"regressor": name, RMSE: rmse, MAPE: mape})
    return pd.DataFrame(rows)


def averages(errors: pd.DataFrame, keys: Sequence[str] = ("regressor",)) -> pd.DataFrame:
    """Mean errors by the columns `keys`, over everything else."""
    return errors.groupby(list(keys), sort=False)[[RMSE, MAPE]].mean()


def canary_order(chain: LoadedChain) -> list[Places]:
    """The loads of a canary: ascending, up to the middle of the load."""
    return [np.flatnonzero(chain.lower)]


def ascending_order(chain: LoadedChain) -> list[Places]:
    """All loads."""
    return [np.arange(len(chain.load))]


def random_orders(rng: np.random.Generator, count: int) -> Orders:
    """All loads, in orders that are drawn: as many for each chain."""
    return lambda chain: [rng.permutation(len(chain.load)) for _ in range(count)]


def upper_half(chain: LoadedChain, trained: Places) -> Places:
    """The upper half of the load, without the loads of training; all of it where none is left."""
    upper = np.flatnonzero(~chain.lower)
    left = np.setdiff1d(upper, trained)
    return left if len(left) else upper


def all_others(chain: LoadedChain, trained: Places) -> Places:
    """All loads but those of training; all where none is left."""
    loads = np.arange(len(chain.load))
    left = np.setdiff1d(loads, trained)
    return left if len(left) else loads


def _inputs(name: str, chain: LoadedChain) -> Floats:
    """The load as a regressor receives it, shape (loads, 1). The paper's receive the load itself, from -1 to 1; ours
    its logarithm, by which a response time in proportion to the load is a line."""
    half = chain.load.max() / 2
    load = chain.load if name in OUR_REGRESSORS else (chain.load - half) / half
    return np.asarray(load)[:, None]
