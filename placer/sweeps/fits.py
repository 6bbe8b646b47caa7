"""The curves of a sweep, and a fitted model of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from predictor.fitting.curve import MeasuredCurve
from predictor.fitting.fit import fit
from predictor.fitting.fitted_model import FittedModel

FEWEST = 3
"""Different x of a curve that is fitted."""


def curves_of(table: pd.DataFrame, keys: Sequence[str], x: str, y: Sequence[str]) -> list[MeasuredCurve]:
    """Each metric of `y` over the varied key `x`, at each setting of the other varied keys.

    A curve with fewer than three different x is left out.

    Parameters
    ----------
    table
        `measurements.csv`.
    keys
        The varied keys.
    """
    return [curve for metric in y for curve in _of_metric(table, [key for key in keys if key != x], x, metric)]


def _of_metric(table: pd.DataFrame, others: Sequence[str], x: str, y: str) -> Iterator[MeasuredCurve]:
    settings = table[list(others)].drop_duplicates().to_dict("records") if others else [{}]
    for setting in settings:
        rows = table
        for key, value in setting.items():
            rows = rows[rows[key] == value]
        if rows[x].nunique() >= FEWEST:
            values = {str(key): float(value) for key, value in setting.items()}
            yield MeasuredCurve(x, y, np.array(rows[x], dtype=float), np.array(rows[y], dtype=float), values)


def fit_curves(curves: Sequence[MeasuredCurve], select: str) -> list[FittedModel]:
    """A model of each curve. Their `seconds` are 0, so that the same measurements give the same bytes."""
    return [replace(fit(curve, select=select), seconds=0.0) for curve in curves]
