"""The best plan of a small instance by trying everything: exact fractions, no solver, and no code of placing.

It is written from CONTRACTS 9 alone. Per chain it lists all placements with all allocations of cores; then it tries all
combinations, with a linear program of the rates solved by visiting its vertices. What it leaves out cannot be better:
cores beyond those for t_max, ways that need no less of anything than another one and give no higher rate, and
combinations whose caps bound them to no more than what was found.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import floor, lcm

from tests.placer.rack.chain_ways import TOLERANCE, ChainWays, Json, Way, exact, places_of
from tests.placer.rack.table_search import fits_stages

Table = tuple[int, str]
Fits = Callable[[Sequence[Json], Json, frozenset[Table], int], bool]
"""Whether NFs of the chains fit so many stages of the rack's switch."""


@dataclass(frozen=True)
class BestRates:
    """The optimum: its marginal throughput, and per chain the rate and the way it is placed; exact, Mbps."""

    marginal: Fraction
    rates: tuple[Fraction, ...]
    ways: tuple[Way, ...]


def is_feasible(chains: Json, rack: Json) -> bool:
    """Whether every chain can have its least rate; larger ones are not tried."""
    least = [one | {"t_max_mbps": max(one["t_min_mbps"], 1)} for one in chains["chains"]]
    return best_rates({"chains": least}, rack) is not None


@dataclass(frozen=True)
class _Need:
    """A way with what it uses of each limit at the least rate, as whole numbers."""

    way: Way
    uses: tuple[int, ...]


def best_rates(chains: Json, rack: Json, fits: Fits | None = None) -> BestRates | None:
    """The plan with the largest marginal throughput; None where no plan is feasible.

    `fits`: what decides on stages; None: blocks.
    """
    return _Trial(chains["chains"], rack, fits=fits).best()


def best_rates_within(chains: Json, rack: Json, old: Mapping[str, Mapping[str, str]], moves: int) -> BestRates | None:
    """The same, of plans that move at most so many NFs; `old` has their places by chain and NF."""
    return _Trial(chains["chains"], rack, old, moves).best()


class _Trial:
    def __init__(
        self,
        chains: Sequence[Json],
        rack: Json,
        old: Mapping[str, Mapping[str, str]] | None = None,
        moves: int = 0,
        fits: Fits | None = None,
    ) -> None:
        self.chains, self.rack, self.fits = chains, rack, fits
        self.least = [exact(chain["t_min_mbps"]) for chain in chains]
        self.mbps = [exact(server["nic_mbps"]) for server in rack["servers"] for _ in ("in", "out")]
        self.found: BestRates | None = None
        self.known: dict[frozenset[Table], bool] = {}
        ways = [ChainWays(chain, rack, (old or {}).get(chain["name"])).ways() for chain in chains]
        loads = [
            share * least
            for each, least in zip(ways, self.least, strict=True)
            for way in each
            for share in way.nic_shares
        ]
        scale = lcm(*(load.denominator for load in loads), *(mbps.denominator for mbps in self.mbps))
        cores = [place.cores for place in places_of(rack).values()]
        self.limits = [moves, *cores, *(floor(mbps * scale * (1 + TOLERANCE)) for mbps in self.mbps)]
        self.needs = [
            [
                _Need(way, (way.moves, *way.cores, *(int(share * least * scale) for share in way.nic_shares)))
                for way in each
            ]
            for each, least in zip(ways, self.least, strict=True)
        ]

    def best(self) -> BestRates | None:
        self._go_on([], [[one for one in needs if _fits(one, self.limits)] for needs in self.needs])
        return self.found

    def _go_on(self, chosen: list[_Need], left: Sequence[Sequence[_Need]]) -> None:
        """Try all ways of the next chain; `left` holds those of the chains to come that still fit."""
        if not left:
            self._rate([need.way for need in chosen])
            return
        if any(not needs for needs in left):
            return
        # sorted by caps: the first way of each chain to come bounds what it gives
        later = sum((needs[0].way.cap for needs in left[1:]), Fraction(0)) - sum(self.least)
        caps = sum((need.way.cap for need in chosen), Fraction(0))
        for need in left[0]:
            if self._no_better(caps + need.way.cap + later):
                return
            both = [*chosen, need]
            lost = self._lost_to_nics([one.way for one in both])
            if self._no_better(caps + need.way.cap - lost + later) or not self._fits_switch([n.way for n in both]):
                continue
            free = [limit - sum(used) for limit, *used in zip(self.limits, *(one.uses for one in both), strict=True)]
            self._go_on(both, [[one for one in needs if _fits(one, free)] for needs in left[1:]])

    def _no_better(self, bound: Fraction) -> bool:
        return self.found is not None and bound <= self.found.marginal

    def _lost_to_nics(self, ways: Sequence[Way]) -> Fraction:
        """The least by which the sum of rates stays below the sum of caps: what one NIC cannot carry."""
        lost = [Fraction(0)]
        for nic, limit in enumerate(self.mbps):
            shares = [way.nic_shares[nic] for way in ways]
            over = sum((share * way.cap for share, way in zip(shares, ways, strict=True)), -limit)
            if over > 0:
                lost.append(over / max(shares))
        return max(lost)

    def _fits_switch(self, ways: Sequence[Way]) -> bool:
        switch = self.rack.get("switch", {})
        if switch.get("stages") is None:
            return True
        tables = frozenset((at, nf) for at, way in enumerate(ways) for nf in way.tables)
        stages = max(switch["stages"] - switch.get("reserved_stages", 0), 0)
        if any(way.crosses for way in ways):
            stages = max(stages - self.rack.get("overheads", {}).get("stages", 0), 0)
        key = tables | {(stages, "")}
        if key not in self.known:
            self.known[key] = self._tables_fit(tables, stages, switch.get("blocks_per_stage", 1))
        return self.known[key]

    def _tables_fit(self, tables: frozenset[Table], stages: int, most: int) -> bool:
        if self.fits is not None:
            return self.fits(self.chains, self.rack, tables, stages)
        blocks: dict[Table, int] = {}
        before: dict[Table, set[Table]] = {table: set() for table in tables}
        for at, chain in enumerate(self.chains):
            for nf in chain["nfs"]:
                if (at, nf["id"]) in tables:
                    blocks[at, nf["id"]] = self.rack["nfs"][nf["nf"]]["switch"]["blocks"]
            for tail, head, *_ in chain["edges"]:
                if (at, tail) in tables and (at, head) in tables:
                    before[at, head].add((at, tail))
        return fits_stages(blocks, before, stages, most)

    def _rate(self, ways: Sequence[Way]) -> None:
        rates = self._best_rates(ways)
        marginal = sum(rates) - sum(self.least)
        if self.found is None or marginal > self.found.marginal:
            self.found = BestRates(Fraction(marginal), rates, tuple(ways))

    def _best_rates(self, ways: Sequence[Way]) -> tuple[Fraction, ...]:
        """The largest sum of rates from the least ones to the caps that the NICs carry; the least ones fit."""
        caps = tuple(way.cap for way in ways)
        limits = []
        for nic, mbps in enumerate(self.mbps):
            shares = [way.nic_shares[nic] for way in ways]
            if _total(shares, caps) > mbps:
                limits.append((shares, max(mbps, _total(shares, self.least))))
        if not limits:
            return caps
        return max((rates for rates in _vertices(self.least, caps, limits)), key=sum)


def _fits(need: _Need, free: Sequence[int]) -> bool:
    return all(use <= left for use, left in zip(need.uses, free, strict=True))


def _total(shares: Sequence[Fraction], rates: Sequence[Fraction]) -> Fraction:
    return sum((share * rate for share, rate in zip(shares, rates, strict=True)), Fraction(0))


def _vertices(
    least: Sequence[Fraction], caps: Sequence[Fraction], limits: Sequence[tuple[Sequence[Fraction], Fraction]]
) -> Iterator[tuple[Fraction, ...]]:
    """All vertices: rates are at an end, but for as many as limits are reached."""
    chains = range(len(caps))
    for count in range(min(len(caps), len(limits)) + 1):
        for inner, tight in product(combinations(chains, count), combinations(limits, count)):
            ends = [at for at in chains if at not in inner]
            for values in product(*({least[at], caps[at]} for at in ends)):
                known = dict(zip(ends, values, strict=True))
                solved = _solved(inner, tight, known)
                if solved is None:
                    continue
                rates = tuple((known | solved)[at] for at in chains)
                within = all(low <= rate <= high for low, rate, high in zip(least, rates, caps, strict=True))
                if within and all(_total(shares, rates) <= limit for shares, limit in limits):
                    yield rates


def _solved(
    inner: Sequence[int], tight: Sequence[tuple[Sequence[Fraction], Fraction]], known: Mapping[int, Fraction]
) -> dict[int, Fraction] | None:
    """The inner rates at which the limits are reached; None where these do not fix them."""
    rows = [
        [*(shares[at] for at in inner), limit - sum(shares[at] * rate for at, rate in known.items())]
        for shares, limit in tight
    ]
    for at in range(len(rows)):
        pivot = next((row for row in range(at, len(rows)) if rows[row][at]), None)
        if pivot is None:
            return None
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for other in range(len(rows)):
            if other != at:
                factor = rows[other][at]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[at], strict=True)]
    return {chain: row[-1] for chain, row in zip(inner, rows, strict=True)}
