"""Inner loops as machine code, and what counts as equal in them.

A time may exceed its limit by `NEAR`, relative, so that a latency that meets its SLO in exact arithmetic also does in
floating point. A utilisation must stay below 1 by as much.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

from predictor.regression.compiled import cache_kernel

Kernel = Callable[..., Any]

FOLDERS = (Path(__file__).parent,)
"""Where kernels are."""

NEAR = 1e-9
WITHIN = 1.0 + NEAR / 2
"""Greedy methods let times exceed their limits by this factor: half of `NEAR`, so that rounding stays within it."""


def compiled(kernel: Kernel) -> Kernel:
    """The kernel as machine code, kept on disk until a file of this room changes."""
    return cache_kernel(njit()(kernel), FOLDERS)
