"""The points of a curve as fitting needs them: distinct x, means of repeats, and how noise grows with y."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from profiles.arrays import Floats

OUTLYING_DEVIATIONS, FAR_OFF = 8.0, 1e3
"""A single point so many times as far off as those around it hardly counts: its noise is taken to be so much larger."""
RESOLVED_CHANGE = 1e-5
"""Noise below this share of y is like none: a bend of exact data is known no better."""
POINT_DECIMALS = 9
"""Most decimals of what counts as rounded."""
NOISE_WINDOW = 5
"""Points whose median is taken for how large y is."""
SHORTEST_SEGMENT, SHORTEST_OF_FEW, FEW_POINTS = 4, 3, 20
"""Fewest points of a segment, also where there are few points in all."""
BEND_MARGIN = 2
"""Fewest points between a bend and the next breakpoint, unless repeats show the noise."""
SHORTEST_BY_REPEATS = 2
"""Fewest points of a segment where repeats show the noise."""
ENOUGH_FREEDOM = 5
"""Degrees of freedom from which the noise of repeats counts."""
LARGEST_LOGARITHM = 700.0
"""The largest logarithm of x."""
TYPICAL_LOGARITHM = 0.8
"""How far the logarithm of the size of a normal variable is from its median, in the mean."""
RANGE_MARGIN = 10.0
"""Noise is taken to be absolute where that makes the differences so much more likely (natural logarithm)."""


@dataclass(frozen=True)
class FitPoints:
    """Distinct x of a curve."""

    x: Floats
    y: Floats
    """Rising, and the mean of what was measured there. Shape (points,)."""
    rows: Floats
    """Repeats of each. Shape (points,)."""
    within: Floats
    """Sum of squares of the repeats about their mean. Shape (points,)."""
    scale: Floats
    """Standard deviation of the noise of a row, up to a factor: |y| where noise is relative, else 1. Shape (points,).
    """
    logarithmic: bool
    """Whether x is spread evenly on a logarithmic axis rather than on a linear one."""
    rounded_to: float = 0.0
    """The step to which y was rounded as a decimal number; 0 where it has all digits."""

    @classmethod
    def of(cls, curve: MeasuredCurve) -> FitPoints:
        """The points of a measured curve."""
        x, place = np.unique(curve.x, return_inverse=True)
        rows = np.asarray(np.bincount(place), dtype=np.float64)
        if curve.errors is not None:
            weights = curve.errors**-2.0
            total = np.bincount(place, weights)
            y = np.asarray(np.bincount(place, weights * curve.y) / total)
            within = np.bincount(place, weights * (curve.y - y[place]) ** 2) * rows / total
            return cls(x, y, rows, within, np.sqrt(rows / total), _is_logarithmic(x), _rounding_unit(curve.y))
        y = np.asarray(np.bincount(place, curve.y) / rows)
        within = np.asarray(np.bincount(place, (curve.y - y[place]) ** 2), dtype=np.float64)
        scale = np.where(_is_outlier(x, y), FAR_OFF, 1.0) * _scale(x, y, rows, within)
        return cls(x, y, rows, within, scale, _is_logarithmic(x), _rounding_unit(curve.y))

    def __len__(self) -> int:
        return len(self.x)

    @property
    def weights(self) -> Floats:
        """One over the variance of the means, up to a factor."""
        return np.asarray(self.rows / self.scale**2)

    def part(self, keep: NDArray[np.bool_]) -> FitPoints:
        """Some of the points."""
        return FitPoints(
            self.x[keep], self.y[keep], self.rows[keep], self.within[keep], self.scale[keep], self.logarithmic,
            self.rounded_to,
        )  # fmt: skip

    def on_axis(self, x: Floats | float) -> Floats:
        """Places on the axis: x, or its logarithm."""
        return np.log(x) if self.logarithmic else np.asarray(x, dtype=float)

    def off_axis(self, place: Floats | float) -> Floats:
        """x at places on the axis."""
        return np.exp(np.minimum(place, LARGEST_LOGARITHM)) if self.logarithmic else np.asarray(place, dtype=float)

    @property
    def noise_known(self) -> bool:
        """Whether repeats show the noise."""
        return self.noise_of_repeats()[1] >= ENOUGH_FREEDOM

    @property
    def bend_margin(self) -> int:
        """Fewest points between a bend and the next breakpoint."""
        return 1 if self.noise_known else BEND_MARGIN

    @property
    def shortest_segment(self) -> int:
        """Fewest points of a segment: two show a level where the noise is known."""
        if self.noise_known:
            return min(len(self), SHORTEST_BY_REPEATS)
        return min(len(self), SHORTEST_SEGMENT if len(self) >= FEW_POINTS else SHORTEST_OF_FEW)

    def noise_of_repeats(self) -> tuple[float, int]:
        """Variance of a row by repeats, in units of `scale` squared, and its degrees of freedom."""
        freedom = int((self.rows - 1).sum())
        return (float((self.within / self.scale**2).sum()) / freedom if freedom else 0.0), freedom

    def noise_of_rounding(self) -> float:
        """Variance that comes from rounding y to decimals, in the same unit; next to none where it has all digits."""
        return self.rounded_to**2 / 12 * float(np.median(self.scale**-2.0))

    def resolved_noise(self) -> float:
        """The least variance that can be distinguished from none, in the same unit."""
        return max((RESOLVED_CHANGE * float(np.median(np.abs(self.y) / self.scale))) ** 2, 1e-24)

    def noise_of_neighbours(self, share: float = 0.5) -> float:
        """Variance of a row by how much each point differs from the line through its neighbours, in the same unit; that
        share of them differ less."""
        difference, factor = _off_neighbours(self.x, self.y)
        scaled = difference / (self.scale[1:-1] * np.sqrt(factor / self.rows[1:-1]))
        return float((np.quantile(np.abs(scaled), share) / NormalDist().inv_cdf((1 + share) / 2)) ** 2)


def _scale(x: Floats, y: Floats, rows: Floats, within: Floats) -> Floats:
    """|y|, smoothed, where that explains the noise better than a constant does."""
    padded = np.pad(np.abs(y), NOISE_WINDOW // 2, mode="edge")
    size = np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, NOISE_WINDOW), axis=1))
    if np.any(y <= 0) or np.any(size <= 0) or len(x) < NOISE_WINDOW:
        return np.ones_like(y) if np.any(y <= 0) else size
    freedom = rows - 1
    if freedom.sum() >= ENOUGH_FREEDOM and within.any():
        of_size = [float((within / unit**2).sum()) for unit in (size, np.ones_like(size))]
        gain = freedom.sum() * (np.log(of_size[0]) - np.log(of_size[1])) / 2 + float(freedom @ np.log(size))
    else:
        # By logarithms, in which a few points that a bent curve is far off for hardly count.
        off = np.log(np.maximum(_off_curve(x, y), np.finfo(float).eps * size))
        apart = [np.abs(values - np.median(values)).sum() for values in (off - np.log(size), off)]
        gain = (apart[0] - apart[1]) / TYPICAL_LOGARITHM
    return np.ones_like(y) if gain > RANGE_MARGIN else size


def _off_curve(x: Floats, y: Floats) -> Floats:
    """How far each point is from the cubic through four neighbours, or from the line through two: whichever is less. A
    bent curve is far from lines, a jump from cubics; shape of x."""
    count = len(x)
    off = np.empty(count)
    for at in range(count):
        first = min(max(at - 2, 0), count - NOISE_WINDOW)
        window = np.arange(first, first + NOISE_WINDOW)
        others = window[window != at]
        near = others[np.argsort(np.abs(others - at), kind="stable")[:2]]
        off[at] = min(abs(y[at] - _through(x[these], y[these], x[at])) for these in (others, near))
    return off


def _through(x: Floats, y: Floats, at: float) -> float:
    """The polynomial through some points, by Lagrange's formula."""
    shares = (at - x[None, :]) / np.where(np.eye(len(x), dtype=bool), 1.0, x[:, None] - x[None, :])
    np.fill_diagonal(shares, 1.0)
    return float(y @ shares.prod(axis=1))


def _is_outlier(x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Which points are far from the line through their neighbours, while those are near a line without them."""
    outlier = np.zeros(len(x), dtype=bool)
    if len(x) < 2 * NOISE_WINDOW:
        return outlier
    off = np.abs(_off_neighbours(x, y)[0])
    typical = float(np.median(off))
    for at in np.flatnonzero(off > OUTLYING_DEVIATIONS * typical) + 1:
        if 3 <= at < len(x) - 3:
            around = np.array([at - 3, at - 2, at - 1, at + 1, at + 2, at + 3])
            beside = np.abs(_off_neighbours(x[around], y[around])[0]).max()
            outlier[at] = off[at - 1] > OUTLYING_DEVIATIONS * max(beside, typical)
    return outlier


def _rounding_unit(y: Floats) -> float:
    for decimals in range(POINT_DECIMALS):
        step = 10.0**-decimals
        if np.all(np.abs(y / step - np.round(y / step)) <= 1e-9 * np.maximum(np.abs(y / step), 1.0)):
            return step
    return 0.0


def _off_neighbours(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Each inner point less the line through its neighbours, and the variance of that for points of variance 1."""
    left, right = np.diff(x)[:-1], np.diff(x)[1:]
    share = right / (left + right)
    return y[1:-1] - share * y[:-2] - (1 - share) * y[2:], 1 + share**2 + (1 - share) ** 2


def _is_logarithmic(x: Floats) -> bool:
    if x[0] <= 0 or len(x) < 3:
        return False
    even, even_log = np.diff(x), np.diff(np.log(x))
    return bool(even_log.std() / even_log.mean() < even.std() / even.mean())


# A measured curve: rows of x and y, repeats included.


@dataclass(frozen=True)
class MeasuredCurve:
    """Rows as measured, in any order; an x that occurs more than once was repeated."""

    x_name: str
    y_name: str
    """Names of the columns."""
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    """Finite numbers, shape (rows,)."""
    setting: Mapping[str, float] = field(default_factory=dict)
    """Values of other columns, which all rows have in common."""
    errors: NDArray[np.float64] | None = None
    """The standard deviation of each row, above 0, up to a factor, shape (rows,); None where all are alike."""
