"""Kernels of several NFs side by side on their SMs: each runs slower while the kernels of its sharers run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KernelShare:
    """The kernel of one NF.

    Parameters
    ----------
    alone_us
        Time of each of its minibatches with its SM for itself.
    slowdowns
        For each minibatch, by index of another NF: by which share it takes longer while that one's kernel runs.
    """

    alone_us: tuple[float, ...]
    slowdowns: tuple[dict[int, float], ...] = field(default=())

    @property
    def longest_us(self) -> float:
        """Of its minibatches, alone."""
        return max(self.alone_us)

    def time(self, running: Sequence[bool]) -> float:
        """The longest time of its minibatches if these other NFs run all the while."""
        if not self.slowdowns:
            return self.longest_us
        return max(
            alone * (1.0 + sum(by for other, by in slower.items() if running[other]))
            for alone, slower in zip(self.alone_us, self.slowdowns, strict=True)
        )


def as_arrays(shares: Sequence[KernelShare]) -> tuple[NDArray[np.int64], Array, Array]:
    """Where the minibatches of each NF begin, each one's time alone, and its slowdowns by NF (`queues`)."""
    parts = np.cumsum([0, *(len(one.alone_us) for one in shares)])
    alone = np.concatenate([one.alone_us for one in shares])
    slowdowns = np.zeros((len(alone), len(shares)))
    for at, share in enumerate(shares):
        for part, slower in enumerate(share.slowdowns):
            for other, by in slower.items():
                slowdowns[parts[at] + part, other] = by
    return parts, alone, slowdowns
