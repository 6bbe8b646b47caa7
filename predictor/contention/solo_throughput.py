"""Throughput of an NF alone as a function of its traffic: a Gaussian process, about a fitted curve where that helps.

A smooth process has no breakpoints: it rounds them off, and learns how fast throughput changes from places where it
does not. A curve that was fitted along one attribute knows the breakpoints. As the mean of the process, it leaves only
what the rest of the traffic changes to learn (Rasmussen & Williams, section 2.7). It is a further input, too, so that
what is learnt may differ between two segments, and is the same along a flat one (input warping; Snoek et al., "Input
Warping for Bayesian Optimization of Non-stationary Functions", ICML 2014).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from predictor.regression.gaussian_process import GaussianProcess
from profiles import ATTRIBUTES

Array = NDArray[np.float64]

TINY = 1e-6
STRETCH = 10.0
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

    def predict(self, x: Array) -> Array:
        """Throughput (kpps) at values of the attribute, shape of x."""


@dataclass(frozen=True)
class SoloThroughput:
    """Throughput alone with the least accelerator work.

    Parameters
    ----------
    attributes
        Positions of the traffic attributes on which it depends.
    process
        Its logarithm; with a curve, of the ratio to the curve.
    curve
        Along one of these attributes; None for the process alone.
    """

    attributes: tuple[int, ...]
    process: GaussianProcess
    curve: SoloCurve | None = None

    @classmethod
    def fit(
        cls, attributes: tuple[int, ...], traffic: Array, kpps: Array, curve: SoloCurve | None = None
    ) -> SoloThroughput:
        """Learn throughput (kpps), shape (N,), at traffic, shape (N, 3)."""
        inputs, mean = _inputs(attributes, traffic, curve)
        return cls(attributes, GaussianProcess.fit(inputs, (np.log(kpps) - mean)[:, None]), curve)

    def kpps(self, traffic: Array) -> Array:
        """Throughput (kpps) at each row of `traffic`, shape (N, 3)."""
        inputs, mean = _inputs(self.attributes, traffic, self.curve)
        rates: Array = np.exp(self.process(inputs)[:, 0] + mean)
        return rates

    def as_arrays(self) -> dict[str, Array]:
        """What was learnt, as plain arrays; without the curve."""
        return {"attributes": np.array(self.attributes, dtype=np.float64)} | {
            f"throughput_{name}": array for name, array in self.process.as_arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], curve: SoloCurve | None = None) -> SoloThroughput:
        """The function that `as_arrays` returned, with its curve."""
        process = GaussianProcess.from_arrays(
            {name.removeprefix("throughput_"): array for name, array in arrays.items()}
        )
        return cls(tuple(int(at) for at in arrays["attributes"]), process, curve)


def traffic_axes(traffic: Array) -> Array:
    """Inputs: flows and packet size on a logarithmic scale, matches on a linear one."""
    return np.column_stack([np.log(np.maximum(traffic[:, :2], TINY)), traffic[:, 2]])


def _inputs(attributes: tuple[int, ...], traffic: Array, curve: SoloCurve | None) -> tuple[Array, Array]:
    """Inputs of the process, shape (N, inputs), and its mean, shape (N,)."""
    axes = traffic_axes(traffic)[:, list(attributes)]
    if curve is None:
        return axes, np.zeros(len(traffic))
    along = np.clip(traffic[:, ATTRIBUTES.index(curve.x)], curve.start, curve.end)
    mean = np.log(curve.predict(along))
    return np.column_stack([axes, STRETCH * mean]), mean
