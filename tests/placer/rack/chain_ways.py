"""All ways to place one chain on an empty rack, in exact fractions; the first half of `exhaustive.py`."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm
from typing import Any

TOLERANCE = Fraction(1, 10**9)  # relative, of comparisons with a limit
SWITCH = "switch"
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Way:
    """One placement of one chain with cores: what it needs, and the largest rate that it allows."""

    cap: Fraction
    cores: tuple[int, ...]
    nic_shares: tuple[Fraction, ...]
    tables: frozenset[str]
    crosses: bool
    placement: Mapping[str, str]
    groups: tuple[tuple[str, Sequence[str], int], ...]
    moves: int = 0


@dataclass(frozen=True)
class Place:
    """A device with cores: its kind, the number of its server, and its cores that may be used."""

    kind: str
    server: int
    cores: int
    clock: Fraction


def exact(number: object) -> Fraction:
    """The fraction that a number or a text of JSON stands for."""
    return Fraction(str(number))


def places_of(rack: Json) -> dict[str, Place]:
    """All devices with cores, by name."""
    places = {}
    for at, server in enumerate(rack["servers"]):
        cores = max(server["cores"] - server.get("reserved_cores", 0), 0)
        places[server["name"]] = Place("server", at, cores, exact(server["clock_mhz"]))
        if nic := server.get("smartnic"):
            places[nic["name"]] = Place("smartnic", at, nic["cores"], exact(nic["clock_mhz"]))
    return places


class ChainWays:
    """All ways to place one chain on an empty rack. `old`: per NF where it was; NFs that are not in it move nothing."""

    def __init__(self, chain: Json, rack: Json, old: Mapping[str, str] | None = None) -> None:
        self.chain, self.rack, self.places, self.old = chain, rack, places_of(rack), old or {}
        self.kinds = {nf["id"]: nf["nf"] for nf in chain["nfs"]}
        self.edges = [(edge[0], edge[1], exact(edge[2]) if len(edge) > 2 else Fraction(1)) for edge in chain["edges"]]
        self.into: dict[str, list[tuple[str, Fraction]]] = defaultdict(list)
        self.from_: dict[str, list[tuple[str, Fraction]]] = defaultdict(list)
        for tail, head, share in self.edges:
            self.into[head].append((tail, share))
            self.from_[tail].append((head, share))
        self.reach: dict[str, Fraction] = {}
        for nf in self.kinds:
            self._reach_of(nf)
        self.t_min, self.t_max = exact(chain["t_min_mbps"]), exact(chain["t_max_mbps"])
        self.bits = 8 * chain.get("packet_size", 1500)

    def _reach_of(self, nf: str) -> Fraction:
        if nf not in self.reach:
            shares = [self._reach_of(tail) * share for tail, share in self.into[nf]]
            self.reach[nf] = sum(shares, Fraction(0)) if shares else Fraction(1)
        return self.reach[nf]

    def ways(self) -> list[Way]:
        """All of them that keep d_max and reach t_min."""
        found = [way for placement in self._placements() for way in self._with_cores(placement)]
        return without_worse(found, [place.cores for place in self.places.values()])

    def _placements(self) -> Iterator[dict[str, str]]:
        where = []
        for kind in self.kinds.values():
            costs = self.rack["nfs"][kind]
            sites = [name for name, place in self.places.items() if place.cores and costs.get(place.kind)]
            where.append(sites + [SWITCH] * (costs.get("switch") is not None))
        limit = self.chain.get("d_max_us")
        for sites in product(*where):
            placement = dict(zip(self.kinds, sites, strict=True))
            latency_kept = limit is None or self.latency(placement) <= exact(limit) * (1 + TOLERANCE)
            if latency_kept and self.keeps_table_order(placement):
                yield placement

    def keeps_table_order(self, placement: Mapping[str, str]) -> bool:
        """An OpenFlow switch has fixed tables in a fixed order."""
        switch = self.rack.get("switch", {})
        if switch.get("kind", "pisa") == "pisa":
            return True
        order = {kind: at for at, kind in enumerate(switch.get("table_order", []))}
        on_switch = {nf for nf, site in placement.items() if site == SWITCH}
        if any(self.kinds[nf] not in order for nf in on_switch):
            return False
        return all(
            order[self.kinds[tail]] < order[self.kinds[head]]
            for tail, head, _ in self.edges
            if tail in on_switch and head in on_switch
        )

    def latency(self, placement: Mapping[str, str]) -> Fraction:
        """Of the longest path, us."""
        crossing = exact(self.rack.get("crossing_us", 0))

        def until_out(nf: str) -> Fraction:
            site = placement[nf]
            after = [crossing * changes(self._side(site), self._side(placement[head])) for head, _ in self.from_[nf]]
            rest = [one + until_out(head) for one, (head, _) in zip(after, self.from_[nf], strict=True)]
            return self._time(nf, site) + max(rest, default=crossing * changes(self._side(site), None))

        entry = next(nf for nf in self.kinds if not self.into[nf])
        return crossing * changes(None, self._side(placement[entry])) + until_out(entry)

    def _time(self, nf: str, site: str) -> Fraction:
        return Fraction(0) if site == SWITCH else exact(self.cost(nf, site)["cycles"]) / self.places[site].clock

    def cost(self, nf: str, site: str) -> Json:
        cost: Json = self.rack["nfs"][self.kinds[nf]][self.places[site].kind]
        return cost

    def _side(self, site: str) -> int | None:
        """The server on whose side of its NIC a site is; None: on the side of the switch and the world."""
        return None if site == SWITCH else self.places[site].server

    def groups(self, placement: Mapping[str, str]) -> list[tuple[str, list[str]]]:
        """Connected NFs on one device."""
        left = [nf for nf, site in placement.items() if site != SWITCH]
        groups = []
        while left:
            group, waiting = [], [left[0]]
            while waiting:
                nf = waiting.pop()
                if nf in left:
                    left.remove(nf)
                    group.append(nf)
                    beside = [head for head, _ in self.from_[nf]] + [tail for tail, _ in self.into[nf]]
                    waiting += [other for other in beside if placement[other] == placement[nf]]
            groups.append((placement[group[0]], group))
        return groups

    def shares_of_nics(self, placement: Mapping[str, str]) -> tuple[Fraction, ...]:
        """The share of packets into and out of each server."""
        shares = [[Fraction(0), Fraction(0)] for _ in self.rack["servers"]]
        moves: list[tuple[int | None, int | None, Fraction]] = []
        for nf, site in placement.items():
            if not self.into[nf]:
                moves.append((None, self._side(site), Fraction(1)))
            if not self.from_[nf]:
                moves.append((self._side(site), None, self.reach[nf]))
        moves += [
            (self._side(placement[tail]), self._side(placement[head]), self.reach[tail] * share)
            for tail, head, share in self.edges
        ]
        for source, target, share in moves:
            if source != target and target is not None:
                shares[target][0] += share
            if source != target and source is not None:
                shares[source][1] += share
        return tuple(share for pair in shares for share in pair)

    def group_rate(self, site: str, group: Sequence[str], cores: int) -> Fraction | None:
        """The largest rate of the chain; None: without a bound."""
        overheads = self.rack.get("overheads", {})
        cycles = sum((self.reach[nf] * exact(self.cost(nf, site)["cycles"]) for nf in group), Fraction(0))
        per_entry = exact(overheads.get("subgroup_cycles", 0))
        per_entry += exact(overheads.get("replica_cycles", 0)) if cores > 1 else 0
        entered = sum(
            (self.reach[tail] * share for nf in group for tail, share in self.into[nf] if tail not in group),
            Fraction(sum(not self.into[nf] for nf in group)),
        )
        cycles += entered * per_entry
        return cores * self.places[site].clock * self.bits / cycles if cycles else None

    def _useful_cores(self, site: str, group: Sequence[str]) -> list[tuple[int, Fraction]]:
        """Numbers of cores, each with its rate, that reach t_min; not beyond the fewest that reach t_max."""
        single = any(
            not self.cost(nf, site).get("replicable", True) or len(self.into[nf]) > 1 or len(self.from_[nf]) > 1
            for nf in group
        )
        useful = []
        for cores in range(1, (1 if single else self.places[site].cores) + 1):
            rate = self.group_rate(site, group, cores)
            rate = self.t_max if rate is None else min(rate, self.t_max)
            if rate >= self.t_min * (1 - TOLERANCE):
                useful.append((cores, max(rate, self.t_min)))
            if rate == self.t_max:
                break
        return useful

    def _with_cores(self, placement: Mapping[str, str]) -> Iterator[Way]:
        groups = self.groups(placement)
        shares = self.shares_of_nics(placement)
        tables = frozenset(nf for nf, site in placement.items() if site == SWITCH)
        for allocation in product(*(self._useful_cores(site, group) for site, group in groups)):
            used = dict.fromkeys(self.places, 0)
            for (site, _), (cores, _) in zip(groups, allocation, strict=True):
                used[site] += cores
            if all(used[name] <= place.cores for name, place in self.places.items()):
                cap = min([self.t_max, *(rate for _, rate in allocation)])
                named = tuple((*group, cores) for group, (cores, _) in zip(groups, allocation, strict=True))
                crosses = len(tables) < len(placement)
                moves = sum(placement[nf] != site for nf, site in self.old.items())
                yield Way(cap, tuple(used.values()), shares, tables, crosses, placement, named, moves)


def changes(one: int | None, other: int | None) -> int:
    """Of sides, from one to the other; two servers are a change to the switch's side and one away from it."""
    if one == other:
        return 0
    return 1 if one is None or other is None else 2


def without_worse(ways: list[Way], limits: Sequence[int]) -> list[Way]:
    """Those to which no other one has at least the cap and needs no more of anything; largest caps first."""
    scale = lcm(1, *(share.denominator for way in ways for share in way.nic_shares))
    bits = {nf: 1 << at for at, nf in enumerate(sorted({nf for way in ways for nf in way.tables}))}

    def needs(way: Way) -> tuple[tuple[int, ...], int]:
        return (*way.cores, way.crosses, way.moves, *(int(share * scale) for share in way.nic_shares)), sum(
            bits[nf] for nf in way.tables
        )

    each = [(way, *needs(way)) for way in ways]
    each.sort(key=lambda one: (-one[0].cap, sum(one[1]), one[2].bit_count()))
    kept: list[tuple[Way, tuple[int, ...], int]] = []
    for way, numbers, tables in each:
        if not any(
            not (other_tables & ~tables) and all(a <= b for a, b in zip(other, numbers, strict=True))
            for _, other, other_tables in kept
        ):
            kept.append((way, numbers, tables))
    return [way for way, _, _ in kept]
