"""The certificate of a plan of chains, as JSON (docs/formats/rack-certificate.md).

`placer verify` checks it without this code.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count

import numpy as np

from placer.rack.chain import Chain, TableId, same_but_for_names
from placer.rack.files.written_twins import write_chains, write_rack
from placer.rack.options import Options, all_options, find_undominated_rows, turn_counts
from placer.rack.plan import SWITCH_SITE, RackPlan, Status, answer
from placer.rack.proofs.prices import (
    EMPTY_BOUND,
    BoundProof,
    Priced,
    PricedWays,
    PriceProgram,
    SharedLimits,
    proof_document,
)
from placer.rack.rack import Rack
from placer.rack.search.fleet_bound import classes_of, merge_servers, split_options
from placer.rack.sharing import has_room
from placer.rack.stages.stage_oracles import BlockStages, StageOracle, conflict, with_blocks_of
from placer.rack.stages.tables.table_stages import StagesByWindows, TableStages
from placer.rack.strategies.optimal import FEW_LAYOUTS, FEW_SERVERS, layouts_in_all
from profiles import InputError
from profiles.arrays import Bools, Ints

CERTIFICATE_VERSION = 1
CERTIFICATE_KIND = "chains"
PROOF_TOLERANCE = 2e-9  # relative to the sum of rates: by how much a proof may miss a bound
CLAIM_KEYS = ("status", "marginal_mbps", "bound_mbps", "chains")


def certificate_of(plan: RackPlan, chains: Sequence[Chain], *, seconds: float = 60.0) -> Mapping[str, object]:
    """The certificate of a plan: its bound, or the one that can be proven.

    `seconds`: for the proof. After them, the bound may be weaker and the status less than those of the plan.
    """
    by_tables = plan.rack.stage_oracle == "tables"
    proof = _proof(replace(plan, rack=with_blocks_of(plan.rack, chains)), chains, seconds)
    claims: dict[str, object] = {key: value for key, value in answer(plan).items() if key in CLAIM_KEYS}
    claims.update(_claim(plan, chains, proof))
    if by_tables and plan.chains:
        numbers = {chain.name: number for number, chain in enumerate(chains)}
        on_switch = frozenset(
            (numbers[chain.chain.name], nf)
            for chain in plan.chains
            for nf, site in enumerate(chain.layout.sites)
            if site == SWITCH_SITE
        )
        claims["packing"] = TableStages(plan.rack, chains).packing(on_switch)
    return {
        "certificate": CERTIFICATE_VERSION,
        "kind": CERTIFICATE_KIND,
        "chains": write_chains(chains),
        "rack": write_rack(plan.rack),
        "plan": claims,
        "proof": None if proof is None else proof.document,
        **({"stages": "tables"} if by_tables else {}),
    }


def weaker_claim(plan: RackPlan, certificate: Mapping[str, object]) -> str | None:
    """A sentence, where a certificate claims less than the plan; None where it claims as much."""
    claims = certificate["plan"]
    assert isinstance(claims, Mapping)
    status, bound = claims["status"], claims["bound_mbps"]
    if status == plan.status.value and bound in (None, plan.bound_mbps):
        return None
    proven = "no bound" if bound is None else f"a bound of {bound:,.1f} Mbps"
    return f"note: the certificate says {status}, and proves {proven}"


def _claim(plan: RackPlan, chains: Sequence[Chain], proof: BoundProof | None) -> Mapping[str, object]:
    """Status and bound, as far as they are proven."""
    planned = Status.FEASIBLE if plan.chains else Status.UNKNOWN
    if proof is None:
        return {"status": planned.value, "bound_mbps": None}
    if proof.bound is None:
        return {"status": Status.INFEASIBLE.value, "bound_mbps": None}
    if plan.bound_mbps is not None and proof.bound <= plan.bound_mbps + _allowance(plan.bound_mbps, chains):
        return {"status": plan.status.value, "bound_mbps": plan.bound_mbps}
    return {"status": planned.value, "bound_mbps": proof.bound}


def _allowance(bound: float, chains: Sequence[Chain]) -> float:
    return PROOF_TOLERANCE * max(bound + sum(float(chain.slo.t_min_mbps) for chain in chains), 1.0)


def _proof(plan: RackPlan, chains: Sequence[Chain], seconds: float) -> BoundProof | None:
    """The best proof that was found in time; None without any."""
    enough = None
    if plan.status is not Status.INFEASIBLE:
        bound = plan.marginal_mbps if plan.bound_mbps is None else plan.bound_mbps
        enough = bound + _allowance(bound, chains)
    until = time.monotonic() + seconds
    found: list[BoundProof] = []
    few = len(plan.rack.servers) <= FEW_SERVERS or not plan.rack.is_simple
    try:
        if not few:
            found.append(proof_by_classes(chains, plan.rack, enough))
            if found[0].bound is None or (enough is not None and found[0].bound <= enough):
                return found[0]
        if few or layouts_in_all(chains, plan.rack) <= FEW_LAYOUTS:
            # in a tree of splits every server has prices of its own; out of time, it ends with the bound that it proves
            found.append(_Tree(chains, plan.rack, enough, until).proof(until - time.monotonic()))
    except (ArithmeticError, TimeoutError, InputError):  # the last where a chain has too many layouts
        pass  # the certificate claims what was proven until then, and the command says that it is less
    return min(found, key=lambda one: float("-inf") if one.bound is None else one.bound, default=None)


# A proof of a bound from one set of prices, where servers that differ only in their names count as one machine.


def proof_by_classes(chains: Sequence[Chain], rack: Rack, enough: float | None) -> BoundProof:
    """A proof from one set of prices, where equal servers count as one machine.

    `enough`: Mbps; a bound below is not looked for. None: that there is no plan is to be proven. Raises ArithmeticError
    when the solver gives up.
    """
    one_each, sizes = merge_servers(rack)
    machines = SharedLimits(one_each, sizes)
    classes = classes_of(chains)
    most = machines.limits[: len(one_each.devices)].astype(np.int64)
    ways = []
    for numbers in classes:
        uses = split_options(chains[numbers[0]], one_each, most)
        least = float(chains[numbers[0]].slo.t_min_mbps)
        tables = np.zeros((len(uses), 0), dtype=bool)
        ways.append(machines.price(len(numbers), least, uses.rate, uses.cores, uses.nic_shares, uses.blocks, tables))
    if any(len(way) == 0 for way in ways):
        return BoundProof(None, proof_document("together", [], [{"prices": {"gain": 0}}], chains))
    program = PriceProgram(ways, machines.limits)
    everything = [np.ones(len(way), dtype=bool) for way in ways]
    if enough is None:
        priced = program.best(everything, gain=False, enough=EMPTY_BOUND)
        if priced.bound < EMPTY_BOUND:
            leaf = machines.written(priced.prices, gain=False)
            return BoundProof(None, proof_document("together", [], [{"prices": leaf}], chains))
    priced = program.best(everything, gain=True, enough=-np.inf if enough is None else enough)
    leaf = machines.written(priced.prices, gain=True)
    return BoundProof(priced.bound, proof_document("together", [], [{"prices": leaf}], chains))


# Proofs of bounds, for certificates: prices, in a tree of splits where one set of prices does not prove enough.
#
# `placer verify` checks a proof without this code. So a proof says nothing of dominated options: its splits hold for
# all
# layouts and all allocations of cores.


Document = dict[str, object]

LEAST_WEIGHT = 1e-7  # the least weight that counts in a mixture


@dataclass(order=True)
class _Part:
    """A part of the plans: its node, the ways that it allows; and what prices of a larger part prove of it."""

    negative_bound: float
    order: int
    node: int = field(compare=False)
    allowed: tuple[Bools, ...] = field(compare=False)
    prices: Document = field(compare=False)


class _Tree:
    def __init__(self, chains: Sequence[Chain], rack: Rack, enough: float | None, until: float) -> None:
        self.chains, self.rack = chains, rack
        self.gain = enough is not None
        self.enough = EMPTY_BOUND if enough is None else enough
        self.machines = SharedLimits(rack, np.ones(len(rack.servers), dtype=np.int64))
        by_tables = rack.stage_oracle == "tables" and rack.switch.stages is not None
        self.stages: StageOracle = StagesByWindows(rack, chains) if by_tables else BlockStages(rack, chains)
        known: dict[object, tuple[Options, PricedWays, dict[int, Ints]]] = {}
        for chain in chains:
            same = same_but_for_names(chain)
            if same not in known:
                options = all_options(chain, rack, until)
                known[same] = options, self._ways(options), turn_counts(options, rack)
        each = [known[same_but_for_names(chain)] for chain in chains]
        self.options, self.ways = [one for one, *_ in each], [replace(one, pool=list(one.pool)) for _, one, _ in each]
        self.turns = [turns for *_, turns in each]
        self.nodes: list[Document] = [{}]
        self.numbers = count()
        self.waiting: list[_Part] = []
        self.left: list[float] = []

    def _ways(self, options: Options) -> PricedWays:
        chain = options.chain
        of_nf = np.array([self.rack.costs[nf.nf].switch_blocks or 0 for nf in chain.nfs])
        blocks: Ints = (options.on_switch * of_nf).sum(axis=1).astype(np.int64)
        least, shares = float(chain.slo.t_min_mbps), options.nic_shares
        ways = self.machines.price(1, least, options.rate, options.cores, shares, blocks, options.on_switch)
        ways.pool[:] = find_undominated_rows(options, self.rack).tolist()
        return ways

    def proof(self, seconds: float) -> BoundProof:
        """Split parts until each is proven, or the time is over."""
        until = time.monotonic() + seconds
        if not all(map(len, self.ways)):
            return BoundProof(None, self._write([{"prices": {"gain": 0}}], []))
        self.program = PriceProgram(self.ways, self.machines.limits)
        everything = tuple(np.ones(len(way), dtype=bool) for way in self.ways)
        most = sum(float((way.largest - way.least).max()) for way in self.ways)
        self.waiting.append(_Part(-most, next(self.numbers), 0, everything, {"gain": 1}))
        while self.waiting and time.monotonic() < until:
            self._prove(heapq.heappop(self.waiting))
        if not self.gain and (self.waiting or self.left):
            priced = self.program.best(everything, gain=True, enough=-np.inf)
            leaf = self.machines.written(priced.prices, gain=True)
            return BoundProof(priced.bound, self._write([{"prices": leaf}], self.program.cuts))
        for part in self.waiting:
            self.nodes[part.node] = {"prices": part.prices}
            self.left.append(-part.negative_bound)
        return BoundProof(max(self.left, default=None), self._write(self.nodes, self.program.cuts))

    def _write(self, nodes: list[Document], cuts: Sequence[frozenset[TableId]]) -> Document:
        return proof_document("each", cuts, nodes, self.chains)

    def _prove(self, part: _Part) -> None:
        """Price a part, and split it if its prices do not prove enough."""
        if not all(mask.any() for mask in part.allowed):
            self.nodes[part.node] = {"prices": {"gain": 0}}
            return
        priced = self._price(part)
        leaf = self.machines.written(priced.prices, gain=self.gain)
        if priced.bound > self.enough:
            if overfull := self._overfull(part.allowed):
                self.nodes[part.node] = {"overfull": overfull}
                return
            split = _split_of_mixture(self.options, priced.weights) or _split_of_ways(self.options, part.allowed)
            if split is not None:
                self._divide(part, split, priced.bound, leaf)
                return
        self.nodes[part.node] = {"prices": leaf}
        if self.gain or priced.bound > self.enough:
            self.left.append(priced.bound)

    def _overfull(self, allowed: Sequence[Bools]) -> str | None:
        """Shared cores that are too few for the turns of a part's subgroups, whatever way each chain takes."""
        for number, pool in enumerate(self.rack.pools):
            if pool.is_shared:
                counts = sum(of[number][mask].min(axis=0) for of, mask in zip(self.turns, allowed, strict=True))
                if not has_room(np.asarray(counts), pool.cores):
                    return pool.name
        return None

    def _price(self, part: _Part) -> Priced:
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
            for nf in np.flatnonzero(options.layouts.sites[options.layout[row]] == SWITCH_SITE)
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
    """Ways with at most so many cores of a pool, in parts of cores, or ways with an NF on a site; and all others."""

    chain: int
    site: int  # or pool
    at_most: int | None = None
    nf: int | None = None

    def first(self, options: Options) -> Bools:
        """The ways of the first part; shape (options,)."""
        if self.at_most is not None:
            return np.asarray(options.cores[:, self.site] <= self.at_most)
        return np.asarray(options.layouts.sites[options.layout, self.nf] == self.site)

    def written(self, chain: Chain, rack: Rack) -> Document:
        if self.at_most is not None:
            cores = Fraction(self.at_most, rack.core_parts)
            at_most = int(cores) if rack.core_parts == 1 else f"{cores.numerator}/{cores.denominator}"
            return {"chain": chain.name, "on": rack.pools[self.site].name, "at_most": at_most}
        assert self.nf is not None
        on = "switch" if self.site == SWITCH_SITE else rack.devices[self.site].label
        return {"chain": chain.name, "on": on, "nf": chain.nfs[self.nf].id}


def _split_of_mixture(options: Sequence[Options], weights: Sequence[dict[int, float]]) -> _Split | None:
    """A split of the chain that is mixed most, such that its mixture is in neither part; None if none is mixed."""
    used = [{way: weight for way, weight in way_weights.items() if weight > LEAST_WEIGHT} for way_weights in weights]
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
