"""An NF alone on the NIC: throughput and own counters as functions of its traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.contention.solo_throughput import TINY, SoloCurve, SoloThroughput, traffic_axes
from predictor.regression.gaussian_process import GaussianProcess
from profiles import COUNTERS


@dataclass(frozen=True)
class SoloFit:
    """A curve that was fitted to measured throughput alone, and what it was worth to the solo model.

    Parameters
    ----------
    curve
        The formula.
    settings
        Different traffic at which the NF was measured alone; each was left out once.
    error_pct, error_without_pct
        Mean absolute percentage error there of a solo model with the curve, and of one without.
    serves
        Whether the error is surely smaller, so that the solo model has the curve.
    """

    curve: SoloCurve
    settings: int
    error_pct: float
    error_without_pct: float
    serves: bool


@dataclass(frozen=True)
class SoloModel:
    """Throughput and counters of an NF alone, as functions of its traffic.

    Parameters
    ----------
    throughput
        With the least accelerator work.
    counters
        Logarithm of the seven counters; over all traffic attributes.
    fit_of_runs
        A curve that was fitted to runs of the NF alone, whether or not `throughput` has it; None when there is none.
    """

    throughput: SoloThroughput
    counters: GaussianProcess
    fit_of_runs: SoloFit | None = None

    @classmethod
    def fit(
        cls,
        attributes: tuple[int, ...],
        traffic: NDArray[np.float64],
        throughput: NDArray[np.float64],
        counters_at: NDArray[np.float64],
        counters: NDArray[np.float64],
    ) -> SoloModel:
        """Learn throughput (N,) at traffic (N, 3), and counters (M, 7) at traffic (M, 3).

        Throughput depends on the traffic attributes at these positions.
        """
        return cls(
            SoloThroughput.fit(attributes, traffic, throughput),
            GaussianProcess.fit(traffic_axes(counters_at), np.log(np.maximum(counters, TINY))),
        )

    def kpps(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Throughput (kpps) with the least accelerator work at each row of `traffic`, shape (N, 3)."""
        return self.throughput.kpps(traffic)

    def own_counters(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Its seven counters at each row of `traffic`, shape (N, 7)."""
        readings: NDArray[np.float64] = np.exp(self.counters(traffic_axes(traffic)))
        return np.where(readings <= 2 * TINY, 0.0, readings)

    def working_set(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Its working set (MB) at each row of `traffic`, shape (N,)."""
        return self.own_counters(traffic)[:, COUNTERS.index("wss")]

    def as_arrays(self) -> dict[str, NDArray[np.float64]]:
        """What was learnt, as plain arrays; without the fit of runs."""
        return self.throughput.as_arrays() | {
            f"counters_{name}": array for name, array in self.counters.as_arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.float64]], fit_of_runs: SoloFit | None = None) -> SoloModel:
        """The model that `as_arrays` returned, with its fit of runs."""
        counters = {name.removeprefix("counters_"): array for name, array in arrays.items()}
        curve = fit_of_runs.curve if fit_of_runs and fit_of_runs.serves else None
        return cls(SoloThroughput.from_arrays(arrays, curve), GaussianProcess.from_arrays(counters), fit_of_runs)
