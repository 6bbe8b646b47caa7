"""The best plan of a small instance by trying everything, and what is wrong with a plan; no code of placing.

What a plan may be is what `placer verify` says, which is written from CONTRACTS 9 alone: all ways of a chain with their
cores and rates (`placer/verify/chains/ways.py`), the limits of a plan (`placer/verify/chains/plan.py`). All
combinations of ways are tried, each with a linear program of its rates, all in fractions. What is left out cannot be
better: ways that need no less of anything than another one and give no higher rate, and combinations whose caps bound
them to no more than what was found.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain as join
from math import floor, lcm
from typing import Any

from sympy import Rational
from sympy.solvers.simplex import linprog

from placer.rack.chain import Chain, TableId
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.rack import MOST_TURNS, TURN_PARTS, Rack
from placer.rack.stages.tables.table_stages import TableStages
from placer.verify.chains import chain_certificate_of
from placer.verify.chains.facts import LIMIT_TOLERANCE, SWITCH_SITE
from placer.verify.chains.machines import Machines, machines_of, nic_rates
from placer.verify.chains.plan import above, plan_faults
from placer.verify.chains.stage_fit import fits
from placer.verify.chains.ways import Turns, Ways

Json = Mapping[str, Any]
CLAIMED = ("status", "marginal_mbps", "bound_mbps", "chains")


def faults(chains: Json, rack: Json, answer: Json) -> list[str]:
    """All that is wrong with an answer (CONTRACTS 9); nothing if it is sound. Whether it is the best is not checked."""
    status, marginal, bound = answer["status"], answer["marginal_mbps"], answer["bound_mbps"]
    given = {"certificate": 1, "kind": "chains", "chains": chains, "rack": rack, "proof": None}
    certificate = chain_certificate_of(given | {"plan": {key: answer[key] for key in CLAIMED}}, "answer")
    wrong = list(plan_faults(certificate))
    if answer["proven"] != (status in ("optimal", "infeasible")):
        wrong.append(f"status {status} with proven {answer['proven']}")
    if answer["chains"] and above(Fraction(str(marginal)), Fraction(str(bound))):
        wrong.append(f"marginal {marginal} is above the bound {bound}")
    if status == "optimal" and bound - marginal > 1e-7 * max(sum(one["rate_mbps"] for one in answer["chains"]), 1):
        wrong.append(f"optimal, and the bound {bound} is above the marginal {marginal}")
    return wrong


@dataclass(frozen=True)
class Way:
    """A way of a chain: the largest rate that it allows, Mbps, and what it needs. `turns`: by pool of shared cores.
    `shares`: of packets, by NIC and direction. `tables`: its NFs on the switch."""

    cap: Fraction
    moves: int
    cores: tuple[Fraction, ...]
    turns: tuple[Turns, ...]
    shares: tuple[Fraction, ...]
    tables: frozenset[TableId]
    crosses: bool

    def is_no_worse_than(self, other: "Way") -> bool:
        """Whether it gives as much as another one, and needs no more of anything."""
        own, others = ((one.moves, one.crosses, *one.cores, *one.few_turns, *one.shares) for one in (self, other))
        no_more = all(need <= more for need, more in zip(own, others, strict=True))
        return self.cap >= other.cap and no_more and self.tables <= other.tables

    @cached_property
    def few_turns(self) -> list[int]:
        """By pool and number: on how many cores so many may take turns at most."""
        return [sum(turns <= most for turns in pool) for pool in self.turns for most in range(1, MOST_TURNS + 1)]


def list_ways(chain: Chain, at: int, machines: Machines, old: Mapping[str, str]) -> list[Way]:
    """The ways of a chain that none is better than, the largest caps first. `at`: its index. `old`: per NF where it
    was; NFs that are not in it move nothing."""
    listed = Ways(chain, machines)
    names = {number: site.name for number, site in enumerate(machines.sites)} | {SWITCH_SITE: "switch"}
    by_sites = []
    for sites in listed.sites.tolist():
        on_switch = [nf for nf, site in enumerate(sites) if site == SWITCH_SITE]
        pairs = zip(chain.nfs, sites, strict=True)
        moves = sum(old.get(nf.id, names[site]) != names[site] for nf, site in pairs)
        by_sites.append((moves, frozenset((at, nf) for nf in on_switch), len(on_switch) < len(sites)))
    found = set()
    for layout, number in zip(listed.layout_of.tolist(), listed.need_of.tolist(), strict=True):
        moves, tables, crosses = by_sites[layout]
        need = listed.needs[number]
        cap = max(need.largest, chain.slo.t_min_mbps)
        found.add(Way(cap, moves, need.cores, need.turns, need.shares, tables, crosses))
    kept: list[Way] = []
    for way in sorted(found, key=lambda way: (-way.cap, way.moves + sum(way.cores) + sum(way.shares), len(way.tables))):
        if not any(other.is_no_worse_than(way) for other in kept):
            kept.append(way)
    return kept


@dataclass(frozen=True)
class BestRates:
    """The optimum: its marginal throughput, and the rate of each chain, Mbps."""

    marginal: Fraction
    rates: tuple[Fraction, ...]


def is_feasible(chains: Json, rack: Json) -> bool:
    """Whether every chain can have its least rate; larger ones are not tried."""
    least = [one | {"t_max_mbps": max(one["t_min_mbps"], 1)} for one in chains["chains"]]
    return best_rates({"chains": least}, rack) is not None


def best_rates(chains: Json, rack: Json, *, by_tables: bool = False) -> BestRates | None:
    """The plan with the largest marginal throughput; None where no plan is feasible. `by_tables`: whether tables are
    packed into the stages, by the packer that tests/placer/rack/stages/tables/test_packing.py compares with all ways
    to lay them."""
    return _Trial(chains_of(chains, "chains"), rack_of(rack, "rack"), by_tables=by_tables).best()


def best_rates_within(chains: Json, rack: Json, old: Mapping[str, Mapping[str, str]], moves: int) -> BestRates | None:
    """The same, of plans that move at most so many NFs; `old` has their places by chain and NF."""
    return _Trial(chains_of(chains, "chains"), rack_of(rack, "rack"), old, moves).best()


class _Trial:
    def __init__(
        self,
        chains: Sequence[Chain],
        rack: Rack,
        old: Mapping[str, Mapping[str, str]] | None = None,
        moves: int = 0,
        *,
        by_tables: bool = False,
    ) -> None:
        self.chains, self.rack, self.by_tables = chains, rack, by_tables
        self.least = [chain.slo.t_min_mbps for chain in chains]
        machines = machines_of(rack, together=False)
        self.mbps = [mbps for server in rack.servers for mbps in nic_rates(server) for _ in ("in", "out")]
        self.pools = machines.pools
        self.found: BestRates | None = None
        self.known: dict[tuple[int, frozenset[TableId]], bool] = {}
        self.ways = [list_ways(chain, at, machines, (old or {}).get(chain.name, {})) for at, chain in enumerate(chains)]
        loads = [share * self.least[at] for at, each in enumerate(self.ways) for way in each for share in way.shares]
        self.scale = lcm(*(load.denominator for load in loads), *(mbps.denominator for mbps in self.mbps))
        nics = [floor(mbps * self.scale * (1 + LIMIT_TOLERANCE)) for mbps in self.mbps]
        self.limits = [moves, *(cores * TURN_PARTS for cores in machines.cores), *nics]

    def best(self) -> BestRates | None:
        needs = [
            [
                (
                    way,
                    (
                        way.moves,
                        *(int(cores * TURN_PARTS) for cores in way.cores),
                        *(int(share * least * self.scale) for share in way.shares),
                    ),
                )
                for way in each
            ]
            for each, least in zip(self.ways, self.least, strict=True)
        ]
        self._go_on([], self.limits, needs)
        return self.found

    def _go_on(
        self, chosen: list[Way], free: Sequence[int], left: Sequence[Sequence[tuple[Way, tuple[int, ...]]]]
    ) -> None:
        """Try all ways of the next chain, of those of the chains to come that still fit."""
        if not left:
            self._rate(chosen)
            return
        left = [[need for need in needs if _fits(need[1], free)] for needs in left]
        if any(not needs for needs in left):
            return
        # sorted by caps: the first way of each chain to come bounds what it gives
        later = sum((needs[0][0].cap for needs in left[1:]), Fraction(0)) - sum(self.least)
        for way, uses in left[0]:
            both = [*chosen, way]
            caps = sum(one.cap for one in both) + later
            if self._no_better(caps):
                return
            if self._no_better(caps - self._lost_to_nics(both)) or self._lacks_turns(both):
                continue
            if self._fits_switch(both):
                self._go_on(both, [limit - used for limit, used in zip(free, uses, strict=True)], left[1:])

    def _lacks_turns(self, ways: Sequence[Way]) -> bool:
        each = zip(self.pools, zip(*(way.turns for way in ways), strict=True), strict=True)
        return any(pool.short(join.from_iterable(turns)) for pool, turns in each)

    def _no_better(self, bound: Fraction) -> bool:
        return self.found is not None and bound <= self.found.marginal

    def _lost_to_nics(self, ways: Sequence[Way]) -> Fraction:
        """The least by which the sum of rates stays below the sum of caps: what one NIC cannot carry."""
        lost = [Fraction(0)]
        for nic, limit in enumerate(self.mbps):
            over = sum((way.shares[nic] * way.cap for way in ways), -limit)
            if over > 0:
                lost.append(over / max(way.shares[nic] for way in ways))
        return max(lost)

    def _fits_switch(self, ways: Sequence[Way]) -> bool:
        tables = frozenset[TableId]().union(*(way.tables for way in ways))
        chains, key = self.chains[: len(ways)], (len(ways), tables)
        if key not in self.known:
            if self.by_tables:
                self.known[key] = TableStages(self.rack, chains).fits(tables)
            else:
                fit = fits(chains, self.rack, tables)
                assert fit is not None, "an instance with fewer tables is needed"
                self.known[key] = fit
        return self.known[key]

    def _rate(self, ways: Sequence[Way]) -> None:
        """The largest sum of rates from the least ones, which fit, to the caps that the NICs carry."""
        caps = [way.cap for way in ways]
        shares = [[way.shares[nic] for way in ways] for nic in range(len(self.mbps))]
        loads = [(_total(each, caps), _total(each, self.least)) for each in shares]
        tight = [nic for nic, (largest, _) in enumerate(loads) if largest > self.mbps[nic]]
        rates = tuple(caps)
        if tight:
            limits = [Rational(max(self.mbps[nic], loads[nic][1])) for nic in tight]
            rows = [[Rational(share) for share in shares[nic]] for nic in tight]
            bounds = [(Rational(low), Rational(cap)) for low, cap in zip(self.least, caps, strict=True)]
            solved = linprog([-1] * len(caps), rows, limits, bounds=bounds)[1]
            rates = tuple(Fraction(int(rate.p), int(rate.q)) for rate in solved)
        marginal = sum(rates) - sum(self.least)
        if self.found is None or marginal > self.found.marginal:
            self.found = BestRates(marginal, rates)


def _fits(uses: Iterable[int], free: Iterable[int]) -> bool:
    return all(use <= left for use, left in zip(uses, free, strict=True))


def _total(shares: Iterable[Fraction], rates: Iterable[Fraction]) -> Fraction:
    return sum((share * rate for share, rate in zip(shares, rates, strict=True)), Fraction(0))
