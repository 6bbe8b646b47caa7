"""Files of plain arrays. Reading them executes nothing; the same arrays are the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `arrays` under their names."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **dict(arrays))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays that `write_arrays` wrote.

    Raises
    ------
    ValueError
        When the file holds anything but plain arrays.
    """
    with np.load(path, allow_pickle=False) as file:
        return dict(file)
