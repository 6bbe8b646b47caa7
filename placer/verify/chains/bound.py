"""The bound of a certificate, checked by weak duality. What chains share has prices. At given prices, no plan gains
more than everything is worth, and each chain's best way beyond. A tree of splits divides the plans into parts; each
leaf has prices of its own, which bound its part or prove it empty. All ways of all chains are listed again (`ways.py`),
from the chains and the rack alone. All sums are exact."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from placer.rack.chain import Chain
from placer.verify.chains.claims import ChainCertificate, LeafPrices, Proof, Split
from placer.verify.chains.facts import SWITCH_SITE, ChainFacts
from placer.verify.chains.machines import machines_of
from placer.verify.chains.stage_fit import fits
from placer.verify.chains.ways import Ways
from profiles.arrays import Bools

Masks = Mapping[int, Bools]  # by chain the ways that a part allows; absent: all

BOUND_TOLERANCE = Fraction(1, 10**8)
"""Relative to the sum of rates: a plan this near its bound is optimal, and a bound this near what is proven holds."""


def bound_faults(certificate: ChainCertificate) -> Iterator[str]:
    """A bound below what the prices prove, prices that prove nothing, and a status that does not follow."""
    plan, proof = certificate.plan, certificate.proof
    if plan.status == "infeasible" and plan.bound_mbps is not None:
        yield "bound: the status is infeasible, and there is a bound"
    if plan.bound_mbps is None and plan.status in ("feasible", "unknown"):
        return
    if plan.bound_mbps is None and plan.status == "optimal":
        yield "bound: the status is optimal, and there is no bound"
        return
    if proof is None:
        yield "bound: there is no proof of it"
        return
    try:
        proven = _Tree(certificate, proof).prove()
    except ValueError as error:
        yield f"bound: {error}"
        return
    if plan.bound_mbps is None:
        if proven is not None:
            yield "bound: that there is no plan is not proven"
        return
    allowed = BOUND_TOLERANCE * max(
        plan.bound_mbps + sum(chain.slo.t_min_mbps for chain in certificate.chains), Fraction(1)
    )
    if proven is not None and proven > plan.bound_mbps + allowed:
        yield f"bound: the prices prove {float(proven):.9g} Mbps, not {float(plan.bound_mbps):.9g}"
    marginal = plan.marginal_mbps
    if marginal is not None and marginal > plan.bound_mbps + allowed:
        yield f"bound: it is below the marginal throughput, {float(marginal):.9g} Mbps"
    if plan.status == "optimal" and (marginal is None or marginal < plan.bound_mbps - allowed):
        yield f"bound: the status is optimal, and the bound is {float(plan.bound_mbps):.9g} Mbps"


@dataclass
class _Tree:
    certificate: ChainCertificate
    proof: Proof
    ways: dict[object, Ways] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chains = self.certificate.chains
        self.number = {chain.name: number for number, chain in enumerate(self.chains)}
        self.machines = machines_of(self.certificate.rack, together=self.proof.servers == "together")
        self.site = {site.split_name: number for number, site in enumerate(self.machines.sites)} | {
            "switch": SWITCH_SITE
        }
        self.pool = {pool.name: number for number, pool in enumerate(self.machines.pools)}

    def prove(self) -> Fraction | None:
        """The largest marginal throughput that the tree leaves possible; None when it leaves no plan. Raises ValueError
        when the tree proves nothing."""
        if self.machines.together and (self.proof.cuts or len(self.proof.tree) > 1):
            raise ValueError("where equal servers count as one machine, there are neither cuts nor splits")
        cuts = [self._cut(number, tables) for number, tables in enumerate(self.proof.cuts)]
        found = [value for value in self._leaves(cuts) if value is not None]
        if cuts and self.certificate.rack.overheads.stages:
            found += self._all_on_switch()
        return max(found, default=None)

    def _cut(self, number: int, tables: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
        """The NFs of a cut, which do not fit the switch together."""
        cut = []
        for chain, nf in tables:
            if chain not in self.number:
                raise ValueError(f"cut {number} is about {chain}, which is no chain")
            cut.append((self.number[chain], self._nf(chain, nf)))
        if len(set(cut)) < len(cut) or not cut:
            raise ValueError(f"cut {number} is no set of NFs")
        fit = fits(self.chains, self.certificate.rack, cut)
        if fit is not False:
            raise ValueError(f"the tables of cut {number} {'fit' if fit else 'may fit'} the stages of the switch")
        return cut

    def _nf(self, chain: str, identity: str) -> int:
        ids = [nf.id for nf in self.chains[self.number[chain]].nfs]
        if identity not in ids:
            raise ValueError(f"{chain} has no NF {identity}")
        return ids.index(identity)

    def _all_on_switch(self) -> list[Fraction]:
        """The marginal throughput with all NFs on the switch, if that is a plan: no table is for encapsulation then."""
        rack, tables = self.certificate.rack, []
        for number, chain in enumerate(self.chains):
            facts = ChainFacts(chain, rack, self.machines.sites)
            every = range(len(chain.nfs))
            if any(facts.blocks(nf) is None for nf in every) or not facts.keeps_table_order([SWITCH_SITE] * len(every)):
                return []
            tables += [(number, nf) for nf in every]
        if fits(self.chains, rack, tables) is False:
            return []
        return [sum((chain.slo.t_max_mbps - chain.slo.t_min_mbps for chain in self.chains), Fraction(0))]

    def _leaves(self, cuts: Sequence[Sequence[tuple[int, int]]]) -> Iterator[Fraction | None]:
        """What each leaf leaves possible."""
        tree, seen = self.proof.tree, set()
        waiting: list[tuple[int, Masks]] = [(0, {})]
        while waiting:
            number, masks = waiting.pop()
            if number >= len(tree) or number in seen:
                raise ValueError(f"node {number} is not once in the tree")
            seen.add(number)
            node = tree[number]
            given = [value is not None for value in (node.prices, node.overfull, node.split, node.parts)]
            if node.prices is not None and sum(given) == 1:
                yield self._leaf(number, node.prices, cuts, masks)
            elif node.overfull is not None and sum(given) == 1:
                self._refuse_room(number, node.overfull, masks)
            elif node.split is not None and node.parts is not None and sum(given) == 2:
                waiting += self._parts(node.split, node.parts, masks)
            else:
                raise ValueError(f"node {number} is neither a leaf nor a split")

    def _parts(self, split: Split, parts: Sequence[int], masks: Masks) -> list[tuple[int, Masks]]:
        if split.chain not in self.number or split.on not in (self.site if split.nf is not None else self.pool):
            raise ValueError(f"a split of {split.chain} by {split.on}, which are not both there")
        number = self.number[split.chain]
        ways = self._ways(self.chains[number])
        if split.nf is not None and split.at_most is None:
            first = ways.with_site(self._nf(split.chain, split.nf), self.site[split.on])
        elif split.nf is None and split.at_most is not None:
            first = ways.with_cores(self.pool[split.on], split.at_most)
        else:
            raise ValueError("a split is by the cores of a device, or by the place of an NF")
        before = masks.get(number, np.ones(len(ways), dtype=bool))
        pairs = zip(parts, (before & first, before & ~first), strict=True)
        return [(part, {**masks, number: mask}) for part, mask in pairs]

    def _refuse_room(self, number: int, name: str, masks: Masks) -> None:
        """Raise ValueError where cores may have room for the turns of a part's subgroups."""
        turns: list[int] = []
        for at, chain in enumerate(self.chains):
            allowed = masks.get(at)
            if name in self.pool and (allowed is None or allowed.any()):
                turns += self._ways(chain).least_turns(self.pool[name], allowed)
        if name not in self.pool or not self.machines.pools[self.pool[name]].short(turns):
            raise ValueError(f"the cores of node {number} may have room for all turns there")

    def _leaf(
        self, number: int, prices: LeafPrices, cuts: Sequence[Sequence[tuple[int, int]]], masks: Masks
    ) -> Fraction | None:
        """The bound that prices prove for a part; None where they prove that it is empty."""
        priced = self.machines.price_sites(prices)
        total = self.machines.worth(priced)
        tolls: dict[int, dict[int, Fraction]] = {}
        for name, price in prices.cuts.items():
            if not name.isdecimal() or int(name) >= len(cuts):
                raise ValueError(f"node {number} has a price of cut {name}, which is not there")
            total += price * (len(cuts[int(name)]) - 1)
            for of, nf in cuts[int(name)]:
                of_chain = tolls.setdefault(of, {})
                of_chain[nf] = of_chain.get(nf, Fraction(0)) + price
        known: dict[int, Fraction | None] = {}
        for at, chain in enumerate(self.chains):
            ways = self._ways(chain)
            plain = at not in masks and at not in tolls
            if not plain or id(ways) not in known:
                worth = ways.most_worth(priced, tolls.get(at, {}), masks.get(at))
                if plain:
                    known[id(ways)] = worth
            else:
                worth = known[id(ways)]
            if worth is None:
                return None
            total += worth
        if priced.gain:
            return total
        if total >= 0:
            raise ValueError(f"the prices of node {number} do not prove that no plan is left")
        return None

    def _ways(self, chain: Chain) -> Ways:
        """The ways of a chain; chains that differ only in their names share them."""
        same = (chain.packet_size, chain.slo, tuple(nf.nf for nf in chain.nfs), chain.edges)
        if same not in self.ways:
            self.ways[same] = Ways(chain, self.machines)
        return self.ways[same]
