"""A measured curve: rows of x and y, repeats included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class MeasuredCurve:
    """Rows as measured, in any order; an x that occurs more than once was repeated.

    Parameters
    ----------
    x_name, y_name
        Names of the columns.
    x, y
        Finite numbers, shape (rows,).
    setting
        Values of other columns, which all rows have in common.
    """

    x_name: str
    y_name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    setting: Mapping[str, float] = field(default_factory=dict)
