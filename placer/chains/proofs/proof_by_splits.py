"""Proofs of bounds, for certificates: prices, in a tree of splits where one set of prices does not prove enough.

`placer verify` checks a proof without this code. So a proof says nothing of dominated options: its splits hold for all
layouts and all allocations of cores.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from placer.chains.chain import Chain
from placer.chains.layout import SWITCH
from placer.chains.options import Options, all_options, undominated_rows
from placer.chains.proofs.prices import Priced, PricedWays, PriceProgram
from placer.chains.proofs.shared_limits import EMPTY, BoundProof, SharedLimits, proof_document
from placer.chains.rack import Rack
from placer.chains.search.fleet_bound import same_but_for_names
from placer.chains.stages.block_stages import BlockStages, TableId, conflict

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Document = dict[str, object]

USED = 1e-7
"""The least weight that counts in a mixture."""


def proof_by_splits(chains: Sequence[Chain], rack: Rack, enough: float | None, seconds: float) -> BoundProof:
    """A proof from a tree of splits, in which every server has prices of its own.

    Parameters
    ----------
    enough
        Mbps; a bound below is not looked for. None: that there is no plan is to be proven.
    seconds
        Once all ways are listed; after them the tree ends as it is, with the bound that it proves.

    Raises
    ------
    ArithmeticError
        When the solver gives up.
    """
    return _Tree(chains, rack, enough).proof(seconds)


@dataclass(order=True)
class _Part:
    """A part of the plans: its node, the ways that it allows; and what prices of a larger part prove of it."""

    negative_bound: float
    order: int
    node: int = field(compare=False)
    allowed: tuple[Bools, ...] = field(compare=False)
    prices: Document = field(compare=False)


class _Tree:
    def __init__(self, chains: Sequence[Chain], rack: Rack, enough: float | None) -> None:
        self.chains, self.rack = chains, rack
        self.gain = enough is not None
        self.enough = EMPTY if enough is None else enough
        self.machines = SharedLimits(rack, np.ones(len(rack.servers), dtype=np.int64))
        self.stages = BlockStages(rack, chains)
        known: dict[object, tuple[Options, PricedWays]] = {}
        for chain in chains:
            same = same_but_for_names(chain)
            if same not in known:
                options = all_options(chain, rack)
                known[same] = options, self._ways(options)
        each = [known[same_but_for_names(chain)] for chain in chains]
        self.options, self.ways = [one for one, _ in each], [replace(one, pool=list(one.pool)) for _, one in each]
        self.nodes: list[Document] = [{}]
        self.numbers = count()
        self.waiting: list[_Part] = []
        self.left: list[float] = []

    def _ways(self, options: Options) -> PricedWays:
        chain = options.chain
        of_nf = np.array([self.rack.costs[nf.nf].switch_blocks or 0 for nf in chain.nfs])
        blocks: Ints = (options.on_switch * of_nf).sum(axis=1).astype(np.int64)
        least, shares = float(chain.slo.t_min_mbps), options.nic_shares
        ways = self.machines.priced(1, least, options.rate, options.cores, shares, blocks, options.on_switch)
        ways.pool[:] = undominated_rows(options, self.rack).tolist()
        return ways

    def proof(self, seconds: float) -> BoundProof:
        """Split parts until each is proven, or the time is over."""
        until = time.monotonic() + seconds
        if not all(map(len, self.ways)):
            return BoundProof(None, self._written([{"prices": {"gain": 0}}], []))
        self.program = PriceProgram(self.ways, self.machines.limits)
        everything = tuple(np.ones(len(one), dtype=bool) for one in self.ways)
        most = sum(float((one.largest - one.least).max()) for one in self.ways)
        self.waiting.append(_Part(-most, next(self.numbers), 0, everything, {"gain": 1}))
        while self.waiting and time.monotonic() < until:
            self._prove(heapq.heappop(self.waiting))
        if not self.gain and (self.waiting or self.left):
            priced = self.program.best(everything, gain=True, enough=-np.inf)
            leaf = self.machines.written(priced.prices, gain=True)
            return BoundProof(priced.bound, self._written([{"prices": leaf}], self.program.cuts))
        for part in self.waiting:
            self.nodes[part.node] = {"prices": part.prices}
            self.left.append(-part.negative_bound)
        return BoundProof(max(self.left, default=None), self._written(self.nodes, self.program.cuts))

    def _written(self, nodes: list[Document], cuts: Sequence[frozenset[TableId]]) -> Document:
        return proof_document("each", cuts, nodes, self.chains)

    def _prove(self, part: _Part) -> None:
        """Price a part, and split it if its prices do not prove enough."""
        if not all(mask.any() for mask in part.allowed):
            self.nodes[part.node] = {"prices": {"gain": 0}}
            return
        priced = self._priced(part)
        leaf = self.machines.written(priced.prices, gain=self.gain)
        if priced.bound > self.enough:
            split = _split_of_mixture(self.options, priced.weights) or _split_of_ways(self.options, part.allowed)
            if split is not None:
                self._divide(part, split, priced.bound, leaf)
                return
        self.nodes[part.node] = {"prices": leaf}
        if self.gain or priced.bound > self.enough:
            self.left.append(priced.bound)

    def _priced(self, part: _Part) -> Priced:
        """Prices that prove enough, or of which no cut is left out."""
        while True:
            priced = self.program.best(part.allowed, gain=self.gain, enough=self.enough)
            if priced.bound > self.enough and not self.gain:
                priced = self.program.best_single(part.allowed, priced)
            if priced.bound <= self.enough or not self._cut(priced):
                return priced

    def _cut(self, priced: Priced) -> bool:
        """Forbid tables that do not fit together, if a mixture has them all; whether that is new."""
        chosen = [max(weights, key=lambda way: weights[way]) for weights in priced.weights]
        tables = frozenset(
            (chain, int(nf))
            for chain, (options, row) in enumerate(zip(self.options, chosen, strict=True))
            for nf in np.flatnonzero(options.layouts.sites[options.layout[row]] == SWITCH)
        )
        if self.stages.fits(tables) or (cut := conflict(self.stages, tables)) in self.program.cuts:
            return False
        self.program.cuts.append(cut)
        return True

    def _divide(self, part: _Part, split: _Split, bound: float, prices: Document) -> None:
        options, at, chain = self.options[split.chain], len(self.nodes), split.chain
        first = split.first(options)
        self.nodes += [{}, {}]
        self.nodes[part.node] = {"split": split.written(self.chains[chain], self.rack), "parts": [at, at + 1]}
        for node, side in ((at, first), (at + 1, ~first)):
            inside = (*part.allowed[:chain], part.allowed[chain] & side, *part.allowed[chain + 1 :])
            heapq.heappush(self.waiting, _Part(-bound, next(self.numbers), node, inside, prices))


@dataclass(frozen=True)
class _Split:
    """Ways with at most so many cores of a device, or ways with an NF on a site; and all others."""

    chain: int
    device: int
    at_most: int | None = None
    nf: int | None = None

    def first(self, options: Options) -> Bools:
        """The ways of the first part; shape (options,)."""
        if self.at_most is not None:
            return np.asarray(options.cores[:, self.device] <= self.at_most)
        return np.asarray(options.layouts.sites[options.layout, self.nf] == self.device)

    def written(self, chain: Chain, rack: Rack) -> Document:
        on = "switch" if self.device == SWITCH else rack.devices[self.device].name
        what = {"at_most": self.at_most} if self.nf is None else {"nf": chain.nfs[self.nf].id}
        return {"chain": chain.name, "on": on, **what}


def _split_of_mixture(options: Sequence[Options], weights: Sequence[dict[int, float]]) -> _Split | None:
    """A split of the chain that is mixed most, such that its mixture is in neither part; None if none is mixed."""
    used = [{way: weight for way, weight in one.items() if weight > USED} for one in weights]
    mixed = [number for number, one in enumerate(used) if len(one) > 1]
    if not mixed:
        return None
    chain = min(mixed, key=lambda number: max(used[number].values()))
    ways, parts = np.array(list(used[chain])), np.array(list(used[chain].values()))
    cores = options[chain].cores[ways]
    spread = cores.max(axis=0) - cores.min(axis=0)
    if spread.max(initial=0) > 0:
        device = int(spread.argmax())
        mean = float(parts @ cores[:, device] / parts.sum())
        at_most = min(max(int(mean), int(cores[:, device].min())), int(cores[:, device].max()) - 1)
        return _Split(chain, device, at_most=at_most)
    sites = options[chain].layouts.sites[options[chain].layout[ways]]
    differing = np.flatnonzero((sites != sites[0]).any(axis=0))
    return _Split(chain, int(sites[0, differing[0]]), nf=int(differing[0])) if len(differing) else None


def _split_of_ways(options: Sequence[Options], allowed: Sequence[Bools]) -> _Split | None:
    """A split of any ways, for where a mixture is of one way each, and misses a limit by less than solvers notice."""
    for chain, (one, mask) in enumerate(zip(options, allowed, strict=True)):
        ways = np.flatnonzero(mask)
        sites = one.layouts.sites[one.layout[ways]]
        for nf in np.flatnonzero((sites != sites[0]).any(axis=0)):
            return _Split(chain, int(sites[0, nf]), nf=int(nf))
        for device in np.flatnonzero((one.cores[ways] != one.cores[ways[0]]).any(axis=0)):
            return _Split(chain, int(device), at_most=int(one.cores[ways, device].min()))
    return None
