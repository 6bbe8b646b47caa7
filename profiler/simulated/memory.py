"""The memory channel: waiting grows with utilisation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from profiler.simulated.card import Card

KNEE = 0.95


def dram_ns(card: Card, gbps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time (ns) of an access when `gbps` GB/s pass: a queue with exponential service, past the knee its tangent."""
    utilisation = gbps / card.dram_gbps
    below = np.minimum(utilisation, KNEE)
    waiting = below / (1 - below) + np.maximum(utilisation - KNEE, 0.0) / (1 - KNEE) ** 2
    time: NDArray[np.float64] = card.dram_ns + card.dram_queue_ns * waiting
    return time
