"""The memory channel: waiting grows with utilisation u as u / (1 - u), as in a queue with exponential service."""

from __future__ import annotations

import numpy as np

from profiler.simulated.cache import Array
from profiler.simulated.card import Card

SLACK_NS = 20.0


def waiting_step(card: Card, waiting: Array, gbps: Array, slope: Array) -> Array:
    """One Newton step towards the waiting (ns) at which the channel carries the loads' traffic.

    Parameters
    ----------
    waiting
        The present estimate; the step goes no further than half or twice that.
    gbps, slope
        The loads' memory traffic at this waiting, GB/s, and its derivative, which is not positive.
    """
    gap = waiting + card.dram_queue_ns
    carried = card.dram_gbps * waiting / gap
    steepness = card.dram_gbps * card.dram_queue_ns / gap**2
    step: Array = np.clip(waiting + (gbps - carried) / (steepness - slope), waiting / 2, 2 * waiting + SLACK_NS)
    return step
