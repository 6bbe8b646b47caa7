"""The end of a trace of known length: prices for the last arrivals, given the NICs that are open.

While many arrivals are to come, an open NIC will be filled, and what its free capacity is worth hardly depends on how
many there are. Towards the end it does: capacity for which no arrival is left is worth nothing. Then the pattern
program also has the open NICs, which may become any pattern that they can reach at no cost, and asks for no more slots
than arrivals that are expected. It is solved anew as arrivals come (Jasin and Kumar, "A re-solving heuristic with
bounded revenue loss for network revenue management", Mathematics of Operations Research 37, 2012; for bin packing
Banerjee and Freund, "Uniform loss algorithms for online stochastic decision-making with applications to bin packing",
2020).

How many arrivals a trace has is known to those who have it; which ones come is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placer.policy.kernels import Floats
from placer.policy.pattern_table import PatternTable

CLOSING = 80
"""Arrivals before the end from which open NICs count."""

CLOSING_STEP = 8
"""Arrivals after which prices are computed again."""

SAMPLES = 2


class OpenClass(NamedTuple):
    """NICs that hold one pattern and can become the same patterns.

    Parameters
    ----------
    pattern
        Its number.
    reachable
        Numbers of the patterns that they can become, itself left out.
    nics
        How many there are.
    """

    pattern: int
    reachable: NDArray[np.intp]
    nics: int


def closing_prices(
    table: PatternTable, level: NDArray[np.intp], classes: Sequence[OpenClass], drawn: Floats
) -> Floats | None:
    """The price of a slot by the level that it meets, in NICs, shape (workloads, levels); None where none is found.

    Parameters
    ----------
    table
        All patterns of the kind.
    level
        The strictest level that a workload meets in each pattern, -1 where none, shape (patterns, workloads).
    classes
        The open NICs.
    drawn
        The arrivals to come by workload and level, shape (workloads, levels).
    """
    from scipy.optimize import linprog

    column, step = np.nonzero(drawn)
    if not len(column):
        return None
    needed = drawn[:, ::-1].cumsum(axis=1)[:, ::-1][column, step]
    meets = level[:, column] >= step
    slots = table.counts[:, column] * meets
    blocks, owners = [slots[1:]], [np.full(len(slots) - 1, -1)]
    for number, one in enumerate(classes):
        added = table.counts[one.reachable][:, column] - table.counts[one.pattern][column]
        blocks.append(added * meets[one.reachable])
        owners.append(np.full(len(one.reachable), number))
    owner = np.concatenate(owners)
    cost = (owner < 0).astype(np.float64)
    taken = (owner[None, :] == np.arange(len(classes))[:, None]).astype(np.float64)
    limits = np.vstack([-np.concatenate(blocks).T.astype(np.float64), taken])
    bounds = np.concatenate([-needed, [float(one.nics) for one in classes]])
    solved = linprog(cost, A_ub=limits, b_ub=bounds, method="highs", options={"presolve": False})
    if solved.x is None:
        return None
    prices = np.zeros(drawn.shape)
    prices[column, step] = -solved.ineqlin.marginals[: len(column)]
    return np.asarray(prices.cumsum(axis=1), dtype=np.float64)
