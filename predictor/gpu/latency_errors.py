"""How far measured latencies of co-locations are from what is predicted of them, and the intervals that follow.

The co-locations of a profile train none of the models, so each is left out: its errors are those of other co-locations
(split conformal prediction, Lei et al. 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENOUGH = 20
"""Measured latencies without which there are no intervals."""
BANDS = 3
"""Intervals are of the same width among predictions whose share of waiting for others is similar."""


@dataclass(frozen=True)
class LatencyErrors:
    """Errors of left-out latencies.

    Parameters
    ----------
    shares
        Of each latency, the share of it that was predicted for what other NFs cause, shape (N,).
    mean, p99
        Logarithm of the measured over the predicted, shape (N,).
    """

    shares: Array
    mean: Array
    p99: Array

    def interval(self, what: str, predicted: float, share: float, coverage: float) -> tuple[float, float] | None:
        """The interval that holds a measured `mean` or `p99` with this probability; None if too little was measured."""
        errors = getattr(self, what)
        if len(errors) < ENOUGH:
            return None
        near = errors[self._near(share)]
        # the rank of split conformal prediction: one more than measured
        rank = min(np.ceil((len(near) + 1) * coverage) / len(near), 1.0)
        low, high = np.quantile(near, [(1 - rank) / 2, (1 + rank) / 2])
        return predicted * float(np.exp(min(low, 0.0))), predicted * float(np.exp(max(high, 0.0)))

    def error_pct(self, what: str) -> float:
        """Mean absolute error, %; NaN where nothing was measured."""
        errors = getattr(self, what)
        return float(100 * np.abs(np.expm1(errors)).mean()) if len(errors) else float("nan")

    def _near(self, share: float) -> NDArray[np.intp]:
        """The errors of about as large a share."""
        most = max(ENOUGH, len(self.shares) // BANDS)
        found: NDArray[np.intp] = np.argsort(np.abs(self.shares - share), kind="stable")[:most]
        return found

    def as_arrays(self) -> dict[str, Array]:
        """The errors, as plain arrays."""
        return {"shares": self.shares, "mean": self.mean, "p99": self.p99}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> LatencyErrors:
        """The errors that `as_arrays` returned."""
        return cls(arrays["shares"], arrays["mean"], arrays["p99"])

    @classmethod
    def none(cls) -> LatencyErrors:
        """Of nothing measured."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))
