"""An NF on another number of cores than its default: what changes, relative to the default number.

Cores carry packets side by side, so throughput grows with them, less what they share: private caches grow with the
cores, the shared cache, the memory and locks do not (Amdahl's law). What memory contention leaves of a core's speed is
nearly the same on each of them, and the queues of an accelerator belong to the NF, not to its cores. So an NF on four
cores is predicted from what it does on two, with a factor on its speed and an exponent on the share that memory
contention leaves; few runs determine both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from profiles.arrays import Floats
from profiles.shown import Shown

FLOWS_UNIT, BYTES_UNIT, MATCHES_UNIT = 16_000.0, 1500.0, 600.0
"""Traffic around which the speed changes linearly: the usual values of a SmartNIC."""


@dataclass(frozen=True, repr=False)
class CoreScale(Shown):
    """What changes where an NF has this number of cores."""

    cores: int
    speed: Floats
    """Logarithm of the factor on the speed of its cores: a constant, then per unit of `speed_axes`, shape (4,)."""
    exposure: float
    """Exponent of the share that memory contention leaves; 1 where it is as on the default number."""
    spread: float
    """Standard deviation of the logarithm of throughput alone around what this predicts."""

    def factor(self, traffic: Floats) -> Floats:
        """The factor on the speed of its cores at each row of `traffic`, shape (N, 3)."""
        factors: Floats = np.exp(speed_axes(traffic) @ self.speed)
        return factors

    def as_array(self) -> Floats:
        """What was learnt, as an array of shape (7,)."""
        return np.array([self.cores, *self.speed, self.exposure, self.spread])

    @classmethod
    def from_array(cls, values: Floats) -> CoreScale:
        """The scale that `as_array` returned."""
        return cls(int(values[0]), values[1:5].copy(), float(values[5]), float(values[6]))


def speed_axes(traffic: Floats) -> Floats:
    """What the speed changes with: a constant, flows and packet size on a logarithmic scale, and matches.

    Shape (N, 4) of traffic of shape (N, 3); 16,000 flows of 1,500 bytes without matches are (1, 0, 0, 0).
    """
    flows, size, matches = np.maximum(traffic, [1.0, 1.0, 0.0]).T
    return np.column_stack(
        [np.ones(len(traffic)), np.log(flows / FLOWS_UNIT), np.log(size / BYTES_UNIT), matches / MATCHES_UNIT]
    )


UNMEASURED_SPREAD = 0.05
"""Standard deviation of the logarithm of throughput on a number of cores that was not measured."""


def scale_to(cores: int, default: int, measured: Mapping[int, CoreScale]) -> CoreScale:
    """The scale of a number of cores that was not measured, from those that were.

    By Amdahl's law throughput on c cores is proportional to 1 / (s + (1 - s) / c), where s is the share that is done
    one after the other; s is fitted to the speeds that were measured. What the speed changes with, and the exposure,
    follow the logarithm of the number of cores.
    """
    steps = np.array([math.log(scale.cores / default) for scale in measured.values()])
    constants = np.array([scale.speed[0] for scale in measured.values()])
    shares = np.linspace(0.0, 0.5, 501)
    errors = [
        float(
            ((np.array([_amdahl(share, scale.cores, default) for scale in measured.values()]) - constants) ** 2).sum()
        )
        for share in shares
    ]
    serial = float(shares[int(np.argmin(errors))])
    weight = steps / max(float((steps**2).sum()), 1e-12)
    step = math.log(cores / default)
    slopes = step * (weight[:, None] * np.array([scale.speed[1:] for scale in measured.values()])).sum(axis=0)
    exposure = 1.0 + step * float((weight * np.array([scale.exposure - 1.0 for scale in measured.values()])).sum())
    spread = math.hypot(UNMEASURED_SPREAD, max(scale.spread for scale in measured.values()))
    return CoreScale(cores, np.array([_amdahl(serial, cores, default), *slopes]), max(exposure, 0.0), spread)


def _amdahl(serial: float, cores: int, default: int) -> float:
    """Logarithm of the speed on `cores` relative to that on `default` cores, of which this share is serial."""
    return math.log((serial + (1.0 - serial) / default) / (serial + (1.0 - serial) / cores))


def scales_as_array(scales: Mapping[int, CoreScale]) -> Floats:
    """All scales, one row each, shape (N, 7)."""
    return np.array([scale.as_array() for scale in scales.values()]).reshape(len(scales), 7)


def scales_from_array(rows: Sequence[Floats] | Floats) -> dict[int, CoreScale]:
    """The scales that `scales_as_array` returned, by number of cores."""
    return {scale.cores: scale for scale in map(CoreScale.from_array, rows)}
