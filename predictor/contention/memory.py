"""Memory contention: gradient boosting on the competitors' counters and the NF's traffic (Tomur, 4.1.2 and 5.1.2).

A few hundred runs leave wide gaps in so many dimensions, and trees answer a gap with a step. Boosting therefore starts
from a smooth trend over what contention is made of, the competitors' rate of cache accesses and their working set, and
learns what the trend leaves of every run: what the other counters tell, and where throughput changes faster than the
trend follows. The trend is learnt from contention that NFs can exert, and keeps its edge beyond. Trees are grown apart
on either side, since across that edge what is left grows tenfold, and trees would carry it over into the gaps.

Mean absolute percentage error on the simulated card, over 800 companies of the nine NFs of Tomur's table 2 at default
and 800 at random traffic, and beside benches beyond what NFs exert: this model 0.66, 0.97 and 5.4; the trend alone
0.65, 0.95 and 7.6; boosting alone 0.87, 6.8 and 4.0. Trees grown over both sides at once,
tried before the working set was told as what spills, had 0.70, 2.9 and 6.0, against
0.69, 1.14 and 5.1 of trees beyond alone.

What is left is what summed counters cannot tell. They count accesses that an NF's private cache answers, and an NF
touches its packet buffers often and its large tables seldom, where mem-bench touches all alike. Beside NFs with the
sums of a bench, the model therefore expects some more contention than there is: FlowStats beside benches like NFs is
predicted 0.3 % below the truth on average, beside three NFs 1.8 %. Measured co-runs correct that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.regression.boosting import boost
from predictor.regression.gaussian_process import Smooth
from predictor.regression.trees import Trees
from profiles import COUNTERS

Array = NDArray[np.float64]

ENOUGH = 10
READS, WRITES, WORKING_SET = (COUNTERS.index(name) for name in ("l2crd", "l2cwr", "wss"))
ACCESS_UNIT = 1e6
WORKING_SET_UNIT = 0.3
"""Accesses per second and MB below which contention is not felt: where the scales turn from linear to logarithmic."""
FADED = 1.5
"""Times the accesses of any company of NFs at which nothing is left of the trees for these."""
FULL, SPILLED_UNIT = 3.0, 0.05
"""MB of which half no longer finds room in the cache, and the share without room that is not felt."""


@dataclass(frozen=True)
class MemoryRuns:
    """Runs beside memory contention, one row each.

    Parameters
    ----------
    counters
        The competitors', summed, shape (N, 7).
    traffic
        Shape (N, 3).
    own_wss
        The NF's own working set alone (MB), shape (N,); zero where it is not known.
    """

    counters: Array
    traffic: Array
    own_wss: Array

    def __getitem__(self, rows: NDArray[np.bool_]) -> MemoryRuns:
        return MemoryRuns(self.counters[rows], self.traffic[rows], self.own_wss[rows])

    def accesses(self) -> Array:
        """The competitors' cache accesses per second."""
        return access_rate(self.counters)

    def contention(self) -> Array:
        """What the trend is a function of, shape (N, 6)."""
        return np.column_stack(
            [
                np.log1p(self.accesses() / ACCESS_UNIT),
                # a working set that fills the cache does no less harm than one far larger
                np.log1p(self.counters[:, WORKING_SET] / (self.counters[:, WORKING_SET] + FULL) / SPILLED_UNIT),
                np.log1p(self.own_wss / WORKING_SET_UNIT),
                np.log(np.maximum(self.traffic[:, :2], 1.0)),
                self.traffic[:, 2],
            ]
        )

    def features(self) -> Array:
        """What the trees see: the seven counters and the traffic attributes, shape (N, 10)."""
        return np.concatenate([self.counters, self.traffic], axis=1)


@dataclass(frozen=True)
class MemoryModel:
    """The logarithm of throughput under memory contention, relative to what it was trained with.

    Parameters
    ----------
    trend
        Smooth, for contention that NFs can exert.
    most_accesses
        Cache accesses per second up to which that is.
    within, beyond
        Trees for contention up to there and above, which add to the trend and to its edge.
    errors
        Of runs under contention that NFs can exert, when left out: measured over predicted, logarithm, shape (M,).
    """

    trend: Smooth
    most_accesses: float
    within: Trees
    beyond: Trees
    errors: Array

    @classmethod
    def fit(cls, runs: MemoryRuns, logarithm: Array, *, most_accesses: float = np.inf, seed: int = 0) -> MemoryModel:
        """Learn `logarithm`, shape (N,), from `runs`.

        Parameters
        ----------
        most_accesses
            Cache accesses per second that competing NFs can exert.
        seed
            Seeds the boosting.
        """
        if (runs.accesses() <= most_accesses).sum() < ENOUGH:
            most_accesses = np.inf
        settings = np.unique(runs.traffic, axis=0, return_inverse=True)[1].ravel().astype(np.intp)
        inputs, features, near = runs.contention(), runs.features(), runs.accesses() <= most_accesses
        at, measured, setting = inputs[near], logarithm[near], settings[near]
        trend = Smooth.fit(at, measured[:, None], setting)

        def left_by(kept: NDArray[np.intp]) -> Array:
            less = trend.refitted(at[kept], measured[kept, None], setting[kept])
            left: Array = measured - less(at)[:, 0]
            return left

        left = logarithm - trend(inputs)[:, 0]
        within = boost(features[near], left[near], setting, seed, left_by=left_by)
        # there runs are few and differ by contention far more than by setting
        beyond = boost(features[~near], left[~near], np.arange((~near).sum()), seed)
        errors = trend.left_out(measured[:, None], setting)[:, 0] - within.unseen
        contended = (runs.counters[near] > 0).any(axis=1)
        return cls(trend, most_accesses, within.trees, beyond.trees, errors[contended])

    def __call__(self, runs: MemoryRuns) -> Array:
        """The logarithm at each row."""
        logarithm = self.trend(runs.contention())[:, 0]
        excess = np.log(np.maximum(runs.accesses(), 1.0)) - np.log(self.most_accesses)
        beyond = np.clip(excess / np.log(FADED), 0.0, 1.0)
        for weight, trees in ((1.0 - beyond, self.within), (beyond, self.beyond)):
            rows = weight > 0
            if rows.any():
                logarithm[rows] += weight[rows] * trees.predict(runs[rows].features())
        return logarithm

    def as_arrays(self) -> dict[str, Array]:
        """What was learnt, as plain arrays."""
        parts: dict[str, Smooth | Trees] = {"trend": self.trend, "within": self.within, "beyond": self.beyond}
        return {
            "most_accesses": np.array([self.most_accesses]),
            "errors": self.errors,
            **{f"{part}_{name}": array for part, model in parts.items() for name, array in model.as_arrays().items()},
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> MemoryModel:
        """The model that `as_arrays` gave."""
        trend, within, beyond = (
            {name.removeprefix(part): array for name, array in arrays.items() if name.startswith(part)}
            for part in ("trend_", "within_", "beyond_")
        )
        return cls(
            Smooth.from_arrays(trend),
            float(arrays["most_accesses"][0]),
            Trees.from_arrays(within),
            Trees.from_arrays(beyond),
            arrays["errors"],
        )


def access_rate(counters: Array) -> Array:
    """Cache accesses per second of rows of counters, shape (N, 7)."""
    return counters[:, READS] + counters[:, WRITES]
