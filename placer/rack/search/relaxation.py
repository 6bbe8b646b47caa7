"""The linear relaxation of a plan: chains take mixtures of their options, within what the rack has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from placer.rack.layouts import CAP_TOLERANCE
from placer.rack.options import Options
from placer.rack.rack import Rack
from placer.rack.stages.block_stages import TableId
from profiles.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class Mixture:
    """A solution of the relaxation.

    Parameters
    ----------
    bound
        Of the marginal throughput (rates beyond the least ones), Mbps, for every plan within the relaxation.
    weights
        Per chain the weight of each option; shape (options,) each.
    """

    bound: float
    weights: tuple[Floats, ...]
    rates: Floats


@dataclass
class MixtureProgram:
    """The linear program over options; each option gives two columns, at the least rate and at its largest.

    Parameters
    ----------
    options
        Per chain.
    cuts
        Sets of NFs that do not fit the switch together.
    """

    rack: Rack
    options: Sequence[Options]
    cuts: list[frozenset[TableId]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rack = self.rack
        cores = [float(device.cores) for device in rack.devices]
        mbps = [float(server.nic_mbps) * (1 + CAP_TOLERANCE) for server in rack.servers for _ in ("in", "out")]
        self.limits = np.array(cores + mbps)
        self.least = np.array([float(option.chain.slo.t_min_mbps) for option in self.options])
        self.uses = [self._uses_of(one, least) for one, least in zip(self.options, self.least, strict=True)]

    def _uses_of(self, options: Options, least: float) -> tuple[Floats, Floats]:
        """What each option uses of each limit at the least rate, and per Mbps beyond; shape (options, limits) each."""
        shares = options.nic_shares
        at_least = np.hstack([options.cores, shares * least])
        return at_least, np.hstack([np.zeros_like(options.cores, dtype=np.float64), shares])

    def solve(self, allowed: Sequence[Bools]) -> Mixture | None:
        """The best mixture of allowed options; None where there is none."""
        rows = [np.flatnonzero(mask) for mask in allowed]
        if any(len(row) == 0 for row in rows):
            return None
        sizes = [len(row) for row in rows]
        chain_of = np.repeat(np.arange(len(rows)), sizes)
        gains = np.concatenate([one.rate[row] for one, row in zip(self.options, rows, strict=True)])
        gains = np.maximum(gains - self.least[chain_of], 0.0)
        at_least = np.vstack([uses[0][row] for uses, row in zip(self.uses, rows, strict=True)])
        beyond = np.vstack([uses[1][row] for uses, row in zip(self.uses, rows, strict=True)]) * gains[:, None]
        cut_rows, cut_limits = self._cut_rows(rows)
        uses = np.vstack([np.hstack([at_least.T, (at_least + beyond).T]), cut_rows])
        columns = len(chain_of)
        found = largest_gain(
            np.concatenate([np.zeros(columns), gains]),
            uses,
            np.concatenate([self.limits, cut_limits]),
            np.tile(chain_of, 2),
            np.ones(len(rows)),
        )
        if found is None:
            return None
        low, high = found.weights[:columns], found.weights[columns:]
        weights = []
        for chain, (one, row) in enumerate(zip(self.options, rows, strict=True)):
            weight = np.zeros(len(one))
            weight[row] = (low + high)[chain_of == chain]
            weights.append(weight)
        rates: Floats = self.least + np.bincount(chain_of, high * gains, len(rows)).astype(np.float64)
        return Mixture(found.gain, tuple(weights), rates)

    def carries_least(self, chosen: Sequence[int]) -> bool:
        """Whether limits hold at the least rates of an option of each chain; a solver's tolerance is wider."""
        used = np.sum([uses[0][row] for uses, row in zip(self.uses, chosen, strict=True)], axis=0)
        return bool((used <= self.limits).all())

    def _cut_rows(self, rows: Sequence[NDArray[np.int64]]) -> tuple[Floats, Floats]:
        """Each cut: of a set of NFs that do not fit together, at least one is not on the switch."""
        columns = sum(map(len, rows))
        matrix = np.zeros((len(self.cuts), columns))
        ends = np.cumsum([0, *map(len, rows)])
        for number, cut in enumerate(self.cuts):
            for chain, nf in cut:
                matrix[number, ends[chain] : ends[chain + 1]] += self.options[chain].on_switch[rows[chain], nf]
        return np.hstack([matrix, matrix]), np.array([len(cut) - 1.0 for cut in self.cuts])


# Linear programs as the relaxations here have them: each chain takes one of its columns, and limits are shared.


INFEASIBLE_STATUS = 2
"""The status of a solver that has proven that there is no solution."""


@dataclass(frozen=True)
class Solved:
    """A solution.

    Parameters
    ----------
    gain
        The largest sum of gains.
    weights
        Of each column; shape (columns,).
    """

    gain: float
    weights: Floats


def largest_gain(gains: Floats, uses: Floats, limits: Floats, owners: Ints, sizes: Floats) -> Solved | None:
    """The best mixture of columns; None if there is none within the limits.

    Parameters
    ----------
    gains
        Of each column; shape (columns,).
    uses
        Of each limit by each column; shape (limits, columns).
    limits
        Shape (limits,).
    owners
        Who takes each column; shape (columns,).
    sizes
        How many columns each owner takes; shape (owners,).

    Raises
    ------
    ArithmeticError
        When the solver gives up: then nothing is known, not even that there is no mixture.
    """
    scales = np.where(limits > 0, limits, 1.0)
    places = (owners, np.arange(len(owners)))
    once: Any = csr_array((np.ones(len(owners)), places), shape=(len(sizes), len(owners)))
    costs: Floats = -gains
    found = linprog(costs, A_ub=uses / scales[:, None], b_ub=limits / scales, A_eq=once, b_eq=sizes, method="highs")
    if found.status == INFEASIBLE_STATUS:
        return None
    if found.status != 0 or found.x is None:
        raise ArithmeticError(f"a linear program was not solved: {found.message}")
    return Solved(float(gains @ found.x), np.asarray(found.x, dtype=np.float64))
