"""Predictors whose answers can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placer.rack.contention.co_location import CycleGrowth, Member
from placer.rack.rack import Device

MOST = 2.0


def nil(device: Device, members: Sequence[Member]) -> list[list[float]]:
    """Nobody slows anybody down."""
    return [[1.0] * len(one.nfs) for one in members]


def beside_another(factor: float) -> CycleGrowth:
    """Cycles grow by a factor where two chains or more share a device."""

    def growth(device: Device, members: Sequence[Member]) -> list[list[float]]:
        several = len({one.chain.name for one in members}) > 1
        return [[factor if several else 1.0] * len(one.nfs) for one in members]

    return growth


def by_kind(sensitivity: Mapping[str, float], pressure: Mapping[str, float]) -> CycleGrowth:
    """Monotone, between 1 and 2: what an NF suffers grows with each core of the others by the kinds that run there."""

    def growth(device: Device, members: Sequence[Member]) -> list[list[float]]:
        own = [max(pressure[nf.nf] for nf in one.kinds) for one in members]
        everything = sum(each * one.cores for each, one in zip(own, members, strict=True))
        return [
            [min(1 + sensitivity[nf.nf] * (everything - each), MOST) for nf in one.kinds]
            for each, one in zip(own, members, strict=True)
        ]

    return growth
