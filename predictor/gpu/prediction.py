"""What is predicted of one NF in a co-location on a GPU server."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profiles.arrays import Floats

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class GpuPrediction:
    """The latency of the packets of one NF, us."""

    mean_us: float
    p50_us: float
    p99_us: float  # from end to end
    mean_interval_us: Interval | None
    p99_interval_us: Interval | None  # ends of the prediction intervals; None where too few co-locations were measured
    stages_us: Mapping[str, float]  # means of the stages, by their names in the protocol
    extrapolated: bool = False  # whether a value lies outside what was measured

    @property
    def low_us(self) -> float | None:
        """The low end of the interval of the p99."""
        return self.p99_interval_us[0] if self.p99_interval_us else None

    @property
    def high_us(self) -> float | None:
        """The high end of the interval of the p99: a conservative p99."""
        return self.p99_interval_us[1] if self.p99_interval_us else None


class Overload(Exception):
    """A co-location that the server does not carry: its latency grows without end. `causes`: each overloaded resource,
    in words."""

    def __init__(self, causes: list[str]) -> None:
        self.causes = tuple(causes)
        super().__init__("; ".join(causes))


# How far measured latencies of co-locations are from what is predicted of them, and the intervals that follow.
#
# The co-locations of a profile train none of the models, so each is left out: its errors are those of other
# co-locations (split conformal prediction, Lei et al. 2018).


ENOUGH_LATENCIES = 20  # measured latencies without which there are no intervals
INTERVAL_BANDS = 3  # intervals are of the same width among predictions whose share of waiting for others is similar
LEAST_DISTANCE = 0.05  # of a p99 from the mean, as a share of it; below, errors are no smaller


@dataclass(frozen=True)
class LatencyErrors:
    """Errors of left-out latencies."""

    shares: Floats  # of each latency, the share of it that was predicted for what other NFs cause, shape (N,)
    mean: Floats
    p99: Floats  # logarithm of the measured over the predicted, shape (N,)
    tails: Floats = field(default_factory=lambda: np.zeros(0))
    """Of each latency, the predicted p99 over the predicted mean, shape (N,); empty in models that do not have it."""

    def interval(self, what: str, predicted: float, share: float, coverage: float) -> tuple[float, float] | None:
        """The interval that holds a measured `mean` or `p99` with this probability; None if too little was measured."""
        errors = getattr(self, what)
        if len(errors) < ENOUGH_LATENCIES:
            return None
        near = errors[self._near(share)]
        # the rank of split conformal prediction: one more than measured
        rank = min(np.ceil((len(near) + 1) * coverage) / len(near), 1.0)
        low, high = np.quantile(near, [(1 - rank) / 2, (1 + rank) / 2])
        return predicted * float(np.exp(min(low, 0.0))), predicted * float(np.exp(max(high, 0.0)))

    def exceeded(self, what: str, shares: Floats, risk: float) -> Floats:
        """By how much measured latencies exceed their prediction with this probability, as a factor; shape (N,). Of
        predictions with about as large a share. Rounded up to a measured error."""
        errors, order = getattr(self, what), np.argsort(self.shares, kind="stable")
        # the nearest of sorted shares are a window, which begins where both of its ends are equally far
        most = min(max(ENOUGH_LATENCIES, len(order) // INTERVAL_BANDS), len(order))
        ascending = self.shares[order]
        starts = np.searchsorted(ascending[:-most] + ascending[most:], 2 * shares) if most < len(order) else 0 * shares
        rank = min(int(np.ceil((most + 1) * (1.0 - risk))), most) - 1
        factors = {start: np.exp(np.sort(errors[order[start : start + most]])[rank]) for start in np.unique(starts)}
        return np.array([factors[start] for start in starts])

    def kept_p99(self, p99: float, mean: float, kept: float) -> float | None:
        """The latency under which this share of the measured p99s are; None if too little was measured. The error of a
        p99 grows with how far above the mean it is: p99s of heavy tails rest on few packets. So errors count in units
        of that distance (normalized conformal prediction, Papadopoulos et al. 2002)."""
        if len(self.tails) < ENOUGH_LATENCIES:
            return None
        scores = self.p99 / _distance(self.tails)
        rank = min(np.ceil((len(scores) + 1) * kept) / len(scores), 1.0)
        worst = max(float(np.quantile(scores, rank, method="higher")), 0.0)
        return p99 * float(np.exp(worst * _distance(np.array([p99 / mean]))[0]))

    def error_pct(self, what: str) -> float:
        """Mean absolute error, %; NaN where nothing was measured."""
        errors = getattr(self, what)
        return float(100 * np.abs(np.expm1(errors)).mean()) if len(errors) else float("nan")

    def _near(self, share: float) -> NDArray[np.intp]:
        """The errors of about as large a share."""
        most = max(ENOUGH_LATENCIES, len(self.shares) // INTERVAL_BANDS)
        found: NDArray[np.intp] = np.argsort(np.abs(self.shares - share), kind="stable")[:most]
        return found

    def as_arrays(self) -> dict[str, Floats]:
        """The errors, as plain arrays."""
        return {"shares": self.shares, "mean": self.mean, "p99": self.p99, "tails": self.tails}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats]) -> "LatencyErrors":
        """The errors that `as_arrays` returned."""
        return cls(arrays["shares"], arrays["mean"], arrays["p99"], arrays.get("tails", np.zeros(0)))

    @classmethod
    def none(cls) -> "LatencyErrors":
        """Of nothing measured."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))


def _distance(tails: Floats) -> Floats:
    """How far p99s are above the mean, as a share of it."""
    found: Floats = np.maximum(tails - 1.0, LEAST_DISTANCE)
    return found
