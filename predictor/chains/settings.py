"""Measurements by setting: repeats of one configuration and workload become one robust value, and estimate the noise.
Labs produce outliers, such as a run during which something else ran, of a factor of seven. Where there are at least
three repeats, the others show which one it is; else the neighbouring settings do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predictor.chains.process import Assumptions, SmoothProcess, Typical
from profiles.arrays import Floats

DEVIATION_OF_MAD = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
DEVIATION_OF_PAIRS = 1.0483  # standard deviation of a normal distribution over the median distance of two draws
OUTLYING_DEVIATIONS = 4.0  # standard deviations from the other repeats beyond which a repeat does not count
DOUBT_OF_FEW = 2.0  # by how much more, over the degrees of freedom that the standard deviation is known from
ENOUGH_REPEATS = 3  # repeats that show which one of them is an outlier
LEAST_SPREAD, ASSUMED_SPREAD = 1e-3, 0.05
"""Smallest relative standard deviation of a measurement, and the one without any repeats."""
ASSUMED_DOUBT = 2.0  # standard deviation of the logarithm of the assumption
SPREAD_ROUNDS = 5  # of leaving outliers out and estimating the noise again
STRANGE_DEVIATIONS, STRANGE_FACTOR = 5.0, 1.6
"""How far (standard deviations, and as a factor) a setting must be from what its neighbours predict to be left out."""
FEWEST_NEIGHBOURS = 6
MOST_SUSPECTS = 0.3  # share of the settings that are judged by the others at a time
OUTLIER_ROUNDS = 4
MOST_LEFT_OUT = 0.15  # share of the settings: if more are strange, the neighbours are no guide

NEIGHBOURS_PRIOR = Assumptions(
    constant=Typical(10.0, 0.0),
    slope=Typical(2.0, 0.0),
    amplitude=Typical(0.5, 1.0),
    length=Typical(1.0, 1.0),
    nugget=Typical(0.05, 1.0),
)


@dataclass(frozen=True)
class Settings:
    """The distinct settings that were measured."""

    names: tuple[str, ...]  # of the inputs
    inputs: Floats  # shape (settings, inputs)
    value: Floats  # what was measured at each, robust against outliers. Shape (settings,).
    count: Floats  # how many measurements that is, without outliers. Shape (settings,).
    spread: float  # relative standard deviation of a single measurement, without outliers
    repeats: tuple[Floats, ...] = ()  # natural logarithm of every measurement, by setting, outliers included

    def __len__(self) -> int:
        return len(self.value)

    @property
    def variance(self) -> Floats:
        """Variance of the noise of each value's natural logarithm, shape (settings,)."""
        return np.asarray(self.spread**2 / self.count)

    @property
    def measurements(self) -> int:
        """How many measurements there are, outliers included."""
        return sum(map(len, self.repeats))

    @property
    def left_out(self) -> int:
        """How many measurements do not count, because they are outliers."""
        return self.measurements - round(float(self.count.sum()))

    def at(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "Settings":
        """Only these settings."""
        repeats = tuple(self.repeats[row] for row in np.arange(len(self))[rows]) if self.repeats else ()
        return replace(self, inputs=self.inputs[rows], value=self.value[rows], count=self.count[rows], repeats=repeats)


def settings_of(names: tuple[str, ...], inputs: Floats, measured: Floats) -> Settings:
    """The settings of single measurements. `names`: of the inputs. `inputs`: shape (measurements, inputs). `measured`:
    above 0, shape (measurements,)."""
    if inputs.shape[1] == 0:  # numpy finds no rows where there are no columns
        distinct, of_row = inputs[:1], np.zeros(len(inputs), dtype=np.intp)
    else:
        distinct, of_row = np.unique(inputs, axis=0, return_inverse=True)
    logarithm = np.log(measured)
    order = np.argsort(of_row.reshape(-1), kind="stable")
    ends = np.searchsorted(of_row.reshape(-1)[order], np.arange(1, len(distinct)))
    repeats = tuple(logarithm[rows] for rows in np.split(order, ends))
    spread, kept = _without_outliers(repeats)
    # Half median, half mean of what is left: the mean has less noise, the median minds outliers less.
    centre = np.array([(float(np.median(values) + np.mean(values)) / 2) for values in kept])
    return Settings(names, distinct, np.exp(centre), np.array([float(len(values)) for values in kept]), spread, repeats)


def without_strange(settings: Settings) -> Settings:
    """Without outliers of settings with too few repeats to show them, by what neighbouring settings predict."""
    doubtful = np.array([len(repeat) < ENOUGH_REPEATS for repeat in settings.repeats])
    if not doubtful.any() or len(settings) < FEWEST_NEIGHBOURS:
        return settings
    points = InputScale.of(settings.inputs)(settings.inputs)
    corrected, kept = settings, np.arange(len(settings))
    for _ in range(OUTLIER_ROUNDS):
        error, strange = _strange(points[kept], corrected, doubtful[kept])
        if not strange.any():
            break
        # strange settings reduced to the repeat that is as predicted; those without one have count 0
        predicted = np.log(corrected.value) - error
        value, count = corrected.value.copy(), corrected.count.copy()
        for number in np.flatnonzero(strange):
            repeats = corrected.repeats[number]
            nearest = repeats[np.argmin(np.abs(repeats - predicted[number]))]
            agrees = count[number] > 1 and abs(nearest - predicted[number]) < np.log(STRANGE_FACTOR)
            value[number], count[number] = np.exp(nearest), float(agrees)
        corrected = replace(corrected, value=value, count=count)
        kept, corrected = kept[corrected.count > 0], corrected.at(corrected.count > 0)
    return corrected if len(kept) >= (1 - MOST_LEFT_OUT) * len(settings) else settings


def _without_outliers(repeats: Sequence[Floats]) -> tuple[float, list[Floats]]:
    """The relative standard deviation of a measurement, and of each setting the repeats that count. Two draws of a
    normal distribution are as far apart however many repeats there are, so that the median distance of two repeats has
    no bias, and outliers hardly move it. By it, outliers are left out; what is left estimates the noise again."""
    several = [run for run in repeats if len(run) > 1]
    if not several:
        return ASSUMED_SPREAD, list(repeats)
    pairs = [np.abs(np.subtract.outer(run, run))[np.triu_indices(len(run), 1)] for run in several]
    shares = np.concatenate([np.full(len(apart), 1 / len(run)) for apart, run in zip(pairs, several, strict=True)])
    apart = np.concatenate(pairs)
    order = np.argsort(apart, kind="stable")
    middle = int(np.searchsorted(np.cumsum(shares[order]), shares.sum() / 2))
    freedom = sum(len(run) - 1 for run in several)
    spread = _shrunk(DEVIATION_OF_PAIRS * float(apart[order[middle]]), freedom)
    for _ in range(SPREAD_ROUNDS):
        limit = OUTLYING_DEVIATIONS * (1 + DOUBT_OF_FEW / freedom) * spread
        kept = [_near_others(run, limit) for run in repeats]
        # Of two repeats that are far apart, either may be the outlier: they show nothing of the noise.
        sound = [
            run for run in kept if len(run) >= ENOUGH_REPEATS or (len(run) == 2 and np.ptp(run) <= np.sqrt(2) * limit)
        ]
        freedom = sum(len(run) - 1 for run in sound)
        if not freedom:
            break
        last, squares = spread, sum(float(((run - run.mean()) ** 2).sum()) for run in sound)
        spread = _shrunk(float(np.sqrt(squares / freedom)), freedom)
        if spread == last:
            break
    return spread, kept


def _shrunk(measured: float, freedom: int) -> float:
    """What to expect of a standard deviation that was measured with so many degrees of freedom: one of few is too small
    in the mean, by the first term of a series, and counts less beside what is assumed."""
    measured = max(measured * (1 + 1 / (4 * freedom)), LEAST_SPREAD)
    trust = 1 / (1 + 1 / (2 * freedom * ASSUMED_DOUBT**2))
    return max(float(ASSUMED_SPREAD ** (1 - trust) * measured**trust), LEAST_SPREAD)


def _near_others(repeats: Floats, limit: float) -> Floats:
    if len(repeats) < ENOUGH_REPEATS:
        return repeats
    kept = repeats[np.abs(repeats - np.median(repeats)) <= limit]
    return kept if len(kept) else repeats


def _strange(points: Floats, settings: Settings, doubtful: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """How far each value is from what the others predict, and whether that is too far to be believed. An outlier spoils
    what its neighbours predict, too: all suspects are judged by those who are none."""
    values = np.log(settings.value) - np.median(np.log(settings.value))
    fitted = SmoothProcess.fit(points, values, settings.variance, NEIGHBOURS_PRIOR)
    error = fitted.left_out()[0]
    suspect = doubtful & (np.abs(error) > np.log(STRANGE_FACTOR))
    some = np.argsort(-np.abs(error))[: max(1, int(MOST_SUSPECTS * len(settings)))]
    suspect &= np.isin(np.arange(len(settings)), some)
    if not suspect.any():
        return error, suspect
    others = SmoothProcess.fit(points[~suspect], values[~suspect], settings.variance[~suspect], NEIGHBOURS_PRIOR)
    predicted, deviation = others(points[suspect])
    error[suspect] = values[suspect] - predicted
    expected = np.sqrt(deviation**2 + settings.variance[suspect])
    suspect[suspect] = np.abs(error[suspect]) > np.maximum(STRANGE_DEVIATIONS * expected, np.log(STRANGE_FACTOR))
    return error, suspect


# Inputs on a common scale.


WIDE_RANGE_FACTOR = 4.0  # largest over smallest value of an input from which its logarithm is used


@dataclass(frozen=True)
class InputScale:
    """Inputs as shares of their measured range, from 0 to 1; those of wide range by their logarithms."""

    low: Floats
    high: Floats  # of each input as measured. Shape (inputs,).
    offset: Floats  # what is added before the logarithm; NaN where the input itself is used. Shape (inputs,).

    @classmethod
    def of(cls, inputs: Floats) -> "InputScale":
        """The scale of measured inputs, shape (settings, inputs)."""
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        positive = np.where(inputs > 0, inputs, np.inf).min(axis=0)
        offset = np.full(len(low), np.nan)
        for at, (smallest, largest, least) in enumerate(zip(low, high, positive, strict=True)):
            if smallest >= 0 and np.isfinite(least) and largest / least >= WIDE_RANGE_FACTOR:
                offset[at] = 0.0 if smallest > 0 else least
        return cls(low, high, offset)

    def __call__(self, inputs: Floats) -> Floats:
        """The inputs as shares of the range, shape (N, inputs); an input that never varied is 0."""
        scaled = np.empty_like(inputs, dtype=np.float64)
        for at, (low, high, offset) in enumerate(zip(self.low, self.high, self.offset, strict=True)):
            column = inputs[:, at]
            if high <= low:
                scaled[:, at] = 0.0
            elif np.isnan(offset):
                scaled[:, at] = (column - low) / (high - low)
            else:
                logarithm = np.log(np.maximum(column + offset, max(low + offset, 1e-300) / 1e3))
                scaled[:, at] = (logarithm - np.log(low + offset)) / (np.log(high + offset) - np.log(low + offset))
        return scaled

    def outside(self, inputs: Floats) -> NDArray[np.bool_]:
        """Whether any input is outside its measured range, shape (N,)."""
        room = 1e-9 * np.maximum(np.abs(self.low), np.abs(self.high))
        return np.asarray(((inputs < self.low - room) | (inputs > self.high + room)).any(axis=1))
