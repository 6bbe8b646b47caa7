"""An NF on another number of cores than its default: what changes, relative to the default number.

Cores carry packets side by side, so throughput grows with them, less what they share: private caches grow with the
cores; the shared cache, the memory and locks do not (Amdahl's law). The queues of an accelerator belong to the NF, not
to its cores. Of the shared cache an NF holds what it accesses often, relative to its competitors: on half the cores it
accesses its tables half as often, so the same competitors press twice as hard. Few runs determine how far that holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from predictor.contention.solo import traffic_axes
from predictor.regression.gaussian_process import GaussianProcess
from profiles.arrays import Floats
from profiles.shown import Shown


@dataclass(frozen=True, repr=False)
class CoreScale(Shown):
    """What changes where an NF has this number of cores."""

    cores: int
    logarithm: float  # of the factor on the speed of all its cores together
    by_traffic: GaussianProcess  # how much more or less that is at which traffic, of `traffic_axes`
    pressure: float  # factor on the counters of its competitors, except for their working set
    exposure: float  # exponent of the share that memory contention leaves
    spread: float  # standard deviation of the logarithm of throughput alone around what this predicts
    doubt: float = 1.0  # how much further predictions beside others err than on the default number of cores

    def factor(self, traffic: Floats) -> Floats:
        """The factor on the speed of its cores at each row of `traffic`, shape (N, 3)."""
        factors: Floats = np.exp(self.logarithm + self.by_traffic(traffic_axes(traffic))[:, 0])
        return factors

    def as_arrays(self) -> dict[str, Floats]:
        """What was learnt, as plain arrays."""
        scalars = np.array([self.cores, self.logarithm, self.pressure, self.exposure, self.spread, self.doubt])
        return {"scalars": scalars, **self.by_traffic.as_arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats]) -> CoreScale:
        """The scale that `as_arrays` returned."""
        cores, logarithm, *others = arrays["scalars"].tolist()
        pressure, exposure, spread, doubt = others
        return cls(int(cores), logarithm, GaussianProcess.from_arrays(arrays), pressure, exposure, spread, doubt)


UNMEASURED_SPREAD = 0.05  # standard deviation of the logarithm of throughput on a number of cores that was not measured
MOST_SERIAL = 0.5


def scale_to(cores: int, default: int, measured: Mapping[int, CoreScale]) -> CoreScale:
    """The scale of a number of cores that was not measured, from those that were.

    By Amdahl's law throughput on c cores is proportional to 1 / (s + (1 - s) / c), where s is the share that is done
    one after the other; s is fitted to the speeds that were measured, none of which means that there is no such share.
    """
    shares = np.linspace(0.0, MOST_SERIAL, 501)
    misfits = sum(
        ((_amdahl(shares, scale.cores, default) - scale.logarithm) ** 2 for scale in measured.values()),
        np.zeros(len(shares)),
    )
    logarithm = float(_amdahl(shares[int(np.argmin(misfits))], cores, default))
    spread = math.hypot(UNMEASURED_SPREAD, max((scale.spread for scale in measured.values()), default=0.0))
    doubt = max((scale.doubt for scale in measured.values()), default=1.0)
    return CoreScale(cores, logarithm, GaussianProcess.none(3), default / cores, 1.0, spread, doubt)


def _amdahl(serial: Floats, cores: int, default: int) -> Floats:
    """Logarithm of the speed on `cores` relative to that on `default` cores, of which these shares are serial."""
    factors: Floats = np.log((serial + (1.0 - serial) / default) / (serial + (1.0 - serial) / cores))
    return factors


def stack_scales(scales: Mapping[int, CoreScale]) -> dict[str, Floats]:
    """All scales as plain arrays."""
    return {f"{cores}_{name}": array for cores, scale in scales.items() for name, array in scale.as_arrays().items()}


def unstack_scales(arrays: Mapping[str, Floats]) -> dict[int, CoreScale]:
    """The scales that `stack_scales` returned, by number of cores."""
    found: dict[int, dict[str, Floats]] = {}
    for name, array in arrays.items():
        cores, _, part = name.partition("_")
        found.setdefault(int(cores), {})[part] = array
    return {cores: CoreScale.from_arrays(parts) for cores, parts in sorted(found.items())}
