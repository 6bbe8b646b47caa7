"""Checks an ANSWER against CHAINS and RACK (CONTRACTS 9) in exact fractions, path by path; no code of placing.

It follows each path of packets through a chain and adds up what they cost, so it shares no formula with
`exhaustive.py` either. Comparisons allow 1e-9 relative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

Json = Mapping[str, Any]
ALLOWED = Fraction(1, 10**9)
PLANNED = ("optimal", "feasible")
STATUSES = (*PLANNED, "infeasible", "unknown")


def faults(chains: Json, rack: Json, answer: Json) -> list[str]:
    """All that is wrong with an answer; nothing if it is sound. Whether it is the best one is not checked."""
    return list(_Check(chains["chains"], rack, answer).all())


def _exact(value: object) -> Fraction:
    return Fraction(str(value))


def _above(value: Fraction, limit: Fraction) -> bool:
    return value > limit + ALLOWED * abs(limit)


def _differ(one: Fraction, other: Fraction) -> bool:
    return abs(one - other) > ALLOWED * max(abs(one), abs(other))


@dataclass(frozen=True)
class _Path:
    """One way of packets through a chain, with the share that takes it."""

    nfs: tuple[str, ...]
    share: Fraction


def paths(chain: Json) -> list[_Path]:
    """All paths from the entry to where packets leave."""
    heads = {edge[1] for edge in chain["edges"]}
    found = []
    waiting = [_Path((nf["id"],), Fraction(1)) for nf in chain["nfs"] if nf["id"] not in heads]
    while waiting:
        path = waiting.pop()
        edges = [edge for edge in chain["edges"] if edge[0] == path.nfs[-1]]
        waiting += [
            _Path((*path.nfs, edge[1]), path.share * (_exact(edge[2]) if len(edge) > 2 else 1)) for edge in edges
        ]
        found += [] if edges else [path]
    return found


class _Check:
    def __init__(self, chains: Sequence[Json], rack: Json, answer: Json) -> None:
        self.chains, self.rack, self.answer = {one["name"]: one for one in chains}, rack, answer
        self.device: dict[str, tuple[str, str, Json]] = {}
        for server in rack["servers"]:
            self.device[server["name"]] = ("server", server["name"], server)
            if nic := server.get("smartnic"):
                self.device[nic["name"]] = ("smartnic", server["name"], nic)

    def all(self) -> Iterator[str]:
        """Faults of the whole answer, then of each chain, then of what chains share."""
        status, placed = self.answer["status"], self.answer["chains"]
        if status not in STATUSES:
            yield f"status {status} is none of {', '.join(STATUSES)}"
        if self.answer["proven"] != (status in ("optimal", "infeasible")):
            yield f"status {status} with proven {self.answer['proven']}"
        if status not in PLANNED:
            if placed:
                yield f"status {status} with chains"
            return
        if sorted(one["name"] for one in placed) != sorted(self.chains):
            yield "the placed chains are not those that were asked for"
            return
        sound = True
        for one in placed:
            places = list(self._placement(one))
            sound &= not places
            yield from (f"{one['name']}: {fault}" for fault in places)
        if sound:
            for one in placed:
                yield from (f"{one['name']}: {fault}" for fault in self._chain(one))
            yield from self._cores(placed)
            yield from self._nics(placed)
            yield from self._stages(placed)
            yield from self._sums(placed)

    def _placement(self, one: Json) -> Iterator[str]:
        """Whether each NF is where it can run."""
        kinds = {nf["id"]: nf["nf"] for nf in self.chains[one["name"]]["nfs"]}
        if set(one["placement"]) != set(kinds):
            yield "places other NFs than it has"
            return
        for nf, site in one["placement"].items():
            if site != "switch" and site not in self.device:
                yield f"{nf} is on {site}, which the rack has not"
            elif self.rack["nfs"][kinds[nf]].get("switch" if site == "switch" else self.device[site][0]) is None:
                yield f"{nf} cannot run on {site}"

    def _chain(self, one: Json) -> Iterator[str]:
        chain = self.chains[one["name"]]
        rate, least, largest = (_exact(x) for x in (one["rate_mbps"], chain["t_min_mbps"], chain["t_max_mbps"]))
        if _above(least, rate):
            yield f"rate {float(rate)} is below t_min {float(least)}"
        if _above(rate, largest):
            yield f"rate {float(rate)} is above t_max {float(largest)}"
        latency, limit = self._latency(chain, one["placement"]), chain.get("d_max_us")
        if _differ(latency, _exact(one["latency_us"])):
            yield f"latency {one['latency_us']} is {float(latency)}"
        if limit is not None and _above(latency, _exact(limit)):
            yield f"latency {float(latency)} is above d_max {limit}"
        stated = sorted((group["on"], *sorted(group["nfs"])) for group in one["subgroups"])
        if stated != sorted((site, *sorted(nfs)) for site, nfs in _components(chain, one["placement"])):
            yield "the subgroups are not the connected NFs of each device"
            return
        for group in one["subgroups"]:
            yield from self._subgroup(chain, group, rate)
        yield from self._table_order(chain, one["placement"])

    def _latency(self, chain: Json, placement: Mapping[str, str]) -> Fraction:
        kinds = {nf["id"]: nf["nf"] for nf in chain["nfs"]}
        crossing = _exact(self.rack.get("crossing_us", 0))
        longest = []
        for path in paths(chain):
            sites = [placement[nf] for nf in path.nfs]
            costs = [self._cost(kinds[nf], placement[nf]) for nf in path.nfs if placement[nf] != "switch"]
            clocks = [_exact(self.device[site][2]["clock_mhz"]) for site in sites if site != "switch"]
            times = [_exact(cost["cycles"]) / clock for cost, clock in zip(costs, clocks, strict=True)]
            longest.append(sum(times, Fraction(0)) + crossing * sum(1 for _ in self._crossings(sites)))
        return max(longest)

    def _crossings(self, sites: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The server whose NIC is crossed, and the direction, for each side change of a path from world to world."""
        sides = ["", *("" if site == "switch" else self.device[site][1] for site in sites), ""]
        for one, other in pairwise(sides):
            if one != other:
                yield from ((server, way) for server, way in ((one, "out"), (other, "in")) if server)

    def _cost(self, kind: str, site: str) -> Json:
        cost: Json = self.rack["nfs"][kind][self.device[site][0]]
        return cost

    def _subgroup(self, chain: Json, group: Json, rate: Fraction) -> Iterator[str]:
        """Whether a subgroup's cores are whole, may be several, and carry the rate."""
        name, cores = f"subgroup {' '.join(group['nfs'])} on {group['on']}", group["cores"]
        if isinstance(cores, bool) or not isinstance(cores, int) or cores < 1:
            yield f"{name} has {cores} cores"
            return
        kinds = {nf["id"]: nf["nf"] for nf in chain["nfs"]}
        ends = [[edge[end] for edge in chain["edges"]] for end in (0, 1)]
        if cores > 1:
            for nf in group["nfs"]:
                if not self._cost(kinds[nf], group["on"]).get("replicable", True):
                    yield f"{name} has {cores} cores, and {nf} is not replicable"
                if max(end.count(nf) for end in ends) > 1:
                    yield f"{name} has {cores} cores, and {nf} branches or merges"
        cycles = self._cycles(chain, kinds, group)
        clock = _exact(self.device[group["on"]][2]["clock_mhz"])
        if _above(rate * cycles, cores * clock * 8 * chain.get("packet_size", 1500)):
            yield f"{name} needs {float(rate * cycles / clock / 8 / chain.get('packet_size', 1500))} cores, not {cores}"

    def _cycles(self, chain: Json, kinds: Mapping[str, str], group: Json) -> Fraction:
        """Per packet of the chain, over all its paths; each time that packets enter costs overheads."""
        overheads, members = self.rack.get("overheads", {}), set(group["nfs"])
        entering = _exact(overheads.get("subgroup_cycles", 0))
        if group["cores"] > 1:
            entering += _exact(overheads.get("replica_cycles", 0))
        total = Fraction(0)
        for path in paths(chain):
            inside = [nf in members for nf in path.nfs]
            entries = sum(now and not before for before, now in pairwise([False, *inside]))
            own = sum(
                (_exact(self._cost(kinds[nf], group["on"])["cycles"]) for nf in path.nfs if nf in members), Fraction(0)
            )
            total += path.share * (own + entries * entering)
        return total

    def _table_order(self, chain: Json, placement: Mapping[str, str]) -> Iterator[str]:
        """Whether consecutive NFs on an OpenFlow switch follow the order of its tables."""
        switch = self.rack.get("switch", {})
        if switch.get("kind", "pisa") == "pisa":
            return
        order, kinds = list(switch.get("table_order", [])), {nf["id"]: nf["nf"] for nf in chain["nfs"]}
        for nf, site in placement.items():
            if site == "switch" and kinds[nf] not in order:
                yield f"{nf} has no table on the switch"
                return
        for path in paths(chain):
            for one, other in pairwise(path.nfs):
                both = placement[one] == placement[other] == "switch"
                if both and order.index(kinds[one]) >= order.index(kinds[other]):
                    yield f"the table of {other} is not after that of {one}"

    def _cores(self, placed: Iterable[Json]) -> Iterator[str]:
        used = dict.fromkeys(self.device, 0)
        for one in placed:
            for group in one["subgroups"]:
                used[group["on"]] += group["cores"]
        for name, (_, _, device) in self.device.items():
            usable = max(device["cores"] - device.get("reserved_cores", 0), 0)
            if used[name] > usable:
                yield f"{name}: {used[name]} cores are used, of {usable}"

    def _nics(self, placed: Iterable[Json]) -> Iterator[str]:
        carried: dict[tuple[str, str], Fraction] = {}
        for one in placed:
            for path in paths(self.chains[one["name"]]):
                for crossing in self._crossings([one["placement"][nf] for nf in path.nfs]):
                    carried[crossing] = carried.get(crossing, Fraction(0)) + path.share * _exact(one["rate_mbps"])
        for (server, way), mbps in carried.items():
            limit = _exact(self.device[server][2]["nic_mbps"])
            if _above(mbps, limit):
                yield f"{server}: its NIC carries {float(mbps)} Mbps {way}, of {float(limit)}"

    def _stages(self, placed: Iterable[Json]) -> Iterator[str]:
        switch = self.rack.get("switch", {})
        if switch.get("stages") is None:
            return
        stages, crosses = switch["stages"] - switch.get("reserved_stages", 0), False
        tables: dict[tuple[str, str], int] = {}
        edges: list[tuple[tuple[str, str], tuple[str, str]]] = []
        for one in placed:
            name, placement = one["name"], one["placement"]
            kinds = {nf["id"]: nf["nf"] for nf in self.chains[name]["nfs"]}
            crosses |= any(site != "switch" for site in placement.values())
            for nf, site in placement.items():
                if site == "switch":
                    tables[name, nf] = self.rack["nfs"][kinds[nf]]["switch"]["blocks"]
            edges += [((name, edge[0]), (name, edge[1])) for edge in self.chains[name]["edges"]]
        if crosses:
            stages -= self.rack.get("overheads", {}).get("stages", 0)
        edges = [(tail, head) for tail, head in edges if tail in tables and head in tables]
        if not _tables_fit(tables, edges, max(stages, 0), switch.get("blocks_per_stage", 1)):
            yield f"switch: the {len(tables)} tables do not fit {max(stages, 0)} stages"

    def _sums(self, placed: Iterable[Json]) -> Iterator[str]:
        rates = [(_exact(one["rate_mbps"]), _exact(self.chains[one["name"]]["t_min_mbps"])) for one in placed]
        marginal, total = sum((rate - least for rate, least in rates), Fraction(0)), sum(rate for rate, _ in rates)
        stated, bound = _exact(self.answer["marginal_mbps"]), _exact(self.answer["bound_mbps"])
        # what is lost in a difference of floating-point numbers is relative to the rates
        if abs(marginal - stated) > ALLOWED * total:
            yield f"marginal {float(stated)} is {float(marginal)}"
        if _above(stated, bound):
            yield f"marginal {float(stated)} is above the bound {float(bound)}"
        if self.answer["status"] == "optimal" and bound - stated > 100 * ALLOWED * max(total, 1):
            yield f"optimal, and the bound {float(bound)} is above the marginal {float(stated)}"


def _components(chain: Json, placement: Mapping[str, str]) -> list[tuple[str, frozenset[str]]]:
    """Connected NFs on one device: sets grow together along edges."""
    member = {nf: {nf} for nf in placement}
    for tail, head, *_ in chain["edges"]:
        if placement[tail] == placement[head] and member[tail] is not member[head]:
            member[tail] |= member[head]
            for nf in member[head]:
                member[nf] = member[tail]
    groups = {id(group): (placement[nf], frozenset(group)) for nf, group in member.items()}
    return [(site, nfs) for site, nfs in groups.values() if site != "switch"]


def _tables_fit(
    tables: Mapping[tuple[str, str], int],
    edges: Sequence[tuple[tuple[str, str], tuple[str, str]]],
    stages: int,
    most: int,
) -> bool:
    """Whether tables fit: each in turn, after those before it, takes every stage where it fits."""
    left, order = list(tables), []
    while left:
        ready = [one for one in left if not any(head == one and tail in left for tail, head in edges)]
        order += sorted(ready, key=lambda one: -tables[one])
        left = [one for one in left if one not in ready]
    after: dict[tuple[str, str], int] = {}
    for one in reversed(order):
        after[one] = max((after[head] + 1 for tail, head in edges if tail == one), default=0)
    free, stage_of = [most] * stages, {}

    def lay(at: int) -> bool:
        if at == len(order):
            return True
        one = order[at]
        first = max((stage_of[tail] + 1 for tail, head in edges if head == one), default=0)
        for stage in range(first, stages - after[one]):
            if free[stage] >= tables[one]:
                free[stage] -= tables[one]
                stage_of[one] = stage
                if lay(at + 1):
                    return True
                free[stage] += tables[one]
        return False

    return lay(0)
