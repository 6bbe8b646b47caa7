"""Branch and bound as in `search/branch_and_bound.py`, over plans that move at most so many NFs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from placer.chains.options import Options
from placer.chains.rack import Rack
from placer.chains.search.branch_and_bound import Search
from placer.chains.search.linear import largest_gain
from placer.chains.search.relaxation import MixtureProgram

Ints = NDArray[np.int64]
ROUNDING = 1e-6
"""By how much a solver's number may exceed a whole one that it means."""


@dataclass(frozen=True)
class MovingOptions:
    """Options of one chain with how many NFs each moves; shape of `moves` (options,)."""

    options: Options
    moves: Ints

    def at_most(self, moves: int) -> MovingOptions:
        """Those that move at most so many."""
        rows = np.flatnonzero(self.moves <= moves)
        return MovingOptions(self.options.at(rows), self.moves[rows])


class MovesProgram(MixtureProgram):
    """The relaxation with one limit more: moves."""

    def __init__(self, rack: Rack, chains: Sequence[MovingOptions], most: int) -> None:
        super().__init__(rack, [one.options for one in chains])
        self.moves = [one.moves for one in chains]
        self.limits = np.append(self.limits, float(most))
        self.uses = [
            (np.hstack([at_least, moves[:, None]]), np.hstack([beyond, 0.0 * moves[:, None]]))
            for (at_least, beyond), moves in zip(self.uses, self.moves, strict=True)
        ]

    def least_moves(self) -> int | None:
        """So many moves are needed at least, as far as the relaxation knows; None if no number is enough."""
        if any(len(moves) == 0 for moves in self.moves):
            return None
        moves = np.concatenate(self.moves).astype(np.float64)
        uses = np.vstack([uses[0][:, :-1] for uses in self.uses]).T
        owners = np.repeat(np.arange(len(self.moves)), [len(one) for one in self.moves])
        found = largest_gain(-moves, uses, self.limits[:-1], owners, np.ones(len(self.moves)))
        return None if found is None else max(ceil(-found.gain - ROUNDING), 0)


@dataclass
class SearchWithin(Search):
    """Finds the best choice of options that move at most `most` NFs together.

    Parameters
    ----------
    moves
        Per chain those of its options.
    """

    moves: Sequence[Ints] = ()
    most: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = [MovingOptions(*pair) for pair in zip(self.options, self.moves, strict=True)]
        self.relaxation = MovesProgram(self.rack, pairs, self.most)

    def _take_all_on_switch(self) -> None:
        """As without moves, where these are few enough; all options with everything on the switch move as many."""
        rows = [np.flatnonzero(one.on_switch.all(axis=1)) for one in self.options]
        if all(len(one) for one in rows):
            needed = sum(int(moves[one[0]]) for moves, one in zip(self.moves, rows, strict=True))
            if needed <= self.most:
                super()._take_all_on_switch()
