"""The queue of one core, packet by packet, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit


def compiled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel as machine code, cached on disk; where nothing can be written, it is compiled in every process."""
    try:
        return cast("Callable[..., Any]", njit(cache=True)(kernel))
    except RuntimeError:
        return cast("Callable[..., Any]", njit()(kernel))


@compiled
def pass_packets(arrived, times, batch_us, batch, ring):  # type: ignore[no-untyped-def]
    """The packets that a core does not lose, and when each of them leaves it (us).

    Parameters
    ----------
    arrived
        When the packets arrive, us, in order; shape (packets,).
    times
        What the k-th packet that is not lost takes, us; shape (packets,).
    batch_us
        What each batch takes besides, us.
    batch
        The most packets that are taken at once.
    ring
        The most packets that wait.

    Returns
    -------
    kept
        Their indices, shape (kept,).
    left
        When they leave, shape (kept,).
    """
    packets = len(arrived)
    until = np.zeros(packets + 1)
    until[1:] = np.cumsum(times)
    kept = np.empty(packets, np.int64)
    left = np.empty(packets)
    free, following, taken, known = 0.0, 0, 0, 0
    while taken < known or following < packets:
        start = free if taken < known else max(free, arrived[following])
        room = ring - (known - taken)
        while following < packets and arrived[following] <= start:
            if room > 0:
                kept[known] = following
                known, room = known + 1, room - 1
            following += 1
        size = min(batch, known - taken)
        free = start + batch_us + until[taken + size] - until[taken]
        left[taken : taken + size] = free
        taken += size
    return kept[:known], left[:known]
