"""The best plan of a rack, or of a part of one, that moves at most so many NFs: exact, by branch and bound."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from placer.rack.chain import Chain, same_but_for_names
from placer.rack.layout_arrays import layouts_at, possible_sites
from placer.rack.options import Options, drop_dominated_options
from placer.rack.plan import SWITCH_SITE, RackPlan, Status
from placer.rack.rack import Rack
from placer.rack.replanning.moves import NEW_SITE, moves_of, sites_within
from placer.rack.search.branch_and_bound import MixtureProgram, Search, largest_gain
from placer.rack.stages.stage_oracles import StageOracle
from placer.rack.strategies.optimal import plan_found
from profiles.arrays import Ints

FEW_LAYOUTS = 5_000
"""Of one chain, which may put NFs on several servers; where there are more, it is not split over servers."""
MOVE_STEPS = (2, 6)  # numbers of moves whose layouts are looked at before all others


@dataclass(frozen=True)
class Fewest:
    """The plan with the fewest moves."""

    plan: RackPlan  # the best one of so few moves; `infeasible` or `unknown` where there is none
    moves: int  # how many it may make
    least: int  # no plan makes fewer, proven; with `infeasible`, more than there are NFs


@dataclass
class Replanning:
    """Chains with their old places on a rack."""

    chains: Sequence[Chain]
    rack: Rack
    kept: Sequence[Sequence[int]]  # per chain and NF, as `kept_sites` returns them
    stages: StageOracle  # whether NFs fit the switch, by indices of these chains
    split: bool = True  # whether chains may be on several servers however many layouts that gives

    def __post_init__(self) -> None:
        self.complete = True
        self._known: tuple[int, list[MovingOptions]] | None = None

    def fewest(self, *, first: int = 0, until: float) -> Fewest:
        """The best plan among those with the fewest moves, at least `first`.

        `until`: when to end, on the monotonic clock.
        """
        every = sum(len(sites) for sites in self.kept)
        found = Fewest(RackPlan(self.rack, Status.UNKNOWN), first, first)
        for most in sorted({min(most, every) for most in (*MOVE_STEPS, every) if most >= first}):
            found = self._fewest(found.least, most, until)
            if found.plan.chains or found.least <= most:
                break
        return found

    def _fewest(self, first: int, most: int, until: float) -> Fewest:
        needed = MovesProgram(self.rack, self._options(most), most).least_moves()
        if needed is None:
            return Fewest(RackPlan(self.rack, Status.INFEASIBLE), most, most + 1)
        least = max(needed, first)
        for moves in range(least, most + 1):
            plan = self.within(moves, until=until)
            least += plan.status is Status.INFEASIBLE and least == moves
            if plan.chains or time.monotonic() > until:
                return Fewest(plan, moves, least)
        return Fewest(RackPlan(self.rack, Status.INFEASIBLE if least > most else Status.UNKNOWN), most, least)

    def limit(self, moves: int) -> float:
        """What the marginal throughput of no plan with at most so many moves exceeds; minus infinity without any."""
        options = [option.at_most(moves) for option in self._options(moves)]
        if any(len(option.moves) == 0 for option in options):
            return float("-inf")
        mixture = MovesProgram(self.rack, options, moves).solve(
            [np.ones(len(option.moves), dtype=bool) for option in options]
        )
        return float("-inf") if mixture is None else mixture.bound

    def within(self, moves: int, *, until: float) -> RackPlan:
        """The best plan that moves at most so many NFs."""
        begin = time.perf_counter()
        options = [option.at_most(moves) for option in self._options(moves)]
        if any(len(option.moves) == 0 for option in options):
            return RackPlan(self.rack, Status.INFEASIBLE, seconds=time.perf_counter() - begin)
        search = SearchWithin(
            self.rack,
            [option.options for option in options],
            self.stages,
            max(until - time.monotonic(), 0.05),
            moves=[option.moves for option in options],
            most=moves,
        )
        seconds = time.perf_counter() - begin
        return plan_found(search.run(), search.options, self.chains, self.rack, seconds)

    def _options(self, most: int) -> list[MovingOptions]:
        """Per chain those with at most so many moves, or some more."""
        if self._known is None or self._known[0] < most:
            known: dict[object, MovingOptions] = {}
            options = []
            for chain, kept in zip(self.chains, self.kept, strict=True):
                same = (same_but_for_names(chain), tuple(kept))
                if same not in known:
                    known[same] = self._options_of(chain, kept, most)
                options.append(known[same])
            self._known = (most, options)
        return self._known[1]

    def _options_of(self, chain: Chain, kept: Sequence[int], most: int) -> MovingOptions:
        possible = possible_sites(chain, self.rack)
        if self.split or _number(possible, kept, most) <= FEW_LAYOUTS:
            sites = sites_within(chain, possible, kept, most)
        else:
            self.complete = False
            sites = np.unique(
                np.vstack(
                    [sites_within(chain, chain_layouts, kept, most) for chain_layouts in self._unsplit(possible)]
                ),
                axis=0,
            )
        layouts = layouts_at(chain, self.rack, sites)
        moves = moves_of(layouts.sites, kept)
        options = drop_dominated_options(layouts, self.rack, moves)
        return MovingOptions(options, moves[options.layout])

    def _unsplit(self, possible: Sequence[Sequence[int]]) -> list[list[list[int]]]:
        """The possible sites of a chain on each server by itself, with the switch."""
        devices = self.rack.devices
        return [
            [[site for site in sites if site == SWITCH_SITE or devices[site].server == server] for sites in possible]
            for server in range(len(self.rack.servers))
        ]


def _number(possible: Sequence[Sequence[int]], kept: Sequence[int], most: int) -> int:
    """How many assignments `sites_within` would return."""
    counts = [1]  # by number of moves
    for sites, old in zip(possible, kept, strict=True):
        stay = len(sites) if old == NEW_SITE else int(old in sites)
        go = len(sites) - stay
        longer = [*counts, 0]
        counts = [stay * count + (go * longer[moves - 1] if moves else 0) for moves, count in enumerate(longer)][
            : most + 1
        ]
    return sum(counts)


# Branch and bound as in `search/branch_and_bound.py`, over plans that move at most so many NFs.


WHOLE_TOLERANCE = 1e-6  # by how much a solver's number may exceed a whole one that it means


@dataclass(frozen=True)
class MovingOptions:
    """Options of one chain with how many NFs each moves; shape of `moves` (options,)."""

    options: Options
    moves: Ints

    def at_most(self, moves: int) -> MovingOptions:
        rows = np.flatnonzero(self.moves <= moves)
        return MovingOptions(self.options.at(rows), self.moves[rows])


class MovesProgram(MixtureProgram):
    """The relaxation with one limit more: moves."""

    def __init__(self, rack: Rack, chains: Sequence[MovingOptions], most: int) -> None:
        super().__init__(rack, [chain.options for chain in chains])
        self.moves = [chain.moves for chain in chains]
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
        owners = np.repeat(np.arange(len(self.moves)), [len(move) for move in self.moves])
        found = largest_gain(-moves, uses, self.limits[:-1], owners, np.ones(len(self.moves)))
        return None if found is None else max(ceil(-found.gain - WHOLE_TOLERANCE), 0)


@dataclass
class SearchWithin(Search):
    """Finds the best choice of options that move at most `most` NFs together."""

    moves: Sequence[Ints] = ()
    most: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = [MovingOptions(*pair) for pair in zip(self.options, self.moves, strict=True)]
        self.relaxation = MovesProgram(self.rack, pairs, self.most)

    def _take_all_on_switch(self) -> None:
        """As without moves, where these are few enough; all options with everything on the switch move as many."""
        rows = [np.flatnonzero(option.on_switch.all(axis=1)) for option in self.options]
        if all(len(row) for row in rows):
            needed = sum(int(moves[one[0]]) for moves, one in zip(self.moves, rows, strict=True))
            if needed <= self.most:
                super()._take_all_on_switch()
