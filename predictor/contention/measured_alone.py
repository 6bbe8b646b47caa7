"""Throughput alone where it was measured: what a smooth model of solo throughput misses there.

An SLA is relative to the throughput alone, so an error there shifts every requirement of the NF. A model that is smooth
over traffic may miss the very traffic at which the NF was measured often. There the mean of the measurements counts,
each weighed against the model by the noise of the one and the misfit of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DECIMALS = 9
MISFIT = 0.005
"""Least misfit of a smooth model (standard deviation of the logarithm) that is taken for possible."""


@dataclass(frozen=True)
class MeasuredAlone:
    """Factors on the solo throughput of one NF at the traffic at which it was measured.

    Parameters
    ----------
    traffic
        Shape (N, 3), all rows different.
    logarithm
        Of the factor there, shape (N,).
    spread
        Standard deviation of what remains unknown of the logarithm, shape (N,).
    """

    traffic: Array
    logarithm: Array
    spread: Array

    @classmethod
    def fit(cls, traffic: Array, errors: Array) -> MeasuredAlone | None:
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
        misfit = max(float((mean**2).mean()) - float((noise / times).mean()), MISFIT**2)
        trusted = misfit / (misfit + noise / times)
        return cls(distinct, trusted * mean, np.sqrt(trusted * noise / times))

    def factor(self, traffic: Array) -> Array:
        """The factor on solo throughput at each row of traffic, 1 where it was not measured, shape (N,)."""
        factors: Array = np.exp([self._known.get(row, (0.0, 0.0))[0] for row in _keys(traffic)])
        return factors

    def spread_at(self, traffic: Array) -> Array:
        """The spread of throughput alone at each row of traffic, 0 where it was not measured, shape (N,)."""
        return np.array([self._known.get(row, (0.0, 0.0))[1] for row in _keys(traffic)], dtype=np.float64)

    @cached_property
    def _known(self) -> dict[tuple[float, ...], tuple[float, float]]:
        """Logarithm of the factor and its spread, by traffic."""
        values = zip(self.logarithm.tolist(), self.spread.tolist(), strict=True)
        return dict(zip(_keys(self.traffic), values, strict=True))

    def as_arrays(self) -> dict[str, Array]:
        """What was learnt, as plain arrays."""
        return {"traffic": self.traffic, "logarithm": self.logarithm, "spread": self.spread}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> MeasuredAlone:
        """The factors that `as_arrays` returned."""
        return cls(arrays["traffic"], arrays["logarithm"], arrays["spread"])


def _keys(traffic: Array) -> list[tuple[float, ...]]:
    return [tuple(row) for row in np.round(traffic, DECIMALS).tolist()]
