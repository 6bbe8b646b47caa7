"""Corrections of predictions by measured chain runs: the factor that is left over, as a smooth function.

The factor is learnt in logarithms by a process that assumes little: without evidence, it stays at 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.chains.process import ITERATIONS, Assumptions, SmoothProcess, Typical
from predictor.chains.settings import NORMAL

Array = NDArray[np.float64]

ASSUMED = Assumptions(
    constant=Typical(0.3, 0.0),
    slope=Typical(0.05, 1.0),
    amplitude=Typical(0.05, 1.0),
    length=Typical(1.5, 0.7),
    nugget=Typical(0.02, 1.0),
)
"""A chain is off by a constant factor of typically 0.3, and by little that depends on its setting."""

FAR, FAR_FACTOR = 4.5, 2.2
"""How far (standard deviations, and as a factor) a run is from the others to be left out."""
ROUNDS = 3


@dataclass(frozen=True)
class Correction:
    """A factor as a function of features.

    Parameters
    ----------
    process
        The factor's natural logarithm.
    kept
        Which runs it learnt from; the others are outliers. Shape (runs,).
    """

    process: SmoothProcess
    kept: NDArray[np.bool_]

    @classmethod
    def fit(
        cls,
        features: Array,
        factor: Array,
        variance: Array,
        doubtful: NDArray[np.bool_],
        assumed: Assumptions = ASSUMED,
        *,
        iterations: int = ITERATIONS,
    ) -> Correction:
        """The correction by some runs.

        Parameters
        ----------
        features
            What the factor may depend on, each of about unit range. Shape (runs, features).
        factor
            Natural logarithm of measured over predicted, shape (runs,).
        variance
            Of its noise, shape (runs,).
        doubtful
            Runs with too few repeats to show an outlier, shape (runs,).
        assumed
            Of the factor.
        iterations
            Of the search for the most likely parameters.
        """
        centre = float(np.median(factor))
        unit = max(NORMAL * float(np.median(np.abs(factor - centre))), float(np.sqrt(np.median(variance))))
        kept = ~doubtful | (np.abs(factor - centre) <= max(FAR * unit, np.log(FAR_FACTOR)))
        for _ in range(ROUNDS):
            process = SmoothProcess.fit(features[kept], factor[kept], variance[kept], assumed, iterations=iterations)
            error, deviation = _errors(process, features, factor, variance, kept)
            far = (np.abs(error) > np.maximum(FAR * deviation, np.log(FAR_FACTOR))) & doubtful
            if (kept == ~far).all():
                break
            kept = ~far
        return cls(process.with_measurements(features[kept], factor[kept], variance[kept]), kept)

    def __call__(self, features: Array) -> tuple[Array, Array]:
        """Natural logarithm of the factor, and the standard deviation of its error without noise, each shape (N,)."""
        return self.process(features)


def _errors(
    process: SmoothProcess, features: Array, factor: Array, variance: Array, kept: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Errors of all runs, of those kept as predicted from the others, with their standard deviations."""
    value, deviation = process(features)
    error, deviation = factor - value, np.sqrt(deviation**2 + variance)
    error[kept], deviation[kept] = process.left_out()
    return error, deviation


def improves(gain: Array, chance: float) -> bool:
    """Whether gains, shape (runs,), are above 0 on the mean, more than by chance (Student's t, one-sided).

    Parameters
    ----------
    gain
        By how much the error of each left-out run becomes smaller; of fewer than two, nothing is known.
    chance
        How probable it may be that no gain looks like one.
    """
    from scipy.stats import t as student

    if len(gain) < 2:
        return False
    needed = float(student.ppf(1 - chance, len(gain) - 1)) * gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(gain.mean() > needed)
