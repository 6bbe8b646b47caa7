"""Curves of latency against utilisation, which a MODELS folder may hold: `latency/NF.json`, written by `placer fit`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from placer.model.latency_curve import FittedLatency, SteppedCurve
from placer.model.latency_oracle import LatencyCurve
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.model_file import LARGEST_FILE, models_of
from predictor.latency.files import FOLDER, is_trained
from profiles import InputError
from profiles.text import read_text

X, Y = "utilisation", "p99_us"
POINTS = 1_001
"""Utilisations at which a curve is evaluated."""


def read_latency_curves(models: Path, nfs: tuple[str, ...]) -> dict[str, LatencyCurve]:
    """By NF, the fitted curve in a MODELS folder; none where it has no such folder.

    What training wrote there is left to the models.

    Raises
    ------
    InputError
        When a file there is no fit of `p99_us` over `utilisation` from 0 to 1, or of no NF of these.
    """
    curves: dict[str, LatencyCurve] = {}
    for file in sorted((models / FOLDER).glob("*.json")):
        if is_trained(file):
            continue
        if file.stem not in nfs:
            raise InputError.of(str(file), f"'{file.stem}' is not an NF of these models")
        curves[file.stem] = FittedLatency(_stepped(_fit(file)))
    return curves


def refuse_curves_of_users(models: Path, nfs: Sequence[str]) -> None:
    """InputError where training the latency of these NFs would replace a fitted curve in a MODELS folder."""
    for nf in nfs:
        file = models / FOLDER / f"{nf}.json"
        if file.exists() and not is_trained(file):
            hint = f"remove it to use {nf}/latency.csv of the profile, or the other way round"
            raise InputError.of(str(file), f"is a fitted curve, and the latency of {nf} would be trained", hint=hint)


def _stepped(fitted: FittedModel) -> SteppedCurve:
    """The fitted curve where it was measured; below that the smallest measured utilisation counts."""
    at = np.linspace(fitted.start, fitted.end, POINTS)
    return SteppedCurve(tuple(at.tolist()), tuple(np.maximum.accumulate(fitted.predict(at)).tolist()))


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
