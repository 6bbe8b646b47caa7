"""A chain of NFs on the cores that run it, and what each of its stages receives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.chains.rules import Cores


@dataclass(frozen=True, slots=True)
class StageEffect:
    """What an NF does to the traffic of the stages behind it.

    Parameters
    ----------
    passes
        The share of its packets that it passes on; an access control list drops some.
    bytes_factor, bytes_added
        A packet of size b leaves with size b * factor + added: compression has a factor below 1, a tunnel adds bytes.
    """

    passes: float = 1.0
    bytes_factor: float = 1.0
    bytes_added: float = 0.0


@dataclass(frozen=True, slots=True)
class ChainStage:
    """One NF of a chain.

    Parameters
    ----------
    nf
        The name of its profile.
    share
        Packets that reach it, as a share of those that enter the chain: its visit ratio.
    bytes_factor, bytes_added
        A packet that enters the chain with size b reaches it with size b * factor + added.
    """

    nf: str
    share: float = 1.0
    bytes_factor: float = 1.0
    bytes_added: float = 0.0

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
    """Stages in the order of the packets, on cores.

    Parameters
    ----------
    stages
        The first receives what enters the chain.
    cores
        Per core the indices of its stages; the cores hand packets over by rings.
    core_times
        Per core the share of its time that it spends on the chain; empty for all of it on each.
    """

    stages: tuple[ChainStage, ...]
    cores: Cores
    core_times: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        nfs: Sequence[str],
        *,
        cores: Sequence[Sequence[int]] | None = None,
        effects: Sequence[StageEffect] | None = None,
        core_times: Sequence[float] = (),
    ) -> PlacedChain:
        """A chain of these NFs.

        Parameters
        ----------
        nfs
            Names of profiles, in the order of the packets; at least one.
        cores
            As the attribute; by default each stage has its own.
        effects
            Per stage; by default none has any.
        core_times
            As the attribute.

        Raises
        ------
        ValueError
            When a stage is on no core or on several, or numbers of NFs and effects, or of cores and times, differ.
        """
        effects = [StageEffect()] * len(nfs) if effects is None else effects
        if len(effects) != len(nfs):
            raise ValueError(f"{len(effects)} effects are given for {len(nfs)} NFs")
        stages = [ChainStage(nfs[0])]
        for nf, effect in zip(nfs[1:], effects, strict=False):
            stages.append(stages[-1].next(nf, effect))
        placed = tuple(map(tuple, [[at] for at in range(len(nfs))] if cores is None else cores))
        if sorted(at for core in placed for at in core) != list(range(len(nfs))):
            raise ValueError(f"cores {list(map(list, placed))} do not hold each of {len(nfs)} stages once")
        if core_times and len(core_times) != len(placed):
            raise ValueError(f"{len(core_times)} shares of time are given for {len(placed)} cores")
        return cls(tuple(stages), placed, tuple(map(float, core_times)))

    @property
    def shares(self) -> NDArray[np.float64]:
        """Visit ratios, shape (stages,)."""
        return np.array([stage.share for stage in self.stages])
