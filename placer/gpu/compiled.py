"""Inner loops as machine code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

from predictor.regression.compiled import cached

Kernel = Callable[..., Any]

FOLDERS = (Path(__file__).parent,)
"""Where kernels are."""


def compiled(kernel: Kernel) -> Kernel:
    """The kernel as machine code, kept on disk until a file of this room changes."""
    return cached(njit()(kernel), FOLDERS)
