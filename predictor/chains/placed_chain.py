"""A chain of NFs on the cores that run it, and what each of its stages receives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiles.arrays import Floats


@dataclass(frozen=True, slots=True)
class StageEffect:
    """What an NF does to the traffic of the stages behind it."""

    passes: float = 1.0
    """The share of its packets that it passes on; an access control list drops some."""
    bytes_factor: float = 1.0
    bytes_added: float = 0.0
    """A packet of size b leaves with size b * factor + added: compression has a factor below 1, a tunnel adds bytes."""


@dataclass(frozen=True, slots=True)
class ChainStage:
    """One NF of a chain."""

    nf: str
    """The name of its profile."""
    share: float = 1.0
    """Packets that reach it, as a share of those that enter the chain: its visit ratio."""
    bytes_factor: float = 1.0
    bytes_added: float = 0.0
    """A packet that enters the chain with size b reaches it with size b * factor + added."""

    def size(self, entering: NDArray[np.float64]) -> NDArray[np.float64]:
        """The size of packets that reach it, by their size when they enter the chain."""
        return np.asarray(entering * self.bytes_factor + self.bytes_added)

    def next(self, nf: str, effect: StageEffect) -> ChainStage:
        """The stage behind this one, which has that effect."""
        factor = effect.bytes_factor
        return ChainStage(
            nf, self.share * effect.passes, self.bytes_factor * factor, self.bytes_added * factor + effect.bytes_added
        )


@dataclass(frozen=True, slots=True)
class PlacedChain:
    """Stages in the order of the packets, on cores."""

    stages: tuple[ChainStage, ...]
    """The first receives what enters the chain."""
    cores: Cores
    """Per core the indices of its stages; the cores hand packets over by rings."""

    @classmethod
    def of(
        cls,
        nfs: Sequence[str],
        *,
        cores: Sequence[Sequence[int]] | None = None,
        effects: Sequence[StageEffect] | None = None,
    ) -> PlacedChain:
        """A chain of these NFs. `nfs`: names of profiles, in the order of the packets; at least one. `cores`: as the
        attribute; by default each stage has its own. `effects`: per stage; by default none has any. Raises
        `ValueError` when a stage is on no core or on several, or numbers of NFs and effects differ."""
        effects = [StageEffect()] * len(nfs) if effects is None else effects
        if len(effects) != len(nfs):
            raise ValueError(f"{len(effects)} effects are given for {len(nfs)} NFs")
        stages = [ChainStage(nfs[0])]
        for nf, effect in zip(nfs[1:], effects, strict=False):
            stages.append(stages[-1].next(nf, effect))
        placed = tuple(map(tuple, [[at] for at in range(len(nfs))] if cores is None else cores))
        if sorted(at for core in placed for at in core) != list(range(len(nfs))):
            raise ValueError(f"cores {list(map(list, placed))} do not hold each of {len(nfs)} stages once")
        return cls(tuple(stages), placed)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Visit ratios, shape (stages,)."""
        return np.array([stage.share for stage in self.stages])


# How the NFs of a chain make up its performance.
#
# A cost is what one packet takes: one over the throughput, or the response time. A stage's cost, as its profile shows
# it, contains the cost of the traffic source, as the NF that does nothing shows it. Rules compose the costs of stages,
# per packet that enters the chain; a stage that only a share of the packets reaches costs that share.


Cores = tuple[tuple[int, ...], ...]
"""Per core the indices of its stages."""


class CompositionRule(ABC):
    """Composes the costs of stages."""

    name: str

    @abstractmethod
    def cost(self, stages: Floats, shares: Floats, source: Floats) -> Floats:
        """The costs of chains. `stages`: cost of each stage alone, shape (N, stages). `shares`: packets that reach it,
        as a share of those that enter the chain, shape (stages,). `source`: cost of the traffic source, which each
        stage's cost contains; 0 where it is not known. Shape (N,). Returns shape (N,)."""

    @abstractmethod
    def __str__(self) -> str:
        """The rule in words, with its parameters."""


@dataclass(frozen=True)
class CostsByCore(CompositionRule):
    """On a core costs add, less the source's own; the slowest core limits the chain. With one core, 1/T = t0 + sum_i
    s_i (1/T_i - t0). With a core for each stage, it is the weakest link (van Rossem et al., equation 4): receiving from
    the ring before a core costs what receiving from the source does."""

    cores: Cores
    """Per core the indices of its stages."""
    source_share: float = 0.0
    """Where the source was not measured: its cost as a share of that of the cheapest stage."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """By the number of cores."""
        if all(len(core) == 1 for core in self.cores):
            return "weakest-link"
        return "costs-add" if len(self.cores) == 1 else "costs-by-core"

    def cost(self, stages: Floats, shares: Floats, source: Floats) -> Floats:
        cheapest = stages.min(axis=1)
        received = np.where(source > 0, np.minimum(source, cheapest), self.source_share * cheapest)
        own = (stages - received[:, None]) * shares
        loads = [shares[min(core)] * received + own[:, list(core)].sum(axis=1) for core in self.cores]
        return np.asarray(np.max(loads, axis=0))

    def __str__(self) -> str:
        if self.name == "weakest-link":
            return "the weakest link"
        source = f", the source is {100 * self.source_share:g} % of the cheapest NF" if self.source_share else ""
        if self.name == "costs-add":
            return f"costs add on one core{source}"
        return f"costs add on each of {len(self.cores)} cores, the slowest counts{source}"


@dataclass(frozen=True)
class SoftWeakestLink(CompositionRule):
    """Stages that are about equally slow slow one another down: (sum cost^power)^(1/power)."""

    power: float
    """1 adds all costs, infinity is the weakest link."""
    name = "soft-weakest-link"

    def cost(self, stages: Floats, shares: Floats, source: Floats) -> Floats:
        reached = stages * shares
        largest = reached.max(axis=1)
        relative = ((reached / largest[:, None]) ** self.power).sum(axis=1) ** (1 / self.power)
        return np.asarray(largest * relative)

    def __str__(self) -> str:
        return f"the weakest link, slowed down by the others (power {self.power:g})"


def weakest_link(stages: int) -> CostsByCore:
    """The rule of van Rossem et al., equation 4: each stage by itself, the slowest counts."""
    return CostsByCore(tuple((at,) for at in range(stages)))
