"""Curves of latency against utilisation, which a MODELS folder may hold: `latency/NF.json`, written by `placer fit`."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np

from placer.model.latency_oracle import LatencyCurve
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.model_file import LARGEST_FILE, models_of
from profiles import InputError
from profiles.text import read_text

FOLDER = "latency"
X, Y = "utilisation", "p99_us"
POINTS = 1_001
"""Utilisations at which a curve is evaluated."""


@dataclass(frozen=True)
class SteppedCurve:
    """A curve that never falls: at each utilisation, the largest value of the fit up to the next point.

    Parameters
    ----------
    utilisations, latencies_us
        Ascending; a latency holds from the utilisation before to its own.
    """

    utilisations: tuple[float, ...]
    latencies_us: tuple[float, ...]

    @classmethod
    def of(cls, fitted: FittedModel) -> SteppedCurve:
        """The fitted curve where it was measured; below that the smallest measured utilisation counts."""
        at = np.linspace(fitted.start, fitted.end, POINTS)
        return cls(tuple(at.tolist()), tuple(np.maximum.accumulate(fitted.predict(at)).tolist()))

    def latency_us(self, utilisation: float) -> float:
        """As of `LatencyCurve`: infinite beyond what was measured."""
        after = int(np.searchsorted(self.utilisations, utilisation))
        return self.latencies_us[after] if after < len(self.latencies_us) else inf

    def utilisation(self, latency_us: float) -> float:
        """As of `LatencyCurve`."""
        within = bisect_right(self.latencies_us, latency_us)
        return self.utilisations[within - 1] if within else 0.0


def read_latency_curves(models: Path, nfs: tuple[str, ...]) -> dict[str, LatencyCurve]:
    """By NF, the curve in a MODELS folder; none where it has no such folder.

    Raises
    ------
    InputError
        When a file there is no fit of `p99_us` over `utilisation` from 0 to 1, or of no NF of these.
    """
    curves: dict[str, LatencyCurve] = {}
    for file in sorted((models / FOLDER).glob("*.json")):
        if file.stem not in nfs:
            raise InputError.of(str(file), f"'{file.stem}' is not an NF of these models")
        curves[file.stem] = SteppedCurve.of(_fit(file))
    return curves


def _fit(file: Path) -> FittedModel:
    fits = models_of(read_text(file, LARGEST_FILE), str(file))
    if len(fits) != 1:
        raise InputError.of(str(file), f"has {len(fits)} curves, and one is used", column="fits")
    fitted = fits[0]
    if (fitted.x, fitted.y) != (X, Y):
        hint = f"fit {Y} over {X}: the offered rate, as a share of the throughput in the same co-location"
        raise InputError.of(str(file), f"is {fitted.y} over {fitted.x}", column="x", hint=hint)
    if not 0 <= fitted.start < fitted.end <= 1:
        raise InputError.of(str(file), f"is from {fitted.start:g} to {fitted.end:g}, not within 0 to 1", column="from")
    if not (fitted.predict([fitted.start, fitted.end]) > 0).all():
        raise InputError.of(str(file), "is not above 0 everywhere", column="y")
    return fitted
