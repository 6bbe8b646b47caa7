"""Branch and bound over the options of all chains: the best plan, and a bound that proves how good it is.

Each node allows some options of each chain; its linear relaxation bounds what they can give. A node whose relaxation
mixes options is split in two, by the cores of one chain in one pool or by the site of one NF.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from placer.rack.chain import TableId
from placer.rack.layout_arrays import CAP_TOLERANCE
from placer.rack.options import Options, turn_counts
from placer.rack.rack import Rack
from placer.rack.sharing import has_room
from placer.rack.stages.stage_oracles import BlockStages, StageNeeds, StageOracle, conflict
from profiles.arrays import Bools, Floats, Ints
from profiles.linear_programs import linprog

WHOLE_WEIGHT = 1e-7  # how far a weight may be from 0 or 1
RELATIVE_GAP = 1e-9


@dataclass(frozen=True)
class Found:
    """What a search found.

    `marginal`, `bound`: of the plan, and of every plan, Mbps; the bound is minus infinity where no plan is possible.
    """

    chosen: tuple[int, ...] | None  # per chain the index of its option; None without a plan
    rates: Floats  # per chain, Mbps; shape (chains,)
    marginal: float
    bound: float
    nodes: int  # relaxations that were solved

    @property
    def proven(self) -> bool:
        return self.bound <= self.marginal + RELATIVE_GAP * max(abs(self.marginal), 1.0)


@dataclass(order=True)
class _Node:
    negative_bound: float
    number: int
    allowed: tuple[Bools, ...] = field(compare=False)
    mixture: Mixture = field(compare=False)


@dataclass
class Search:
    """Finds the best choice of options.

    `counted`: per chain the NFs that options count as a need where they are on the switch; None: all. Where tables with
    others do not fit, the search ends, and `uncounted` has these NFs.
    """

    rack: Rack
    options: Sequence[Options]
    stages: StageOracle
    time_limit: float = 60.0  # seconds after which the best plan and the bound so far are returned
    counted: Sequence[frozenset[int]] | None = None

    def __post_init__(self) -> None:
        self.until = time.monotonic() + self.time_limit
        self.relaxation = MixtureProgram(self.rack, self.options, self._stage_needs())
        self.turns = [turn_counts(options, self.rack) for options in self.options]
        self.nodes = 0
        self.uncounted: frozenset[TableId] = frozenset()
        self.numbers = count()
        self.best: tuple[float, tuple[int, ...], Floats] | None = None

    def _stage_needs(self) -> StageNeeds | None:
        """What counted tables of each option take of parts of the stages, where these are known to bound them."""
        if not isinstance(self.stages, BlockStages) or self.rack.switch.usable_stages is None:
            return None
        tables = [options.on_switch for options in self.options]
        if self.counted is not None:
            for on_switch, counted in zip(tables, self.counted, strict=True):
                on_switch[:, [nf for nf in range(on_switch.shape[1]) if nf not in counted]] = False
        return self.stages.needs([options.chain for options in self.options], tables)

    def run(self) -> Found:
        """Search until the best plan is proven, or the time is over."""
        everything = tuple(np.ones(len(option), dtype=bool) for option in self.options)
        waiting: list[_Node] = []
        self._take_all_on_switch()
        self._add(waiting, everything)
        while waiting and not self.uncounted and time.monotonic() < self.until:
            node = heapq.heappop(waiting)
            if not self._may_improve(-node.negative_bound):
                waiting = []
                break
            for allowed in self._split(node):
                self._add(waiting, allowed)
        bounds = [-node.negative_bound for node in waiting]
        return self._result(max(bounds, default=-np.inf))

    def _result(self, open_bound: float) -> Found:
        if self.best is None:
            return Found(None, np.empty(0), -np.inf, open_bound, self.nodes)
        marginal, chosen, rates = self.best
        return Found(chosen, rates, marginal, max(open_bound, marginal), self.nodes)

    def _may_improve(self, bound: float) -> bool:
        return self.best is None or bound > self.best[0] + RELATIVE_GAP * max(abs(self.best[0]), 1.0)

    def _add(self, waiting: list[_Node], allowed: tuple[Bools, ...]) -> None:
        """Solve a node; keep it if it may hold a better plan than the best so far."""
        while mixture := self._solve(allowed):
            if not self._may_improve(mixture.bound):
                return
            chosen = tuple(int(weights.argmax()) for weights in mixture.weights)
            whole = all(weights.max() > 1 - WHOLE_WEIGHT for weights in mixture.weights)
            tables = self.tables(chosen)
            fits = self.stages.fits(tables)
            if not fits and self.nodes == 1:
                self._dive(allowed, mixture)
            if not fits and time.monotonic() < self.until and self._cut(tables):
                continue
            keeps = fits and self.relaxation.carries_least(chosen) and self._has_turns(chosen)
            if whole and keeps:
                self._take(mixture.bound, chosen, mixture.rates)
                return
            # one that has tables which do not count stands for others with fewer of them
            counts = self.counted is None or all(nf in self.counted[at] for at, nf in tables)
            if all(mask.sum() == 1 for mask in allowed) and not self.uncounted and (fits or counts):
                return
            if keeps:
                self._try(chosen)
            heapq.heappush(waiting, _Node(-mixture.bound, next(self.numbers), allowed, mixture))
            return

    def _cut(self, tables: frozenset[TableId]) -> bool:
        """Forbid a part of tables that does not fit.

        False if it was forbidden before, where a mixture keeps it by halves, or where tables are not counted.
        """
        cut = conflict(self.stages, tables)
        if self.counted is not None and (new := {(at, nf) for at, nf in cut if nf not in self.counted[at]}):
            self.uncounted |= new
            return False
        if cut in self.relaxation.cuts:
            return False
        self.relaxation.cuts.append(cut)
        return True

    def _has_turns(self, chosen: Sequence[int]) -> bool:
        """Whether subgroups that take turns have enough cores: shares of cores may add up to less."""
        counts = [
            (pool.cores, sum(turns[number][row] for turns, row in zip(self.turns, chosen, strict=True)))
            for number, pool in enumerate(self.rack.pools)
            if pool.is_shared
        ]
        return all(has_room(np.asarray(turns), cores) for cores, turns in counts)

    def _solve(self, allowed: Sequence[Bools]) -> Mixture | None:
        self.nodes += 1
        return self.relaxation.solve(allowed)

    def tables(self, chosen: Sequence[int]) -> frozenset[TableId]:
        """The NFs on the switch, by chain and NF."""
        return self._tables_of(dict(enumerate(chosen)))

    def _tables_of(self, chosen: Mapping[int, int]) -> frozenset[TableId]:
        return frozenset(
            (chain, int(nf))
            for chain, row in chosen.items()
            for nf in np.flatnonzero(self.relaxation.on_switch[chain][row])
        )

    def _try(self, chosen: tuple[int, ...]) -> None:
        """Take a rounded mixture as a plan, if it is one."""
        allowed = []
        for options, row in zip(self.options, chosen, strict=True):
            allowed.append(np.zeros(len(options), dtype=bool))
            allowed[-1][row] = True
        if mixture := self._solve(allowed):
            self._take(mixture.bound, chosen, mixture.rates)

    def _dive(self, allowed: Sequence[Bools], mixture: Mixture) -> None:
        """Look for a plan chain by chain: fix what the mixture has most of, and solve again for the others.

        What does not fit the switch beside the chains that are fixed is left out, with all that has its tables and
        more.
        """
        parts, fixed = [mask.copy() for mask in allowed], dict[int, int]()
        while len(fixed) < len(parts) and time.monotonic() < self.until:
            open_chains = [chain for chain in range(len(parts)) if chain not in fixed]
            chain = max(open_chains, key=lambda number: float(mixture.weights[number].max()))
            row, on_switch = int(mixture.weights[chain].argmax()), self.relaxation.on_switch[chain]
            if self.stages.fits(self._tables_of(fixed | {chain: row})):
                fixed[chain] = row
                parts[chain] = np.arange(len(parts[chain])) == row
            else:
                parts[chain] &= (on_switch < on_switch[row]).any(axis=1)
            if (found := self._solve(parts)) is None:
                return
            mixture = found
        chosen = tuple(fixed.get(chain, -1) for chain in range(len(parts)))
        if len(fixed) == len(parts) and self.relaxation.carries_least(chosen) and self._has_turns(chosen):
            self._take(mixture.bound, chosen, mixture.rates)

    def _take_all_on_switch(self) -> None:
        """Take the plan with all NFs on the switch, if it fits.

        It needs nothing else, so none is better. It alone may use the stages for encapsulation: parts of its tables may
        not fit, and be cut off, where all of them do.
        """
        rows = [np.flatnonzero(on_switch.all(axis=1)) for on_switch in self.relaxation.on_switch]
        if all(len(row) for row in rows):
            chosen = tuple(int(row[0]) for row in rows)
            if self.stages.fits(self.tables(chosen)):
                rates = np.array([one.rate[row] for one, row in zip(self.options, chosen, strict=True)])
                self._take(float((rates - self.relaxation.least).sum()), chosen, rates)

    def _take(self, marginal: float, chosen: tuple[int, ...], rates: Floats) -> None:
        if self.best is None or marginal > self.best[0]:
            self.best = (marginal, chosen, rates)

    def _split(self, node: _Node) -> list[tuple[Bools, ...]]:
        """Two parts of a node that share no option of one chain, such that its mixture is in neither."""
        mixed = [
            float(weights.max()) if mask.sum() > 1 else np.inf
            for weights, mask in zip(node.mixture.weights, node.allowed, strict=True)
        ]
        chain = int(np.argmin(mixed))
        first = _first_part(self.options[chain], node.mixture.weights[chain])
        parts = []
        for part in (first, ~first):
            allowed = list(node.allowed)
            allowed[chain] = allowed[chain] & part
            parts.append(tuple(allowed))
        return parts


def _first_part(options: Options, weights: Floats) -> Bools:
    """Options on one side of a split that separates those with weight: by cores of a pool, else by sites."""
    used = np.flatnonzero(weights > WHOLE_WEIGHT)
    cores = options.cores[used]
    spread = cores.max(axis=0) - cores.min(axis=0)
    if spread.max(initial=0) > 0:
        pool = int(spread.argmax())
        mean = float(weights[used] @ cores[:, pool] / weights[used].sum())
        limit = min(max(np.floor(mean), cores[:, pool].min()), cores[:, pool].max() - 1)
        return np.asarray(options.cores[:, pool] <= limit)
    sites = options.layouts.sites[options.layout]
    differing = np.flatnonzero((sites[used] != sites[used[0]]).any(axis=0))
    if len(differing):
        nf = int(differing[0])
        return np.asarray(sites[:, nf] == sites[used[0], nf])
    return np.asarray(np.arange(len(options)) == used[0])


# The linear relaxation of a plan: chains take mixtures of their options, within what the rack has.


@dataclass(frozen=True)
class Mixture:
    """A solution of the relaxation."""

    bound: float  # of the marginal throughput (rates beyond the least ones), Mbps, for every plan within the relaxation
    weights: tuple[Floats, ...]  # per chain the weight of each option; shape (options,) each
    rates: Floats


@dataclass
class MixtureProgram:
    """The linear program over options; each option gives two columns, at the least rate and at its largest."""

    rack: Rack
    options: Sequence[Options]  # per chain
    stages: StageNeeds | None = None  # None: nothing bounds tables but cuts
    cuts: list[frozenset[TableId]] = field(default_factory=list)  # sets of NFs that do not fit the switch together

    def __post_init__(self) -> None:
        rack = self.rack
        cores = [float(pool.cores * rack.core_parts) for pool in rack.pools]
        mbps = [float(nic.mbps) * (1 + CAP_TOLERANCE) for nic in rack.nics for _ in ("in", "out")]
        blocks: Sequence[float] = [] if self.stages is None else self.stages.room
        self.limits = np.array([*cores, *mbps, *blocks])
        self.least = np.array([float(option.chain.slo.t_min_mbps) for option in self.options])
        self.on_switch = [options.on_switch.astype(np.float64) for options in self.options]
        self.owners = np.repeat(np.arange(len(self.options)), [len(options) for options in self.options])
        rates = np.concatenate([options.rate for options in self.options])
        self.gains: Floats = np.maximum(rates - self.least[self.owners], 0.0)
        self.uses = [self._uses_of(number) for number in range(len(self.options))]

    def _uses_of(self, number: int) -> tuple[Floats, Floats]:
        """What each option uses of each limit at the least rate, and per Mbps beyond; shape (options, limits) each."""
        options = self.options[number]
        shares, cores = options.nic_shares, options.cores.astype(np.float64)
        blocks = np.zeros((len(options), 0)) if self.stages is None else self.stages.blocks[number]
        at_least = np.hstack([cores, shares * self.least[number], blocks])
        return at_least, np.hstack([0.0 * cores, shares, 0.0 * blocks])

    @cached_property
    def _columns(self) -> Floats:
        """What all options use of each limit, at the least and at the largest rate; shape (limits, 2 * options)."""
        at_least, beyond = (np.vstack(uses).T for uses in zip(*self.uses, strict=True))
        return np.hstack([at_least, at_least + beyond * self.gains])

    def solve(self, allowed: Sequence[Bools]) -> Mixture | None:
        """The best mixture of allowed options; None where there is none."""
        if not all(mask.any() for mask in allowed):
            return None
        rows = np.flatnonzero(np.concatenate(allowed))
        gains, owners = self.gains[rows], self.owners[rows]
        cuts = self._cut_rows(allowed)
        found = largest_gain(
            np.concatenate([np.zeros(len(rows)), gains]),
            np.vstack([self._columns[:, np.concatenate([rows, rows + len(self.gains)])], np.hstack([cuts, cuts])]),
            np.concatenate([self.limits, [len(cut) - 1.0 for cut in self.cuts]]),
            np.tile(owners, 2),
            np.ones(len(allowed)),
        )
        if found is None:
            return None
        low, high = np.split(found.weights, 2)
        weights = np.zeros(len(self.gains))
        weights[rows] = low + high
        rates: Floats = self.least + np.bincount(owners, high * gains, len(allowed)).astype(np.float64)
        ends = np.cumsum([len(mask) for mask in allowed])[:-1]
        return Mixture(found.gain, tuple(np.split(weights, ends)), rates)

    def carries_least(self, chosen: Sequence[int]) -> bool:
        """Whether limits hold at the least rates of an option of each chain; a solver's tolerance is wider."""
        used = np.sum([uses[0][row] for uses, row in zip(self.uses, chosen, strict=True)], axis=0)
        return bool((used <= self.limits).all())

    def _cut_rows(self, allowed: Sequence[Bools]) -> Floats:
        """How many NFs of each cut an option has on the switch: one less than all of them, over all chains, at most."""
        within = [np.zeros((len(self.cuts), on_switch.shape[1])) for on_switch in self.on_switch]
        for number, cut in enumerate(self.cuts):
            for chain, nf in cut:
                within[chain][number, nf] = 1.0
        parts = zip(within, self.on_switch, allowed, strict=True)
        return np.hstack([cut_nfs @ on_switch[mask].T for cut_nfs, on_switch, mask in parts])


# Linear programs as the relaxations here have them: each chain takes one of its columns, and limits are shared.


INFEASIBLE_STATUS = 2  # the status of a solver that has proven that there is no solution
SIFTED_COLUMNS = 4_000  # a program with more columns is solved over a part of them at a time
ADDED_COLUMNS = 200  # so many at most are added in a step
MOST_SIFTINGS = 100
LEAST_IMPROVEMENT = 1e-6  # of gains, Mbps


@dataclass(frozen=True)
class Solved:
    """A solution."""

    gain: float  # the largest sum of gains
    weights: Floats  # of each column; shape (columns,)


def largest_gain(gains: Floats, uses: Floats, limits: Floats, owners: Ints, sizes: Floats) -> Solved | None:
    """The best mixture of columns; None if there is none within the limits.

    `gains`: of each column; shape (columns,). `uses`: of each limit by each column; shape (limits, columns). `limits`:
    shape (limits,). `owners`: who takes each column; shape (columns,). `sizes`: how many columns each owner takes;
    shape (owners,). Raises ArithmeticError when the solver gives up: then nothing is known, not even that there is no
    mixture.
    """
    uses, limits = uses / np.where(limits > 0, limits, 1.0)[:, None], np.where(limits > 0, 1.0, limits)
    if len(gains) > SIFTED_COLUMNS and (sifted := _sift(gains, uses, limits, owners, sizes)):
        return sifted
    found = _largest(gains, uses, limits, owners, sizes)
    if found.status == INFEASIBLE_STATUS:
        return None
    return Solved(float(gains @ found.x), np.asarray(found.x, dtype=np.float64))


def _largest(gains: Floats, uses: Floats, limits: Floats, owners: Ints, sizes: Floats) -> Any:
    places = (owners, np.arange(len(owners)))
    once: Any = csr_array((np.ones(len(owners)), places), shape=(len(sizes), len(owners)))
    found = linprog(-gains, A_ub=uses, b_ub=limits, A_eq=once, b_eq=sizes, method="highs")
    if found.status != INFEASIBLE_STATUS and (found.status != 0 or found.x is None):
        raise ArithmeticError(f"a linear program was not solved: {found.message}")
    return found


def _sift(gains: Floats, uses: Floats, limits: Floats, owners: Ints, sizes: Floats) -> Solved | None:
    """The best mixture, solved over a part of the columns, to which those of negative reduced cost are added.

    None if the first part has no mixture, or there are too many steps.
    """
    order = np.lexsort((uses.sum(axis=0), owners))
    first = np.searchsorted(owners[order], np.arange(len(sizes)))
    active = [order[begin : begin + ADDED_COLUMNS // 4] for begin in first]  # what needs little
    order = np.lexsort((-gains, owners))
    active += [order[begin : begin + ADDED_COLUMNS // 4] for begin in first]  # what gives much
    part = np.unique(np.concatenate(active))
    for _ in range(MOST_SIFTINGS):
        found = _largest(gains[part], uses[:, part], limits, owners[part], sizes)
        if found.status == INFEASIBLE_STATUS:
            return None
        reduced = gains + found.ineqlin.marginals @ uses + found.eqlin.marginals[owners]
        reduced[part] = 0.0
        wanted = np.argsort(-reduced, kind="stable")[:ADDED_COLUMNS]
        wanted = wanted[reduced[wanted] > LEAST_IMPROVEMENT]
        if not len(wanted):
            weights = np.zeros(len(gains))
            weights[part] = found.x
            return Solved(float(gains @ weights), weights)
        part = np.union1d(part, wanted)
    return None
