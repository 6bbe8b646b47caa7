"""Inner loops as machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import njit

Kernel = Callable[..., Any]


def compiled(kernel: Kernel) -> Kernel:
    """The kernel as machine code, cached on disk; where nothing can be written, it is compiled in every process."""
    try:
        return cast("Kernel", njit(cache=True)(kernel))
    except RuntimeError:
        return cast("Kernel", njit()(kernel))
