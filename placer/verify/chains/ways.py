"""Every way to place one chain, listed for the check: all sites of its NFs, all cores that are worth having.

A way is good for all rates from t_min to the largest one that its cores carry. More cores than a rate needs are no way:
a plan stays one without them. Where equal servers count as one machine, a way stands for all plans that split the chain
over them: a subgroup that is cut crosses from server to server on one of its edges at least, and its parts together
carry at most what as many cores of the whole would, were it replicable and its replicas free."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, lcm

import numpy as np

from placer.rack.chain import Chain
from placer.rack.rack import MOST_TURNS, TURN_PARTS
from placer.verify.chains.facts import LIMIT_TOLERANCE, SWITCH_SITE, ChainFacts, Component, Sites
from placer.verify.chains.machines import Machines, SitePrices
from profiles.arrays import Bools, Floats, Ints

Turns = tuple[int, ...]  # per core of a subgroup, ascending: how many subgroups may take turns there
Allocation = tuple[Fraction, tuple[Fraction, ...], tuple[Turns, ...]]
"""The largest rate, Mbps, and cores and turns per pool."""

MOST_LAYOUTS = 4_000_000
MOST_WAYS = 20_000_000
NEAR_WORTH = 1e-9
"""Relative: ways whose worth in floating point is this near the largest one are evaluated exactly; errors are below."""


@dataclass(frozen=True)
class Need:
    """What a way needs of the machines, and what it carries. `largest`: rate, Mbps. `cores`, `turns`: per pool, turns
    where cores are shared. `shares`: of the chain's packets, through each NIC, in and out. `blocks`: of memory."""

    largest: Fraction
    cores: tuple[Fraction, ...]
    turns: tuple[Turns, ...]
    shares: tuple[Fraction, ...]
    blocks: int

    def worth(self, least: Fraction, prices: SitePrices) -> Fraction:
        """The gain less what is needed, at the better one of the least and the largest rate."""
        cores = sum((price * used for price, used in zip(prices.cores, self.cores, strict=True) if price), Fraction(0))
        per_mbps = sum((price * one for price, one in zip(prices.nics, self.shares, strict=True) if price), Fraction(0))
        fixed = cores + prices.blocks * self.blocks
        at = (least, max(self.largest, least))
        return max(prices.gain * (rate - least) - per_mbps * rate for rate in at) - fixed


class TooMany(ValueError):
    """A chain has more ways than can be listed."""


class Ways:
    """All ways of one chain; rows are ways. Raises TooMany when there are more than MOST_LAYOUTS or MOST_WAYS."""

    def __init__(self, chain: Chain, machines: Machines) -> None:
        self.chain, self.machines = chain, machines
        self.facts = ChainFacts(chain, machines.rack, machines.sites)
        self.least = chain.slo.t_min_mbps
        self._unit = lcm(*(share.denominator for *_, share in self.facts.flows))
        self._flows = [(tail, head, int(share * self._unit)) for tail, head, share in self.facts.flows]
        self._known: dict[tuple[int, ...], Sequence[Allocation]] = {}
        self._kinds: list[tuple[int | None, Component]] = []
        self._kind_of: dict[tuple[int, tuple[int, ...], bool], int] = {}
        self.needs: list[Need] = []
        listed: dict[object, range] = {}
        layouts: list[Sites] = []
        layout_of, need_of = array("q"), array("q")
        for sites in self._layouts():
            before = len(need_of)
            for kinds, shares, blocks in self._profiles(sites):
                profile = (kinds, shares, blocks)
                if profile not in listed:
                    listed[profile] = self._list(kinds, shares, blocks)
                need_of.extend(listed[profile])
            layout_of.extend([len(layouts)] * (len(need_of) - before))
            if len(need_of) > before:
                layouts.append(sites)
            if len(need_of) > MOST_WAYS:
                raise TooMany(f"{chain.name} has more than {MOST_WAYS:,} ways to place it")
        self.sites: Ints = np.array(layouts, dtype=np.int64).reshape(len(layouts), len(chain.nfs))
        self.layout_of: Ints = np.array(layout_of, dtype=np.int64)
        self.need_of: Ints = np.array(need_of, dtype=np.int64)
        wide = len(machines.pools), 2 * len(machines.nics)
        parts = [[int(core * TURN_PARTS) for core in need.cores] for need in self.needs]
        self.core_parts: Ints = np.array(parts, dtype=np.int64).reshape(-1, wide[0])
        rough = [[float(share) for share in need.shares] for need in self.needs]
        self.shares: Floats = np.array(rough, dtype=np.float64).reshape(-1, wide[1])
        self.largest = np.array([float(max(need.largest, self.least)) for need in self.needs])
        self.blocks = np.array([float(need.blocks) for need in self.needs])

    def __len__(self) -> int:
        return len(self.need_of)

    def with_cores(self, pool: int, at_most: Fraction) -> Bools:
        """Per way whether it has so many cores of a pool at most."""
        few: Bools = self.core_parts[self.need_of, pool] <= floor(at_most * TURN_PARTS)
        return few

    def least_turns(self, pool: int, allowed: Bools | None) -> Turns:
        """Turns for which a pool has room wherever it has room for those of any way that is allowed."""
        used = set(self.need_of[slice(None) if allowed is None else allowed].tolist())
        up_to = range(1, MOST_TURNS + 1)
        counts = [[sum(of <= turns for of in self.needs[need].turns[pool]) for turns in up_to] for need in used]
        least = [min(column) for column in zip(*counts, strict=True)]
        return tuple(turns for turns in up_to for _ in range(least[turns - 1] - ([0, *least])[turns - 1]))

    def with_site(self, nf: int, site: int) -> Bools:
        """Per way whether an NF is on a site."""
        there: Bools = self.sites[self.layout_of, nf] == site
        return there

    def most_worth(self, prices: SitePrices, cuts: Mapping[int, Fraction], allowed: Bools | None) -> Fraction | None:
        """The most that a way is worth: its gain less the price of what it needs; None where no way is allowed. `cuts`:
        prices of NFs on the switch. `allowed`: ways; None: all."""
        rows = np.arange(len(self)) if allowed is None else np.flatnonzero(allowed)
        if not len(rows):
            return None
        # the worth of each need in floating point, and the size of the numbers that it is the difference of
        least, gain = float(self.least), float(prices.gain)
        cores, nics = np.array([float(core) for core in prices.cores]), np.array([float(nic) for nic in prices.nics])
        fixed = self.core_parts / TURN_PARTS @ cores + float(prices.blocks) * self.blocks
        per_mbps = self.shares @ nics
        ends = [gain * (rate - least) - per_mbps * rate for rate in (least, self.largest)]
        sizes = fixed + per_mbps * self.largest + gain * self.largest
        worth: Floats = np.maximum(*ends) - fixed
        by_need, scale = worth, float(sizes.max(initial=0.0))
        toll = np.zeros(len(self.sites))
        for nf, price in cuts.items():
            toll += float(price) * (self.sites[:, nf] == SWITCH_SITE)
        rough = by_need[self.need_of[rows]] - toll[self.layout_of[rows]]
        near = rows[rough >= rough.max() - NEAR_WORTH * (scale + toll.max(initial=0.0))]
        exact: dict[tuple[int, Fraction], None] = {}
        tolls: dict[int, Fraction] = {}
        for row in near:
            layout = int(self.layout_of[row])
            if layout not in tolls:
                sites = self.sites[layout]
                tolls[layout] = sum((price for nf, price in cuts.items() if sites[nf] == SWITCH_SITE), Fraction(0))
            exact[int(self.need_of[row]), tolls[layout]] = None
        return max(self.needs[need].worth(self.least, prices) - paid for need, paid in exact)

    def _layouts(self) -> Iterator[Sites]:
        """All sites of the NFs that keep latency and table order."""
        facts, limit = self.facts, self.chain.slo.d_max_us
        choices = [
            [site for site, one in enumerate(self.machines.sites) if one.cores.number and facts.cost(nf, site)]
            + [SWITCH_SITE] * (facts.blocks(nf) is not None)
            for nf in range(len(self.chain.nfs))
        ]
        for number, sites in enumerate(self._extend((), choices)):
            if number == MOST_LAYOUTS:
                raise TooMany(f"{self.chain.name} has more than {MOST_LAYOUTS:,} layouts")
            if limit is not None and facts.latency_us(sites) > limit * (1 + LIMIT_TOLERANCE):
                continue
            if facts.keeps_table_order(sites):
                yield sites

    def _extend(self, sites: tuple[int, ...], choices: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
        """The sites of the first NFs with all of those of the others that keep sockets."""
        if len(sites) == len(choices):
            yield sites
            return
        for site in choices[len(sites)]:
            more = (*sites, site)
            if self.facts.keeps_sockets(more):
                yield from self._extend(more, choices)

    def _profiles(self, sites: Sites) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
        """Kinds of subgroups, shares in units, and blocks of the switch: as one, and for each way to cut it."""
        components = self.facts.components(sites)
        sides = [self.facts.side(sites, nf) for nf in range(len(sites))]
        shares = [0] * (2 * len(self.machines.nics))
        for tail, head, share in self._flows:
            one, other = sides[tail] if tail >= 0 else SWITCH_SITE, sides[head] if head >= 0 else SWITCH_SITE
            if one != other:
                if other != SWITCH_SITE:
                    shares[2 * other] += share
                if one != SWITCH_SITE:
                    shares[2 * one + 1] += share
        blocks = sum(self.facts.blocks(nf) or 0 for nf, site in enumerate(sites) if site == SWITCH_SITE)
        yield self._kinds_of(components, whole=True), tuple(shares), blocks
        if self.machines.together:
            cut = self._kinds_of(components, whole=False)
            for more in self._cut_shares(components, shares):
                yield cut, more, blocks

    def _cut_shares(self, components: Sequence[Component], shares: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Shares where one of the subgroups of several NFs is cut at least."""
        for component in components:
            inside = [share for tail, head, share in self._flows if tail in component.nfs and head in component.nfs]
            if inside:
                side, more = self.machines.sites[component.site].side, list(shares)
                for place in (2 * side, 2 * side + 1):
                    more[place] += min(inside)
                yield tuple(more)

    def _list(self, kinds: tuple[int, ...], units: tuple[int, ...], blocks: int) -> range:
        """The numbers of new needs, one for each allocation of cores."""
        if kinds not in self._known:
            self._known[kinds] = list(self._allocations([self._kinds[kind] for kind in kinds]))
        shares = tuple(Fraction(unit, self._unit) for unit in units)
        before = len(self.needs)
        self.needs += [Need(rate, cores, turns, shares, blocks) for rate, cores, turns in self._known[kinds]]
        return range(before, len(self.needs))

    def _kinds_of(self, components: Sequence[Component], *, whole: bool) -> tuple[int, ...]:
        """The kinds of subgroups, as they count for cores. `whole`: whether each is on one server; else those of
        several NFs may be cut."""
        return tuple(sorted([self._kind(component, whole) for component in components]))

    def _kind(self, one: Component, whole: bool) -> int:
        name = (one.site, one.nfs, whole)
        if name not in self._kind_of:
            limit: int | None = self.machines.sites[one.site].cores.number
            several = one.each_of_several
            if not whole and len(one.nfs) > 1:
                limit, several = None, one.each
            kind = (limit, replace(one, nfs=(), each_of_several=several))
            if kind not in self._kinds:
                self._kinds.append(kind)
            self._kind_of[name] = self._kinds.index(kind)
        return self._kind_of[name]

    def _allocations(self, limited: Sequence[tuple[int | None, Component]]) -> Iterator[Allocation]:
        """Cores per pool, with the largest rate: the fewest for t_min, then those for each larger rate, up to t_max."""
        largest, pools = self.chain.slo.t_max_mbps, self.machines.pools
        rate, beyond = self.least / (1 + LIMIT_TOLERANCE), False
        while True:
            used, turns = [Fraction(0)] * len(pools), [list[int]() for _ in pools]
            carried = [largest]
            for limit, one in limited:
                site, cores = self.machines.sites[one.site], one.fewest(rate, beyond=beyond)
                if cores is None or (limit is not None and cores > limit):
                    return
                of = one.most_turns(rate, beyond=beyond) if site.cores.shared and cores == 1 else 1
                used[site.pool] += Fraction(cores, of)
                turns[site.pool] += [of] * cores if site.cores.shared else []
                if (carries := one.carries(Fraction(cores, of))) is not None:
                    carried.append(carries)
            if any(cores > limit for cores, limit in zip(used, self.machines.cores, strict=True)):
                return
            if any(pool.short(of) for pool, of in zip(pools, turns, strict=True)):
                return
            yield min(carried), tuple(used), tuple(tuple(sorted(of)) for of in turns)
            if min(carried) >= largest:
                return
            rate, beyond = max(min(carried), self.least), True
