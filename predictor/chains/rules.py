"""How the NFs of a chain make up its performance.

A cost is what one packet takes: one over the throughput, or the response time. A stage's cost, as its profile shows it,
contains the cost of the traffic source, as the NF that does nothing shows it. Rules compose the costs of stages, per
packet that enters the chain; a stage that only a share of the packets reaches costs that share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

Cores = tuple[tuple[int, ...], ...]
"""Per core the indices of its stages."""


class CompositionRule(ABC):
    """Composes the costs of stages."""

    name: str

    @abstractmethod
    def cost(self, stages: Array, shares: Array) -> Array:
        """The costs of chains.

        Parameters
        ----------
        stages
            Cost of each stage alone, shape (N, stages).
        shares
            Packets that reach it, as a share of those that enter the chain, shape (stages,).

        Returns
        -------
        Shape (N,).
        """

    @abstractmethod
    def __str__(self) -> str:
        """The rule in words, with its parameters."""


@dataclass(frozen=True)
class CostsByCore(CompositionRule):
    """On a core costs add, less the source's own; the slowest core limits the chain.

    With one core, 1/T = t0 + sum_i s_i (1/T_i - t0). With a core for each stage, it is the weakest link (van Rossem et
    al., equation 4).

    Parameters
    ----------
    cores
        Per core the indices of its stages.
    source
        Cost of the source, which every stage's cost contains: one for all chains, or shape (N,).
    ring
        Cost of receiving from the ring before a core other than the first; None: that of the source.
    """

    cores: Cores
    source: float | Array = 0.0
    ring: float | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        """By the number of cores."""
        if all(len(core) == 1 for core in self.cores):
            return "weakest-link"
        return "costs-add" if len(self.cores) == 1 else "costs-by-core"

    def cost(self, stages: Array, shares: Array) -> Array:
        source = np.minimum(self.source, stages.min(axis=1))
        own = (stages - source[:, None]) * shares
        loads = []
        for core in self.cores:
            first = min(core)
            received = source if first == 0 or self.ring is None else np.full(len(stages), self.ring)
            loads.append(shares[first] * received + own[:, list(core)].sum(axis=1))
        return np.asarray(np.max(loads, axis=0))

    def __str__(self) -> str:
        if self.name == "weakest-link":
            return "the weakest link"
        if self.name == "costs-add":
            return "costs add on one core"
        return f"costs add on each of {len(self.cores)} cores, the slowest counts"


@dataclass(frozen=True)
class SoftWeakestLink(CompositionRule):
    """Stages that are about equally slow slow one another down: (sum cost^power)^(1/power).

    Parameters
    ----------
    power
        1 adds all costs, infinity is the weakest link.
    """

    power: float
    name = "soft-weakest-link"

    def cost(self, stages: Array, shares: Array) -> Array:
        reached = stages * shares
        largest = reached.max(axis=1)
        relative = ((reached / largest[:, None]) ** self.power).sum(axis=1) ** (1 / self.power)
        return np.asarray(largest * relative)

    def __str__(self) -> str:
        return f"the weakest link, slowed down by the others (power {self.power:g})"


def weakest_link(stages: int) -> CostsByCore:
    """The rule of van Rossem et al., equation 4: each stage by itself, the slowest counts."""
    return CostsByCore(tuple((at,) for at in range(stages)))
