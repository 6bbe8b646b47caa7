"""Points as they were written, with what a fitted model predicts there, as CSV."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placer.inputs.csv_table import CsvTable

ADDED = ("predicted", "extrapolated")


def fitted_points(table: CsvTable, predicted: NDArray[np.float64], extrapolated: NDArray[np.bool_]) -> str:
    """The rows of a table with two columns more; `predicted` is empty where the formula has no finite value."""
    kept = [at for at, column in enumerate(table.header) if column not in ADDED]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(table.header[at] for at in kept), *ADDED])
    for row, value, outside in zip(table.rows, predicted.tolist(), extrapolated.tolist(), strict=True):
        shown = f"{value:.15g}" if math.isfinite(value) else ""
        writer.writerow([*(row[at] for at in kept), shown, str(outside).lower()])
    return text.getvalue()
