"""What functions of one host cost in chains beyond what each shows alone: two numbers, learned from a few runs.

The function that does nothing takes what all have in common, but not all of it, or a little more: others read packets,
which behind another function are in the core's cache. And behind a function that changes packets, headers are read
again. Both are costs per packet, so they say more about chains that were not run than a factor does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from profiles.arrays import Floats

SOURCE_SPREAD, CHANGED_SPREAD = 0.15, 0.3
"""Standard deviations of both that are assumed before any run."""
SCATTER = 0.06
"""Of the logarithm of measured over predicted; larger differences count less than their squares."""


@dataclass(frozen=True)
class CommonCosts:
    """Costs in units of the cost of the NF that does nothing."""

    source: float = 1.0
    """What all NFs have in common; a chain on one core has it once."""
    changed: float = 0.0
    """What an NF costs more behind one that changes packets."""


AS_MEASURED = CommonCosts()
"""Without runs of chains."""


def fitted_costs(differences: Callable[[CommonCosts], Floats]) -> CommonCosts:
    """The most probable costs.

    Parameters
    ----------
    differences
        Logarithm of measured over predicted of each run with given costs, shape (runs,).
    """

    def costs(at: Floats) -> CommonCosts:
        return CommonCosts(1 + SOURCE_SPREAD * float(at[0]), CHANGED_SPREAD * float(at[1]))

    def residuals(at: Floats) -> Floats:
        scaled = differences(costs(at)) / SCATTER
        robust = np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled**2) - 1))
        return np.concatenate([robust, at])

    limits = (np.array([-4.0, 0.0]), np.array([4.0, 4.0]))
    return costs(np.asarray(least_squares(residuals, np.array([0.0, 0.1]), bounds=limits).x))
