"""An NF alone on the NIC: throughput and own counters as functions of its traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from predictor.regression.gaussian_process import GaussianProcess
from profiles import ATTRIBUTES, COUNTERS, TrafficProfile
from profiles.arrays import Floats
from profiles.shown import Shown

# Throughput of an NF alone as a function of its traffic: a Gaussian process, about a fitted curve where that helps.
#
# A smooth process has no breakpoints: it rounds them off, and learns how fast throughput changes from places where it
# does not. A curve that was fitted along one attribute knows the breakpoints. As the mean of the process, it leaves
# only what the rest of the traffic changes to learn (Rasmussen & Williams, section 2.7). It is a further input, too, so
# that what is learnt may differ between two segments, and is the same along a flat one (input warping; Snoek et al.,
# "Input Warping for Bayesian Optimization of Non-stationary Functions", ICML 2014).


TINY_DIFFERENCE = 1e-6
MOST_STRETCH = 10.0
"""Factor on the curve's logarithm as an input: changes of 0.5 % count, as an input of smaller range would be noise."""


class SoloCurve(Protocol):
    """A formula of throughput along one traffic attribute, above zero from `start` to `end`."""

    @property
    def x(self) -> str:
        """The attribute."""

    @property
    def start(self) -> float:
        """The smallest value that was fitted."""

    @property
    def end(self) -> float:
        """The largest value that was fitted."""

    def predict(self, x: Floats) -> Floats:
        """Throughput (kpps) at values of the attribute, shape of x."""


@dataclass(frozen=True, repr=False)
class SoloThroughput(Shown):
    """Throughput alone with the least accelerator work."""

    attributes: tuple[int, ...]  # positions of the traffic attributes on which it depends
    process: GaussianProcess  # its logarithm; with a curve, of the ratio to the curve
    curve: SoloCurve | None = None  # along one of these attributes; None for the process alone

    @classmethod
    def fit(
        cls, attributes: tuple[int, ...], traffic: Floats, kpps: Floats, curve: SoloCurve | None = None
    ) -> SoloThroughput:
        """Learn throughput (kpps), shape (N,), at traffic, shape (N, 3)."""
        inputs, mean = _inputs(attributes, traffic, curve)
        return cls(attributes, GaussianProcess.fit(inputs, (np.log(kpps) - mean)[:, None]), curve)

    def kpps(self, traffic: Floats) -> Floats:
        """Throughput (kpps) at each row of `traffic`, shape (N, 3)."""
        inputs, mean = _inputs(self.attributes, traffic, self.curve)
        rates: Floats = np.exp(self.process(inputs)[:, 0] + mean)
        return rates

    def as_arrays(self) -> dict[str, Floats]:
        """What was learnt, as plain arrays; without the curve."""
        return {"attributes": np.array(self.attributes, dtype=np.float64)} | {
            f"throughput_{name}": array for name, array in self.process.as_arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats], curve: SoloCurve | None = None) -> SoloThroughput:
        """The function that `as_arrays` returned, with its curve."""
        process = GaussianProcess.from_arrays(
            {name.removeprefix("throughput_"): array for name, array in arrays.items()}
        )
        return cls(tuple(int(at) for at in arrays["attributes"]), process, curve)


def traffic_axes(traffic: Floats) -> Floats:
    """Inputs: flows and packet size on a logarithmic scale, matches on a linear one."""
    return np.column_stack([np.log(np.maximum(traffic[:, :2], TINY_DIFFERENCE)), traffic[:, 2]])


def _inputs(attributes: tuple[int, ...], traffic: Floats, curve: SoloCurve | None) -> tuple[Floats, Floats]:
    """Inputs of the process, shape (N, inputs), and its mean, shape (N,)."""
    axes = traffic_axes(traffic)[:, list(attributes)]
    if curve is None:
        return axes, np.zeros(len(traffic))
    along = np.clip(traffic[:, ATTRIBUTES.index(curve.x)], curve.start, curve.end)
    mean = np.log(curve.predict(along))
    return np.column_stack([axes, MOST_STRETCH * mean]), mean


@dataclass(frozen=True)
class SoloFit:
    """A curve that was fitted to measured throughput alone, and what it was worth to the solo model."""

    curve: SoloCurve  # the formula
    settings: int  # different traffic at which the NF was measured alone; each was left out once
    error_pct: float  # mean absolute percentage error there of a solo model with the curve
    error_without_pct: float  # the same of a solo model without it
    serves: bool  # whether the error is surely smaller, so that the solo model has the curve


@dataclass(frozen=True, repr=False)
class SoloModel(Shown):
    """Throughput and counters of an NF alone, as functions of its traffic."""

    throughput: SoloThroughput  # with the least accelerator work
    counters: GaussianProcess  # logarithm of the seven counters; over all traffic attributes
    fit_of_runs: SoloFit | None = None
    """A curve that was fitted to runs of the NF alone, whether or not `throughput` has it; None when there is none."""

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
            GaussianProcess.fit(traffic_axes(counters_at), np.log(np.maximum(counters, TINY_DIFFERENCE))),
        )

    def kpps(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Throughput (kpps) with the least accelerator work at each row of `traffic`, shape (N, 3)."""
        return self.throughput.kpps(traffic)

    def own_counters(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Its seven counters at each row of `traffic`, shape (N, 7)."""
        readings: NDArray[np.float64] = np.exp(self.counters(traffic_axes(traffic)))
        return np.where(readings <= 2 * TINY_DIFFERENCE, 0.0, readings)

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


# Throughput alone where it was measured: what a smooth model of solo throughput misses there.
#
# An SLA is relative to the throughput alone, so an error there shifts every requirement of the NF. A model that is
# smooth over traffic may miss the very traffic at which the NF was measured often. There the mean of the measurements
# counts, each weighed against the model by the noise of the one and the misfit of the other.


POSITION_DECIMALS = 9
NEGLIGIBLE_MISFIT = 0.005
"""Least misfit of a smooth model (standard deviation of the logarithm) that is taken for possible."""


@dataclass(frozen=True, repr=False)
class MeasuredAlone(Shown):
    """Factors on the solo throughput of one NF at the traffic at which it was measured."""

    traffic: Floats  # shape (N, 3), all rows different
    logarithm: Floats  # of the factor there, shape (N,)
    spread: Floats  # standard deviation of what remains unknown of the logarithm, shape (N,)

    @classmethod
    def fit(cls, traffic: Floats, errors: Floats) -> MeasuredAlone | None:
        """From runs alone: traffic, shape (M, 3), and measured over modelled, logarithm, shape (M,).

        None where nothing was repeated, so that noise is not known.
        """
        distinct, setting, times = np.unique(traffic, axis=0, return_inverse=True, return_counts=True)
        setting = setting.ravel()
        mean = np.bincount(setting, errors) / times
        freedom = len(errors) - len(distinct)
        if not freedom:
            return None
        noise = float(((errors - mean[setting]) ** 2).sum() / freedom)
        misfit = max(float((mean**2).mean()) - float((noise / times).mean()), NEGLIGIBLE_MISFIT**2)
        trusted = misfit / (misfit + noise / times)
        return cls(distinct, trusted * mean, np.sqrt(trusted * noise / times))

    def factor(self, traffic: Floats) -> Floats:
        """The factor on solo throughput at each row of traffic, 1 where it was not measured, shape (N,)."""
        factors: Floats = np.exp([self._known.get(row, (0.0, 0.0))[0] for row in _keys(traffic)])
        return factors

    def at(self, traffic: TrafficProfile) -> tuple[float, float]:
        """The factor on solo throughput at that traffic, and its spread."""
        if round(traffic.flows, POSITION_DECIMALS) not in self._flows:
            return 1.0, 0.0
        logarithm, spread = self._known.get(_key(traffic.as_tuple()), (0.0, 0.0))
        return float(np.exp(logarithm)) if logarithm else 1.0, spread

    @cached_property
    def _known(self) -> dict[tuple[float, ...], tuple[float, float]]:
        """Logarithm of the factor and its spread, by traffic."""
        values = zip(self.logarithm.tolist(), self.spread.tolist(), strict=True)
        return dict(zip(_keys(self.traffic), values, strict=True))

    @cached_property
    def _flows(self) -> frozenset[float]:
        """The first attribute of that traffic: three are rounded only where it is known."""
        return frozenset(flows for flows, *_ in self._known)

    def as_arrays(self) -> dict[str, Floats]:
        """What was learnt, as plain arrays."""
        return {"traffic": self.traffic, "logarithm": self.logarithm, "spread": self.spread}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats]) -> MeasuredAlone:
        """The factors that `as_arrays` returned."""
        return cls(arrays["traffic"], arrays["logarithm"], arrays["spread"])


def _keys(traffic: Floats) -> list[tuple[float, ...]]:
    return [_key(row) for row in traffic.tolist()]


def _key(traffic: Iterable[float]) -> tuple[float, ...]:
    return tuple([round(attribute, POSITION_DECIMALS) for attribute in traffic])
