"""How packets arrive, and how long they wait until their batch is complete.

The mean needs no model: in a stationary stream, the packets of a batch of b wait (b - 1) / 2 gaps on average, however
they arrive. The rest does. Packets are taken to come in bursts of a geometric number of packets at a fixed distance,
and bursts at random (exponential) distances. The gaps of such a stream are independent, with the index of dispersion
J = (2 size - 1) (1 - rate distance)^2: 1 for a Poisson stream, more for bursts, less on a line that is nearly full
(Sriram & Whitt, Characterizing superposition arrival processes, 1986).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]

FULLEST = 0.95
"""The share of the line that a stream takes at most."""


def mean_wait_us(batch: Array, rate_kpps: Array) -> Array:
    """Mean wait of the packets of a batch, us."""
    value: Array = 500.0 * (batch - 1) / rate_kpps
    return value


@dataclass(frozen=True)
class Bursts:
    """A stream of packets.

    Parameters
    ----------
    size
        Mean packets of a burst, at least 1.
    distance_us
        Between the packets of a burst.
    """

    size: float
    distance_us: float = 0.0

    def batches(self, batch: int, rate_kpps: float, count: int, rng: Generator) -> BatchArrivals:
        """That many batches at a mean rate; the first begins at a random time."""
        gap = 1000.0 / rate_kpps
        distance = min(self.distance_us, FULLEST * gap)
        pause = self.size * (gap - distance)
        pauses = rng.binomial(batch, 1.0 / self.size, count)
        paused = np.where(pauses > 0, rng.gamma(np.maximum(pauses, 1), pause), 0.0)
        # a sample of the mean rate: only its variation is random
        if paused.sum() > 0:
            paused *= count * batch * (gap - distance) / paused.sum()
        return BatchArrivals(batch, distance, pauses, paused)


@dataclass(frozen=True)
class BatchArrivals:
    """Batches as they become complete.

    Parameters
    ----------
    batch
        Packets of each.
    distance_us
        Between packets of a burst.
    pauses
        Pauses between bursts in each batch, shape (batches,).
    paused_us
        How long they are together, shape (batches,).
    """

    batch: int
    distance_us: float
    pauses: NDArray[np.int64]
    paused_us: Array

    @property
    def periods_us(self) -> Array:
        """From each batch to the next, shape (batches,)."""
        value: Array = self.batch * self.distance_us + self.paused_us
        return value

    def waits_us(self, skip: int, packets: int, rng: Generator) -> Array:
        """How long some packets of each batch after the first `skip` wait for the last, shape (batches, packets)."""
        pauses, paused = self.pauses[skip:, None], self.paused_us[skip:, None]
        shape = (len(pauses), packets)
        # positions evenly over the batch; a packet with n after it waits for n gaps
        after = np.floor((np.arange(packets) + rng.random(shape)) / packets * self.batch).astype(np.int64)
        theirs = rng.hypergeometric(np.broadcast_to(pauses, shape), self.batch - pauses, after)
        share = np.where(theirs > 0, rng.beta(np.maximum(theirs, 1), np.maximum(pauses - theirs, 1e-9)), 0.0)
        value: Array = after * self.distance_us + np.where(theirs == pauses, np.sign(theirs), share) * paused
        return value
