"""Checks an ANSWER against CHAINS and RACK (CONTRACTS 9) in exact fractions, by the facts of `chain_ways.py`.

No code of placing takes part. Comparisons allow 1e-9 relative.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from tests.placer.rack.chain_ways import SWITCH, TOLERANCE, ChainWays, Json, exact, places_of
from tests.placer.rack.table_search import fits_stages

PLANNED = ("optimal", "feasible")
STATUSES = (*PLANNED, "infeasible", "unknown")


def faults(chains: Json, rack: Json, answer: Json) -> list[str]:
    """All that is wrong with an answer; nothing if it is sound. Whether it is the best one is not checked."""
    return list(_Check(chains["chains"], rack, answer).all())


def _above(value: Fraction, limit: Fraction) -> bool:
    return value > limit + TOLERANCE * abs(limit)


class _Check:
    def __init__(self, chains: Sequence[Json], rack: Json, answer: Json) -> None:
        self.chains, self.rack, self.answer = {one["name"]: one for one in chains}, rack, answer
        self.places = places_of(rack)
        self.ways = {one["name"]: ChainWays(one, rack) for one in chains}

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
        wrong = [f"{one['name']}: {fault}" for one in placed for fault in self._placement(one)]
        yield from wrong
        if not wrong:
            yield from (f"{one['name']}: {fault}" for one in placed for fault in self._chain(one))
            yield from self._devices(placed)
            yield from self._stages(placed)
            yield from self._sums(placed)

    def _placement(self, one: Json) -> Iterator[str]:
        """Whether each NF is where it can run."""
        kinds = self.ways[one["name"]].kinds
        if set(one["placement"]) != set(kinds):
            yield "places other NFs than it has"
            return
        for nf, site in one["placement"].items():
            if site != SWITCH and site not in self.places:
                yield f"{nf} is on {site}, which the rack has not"
            elif self.rack["nfs"][kinds[nf]].get(SWITCH if site == SWITCH else self.places[site].kind) is None:
                yield f"{nf} cannot run on {site}"

    def _chain(self, one: Json) -> Iterator[str]:
        ways, placement, rate = self.ways[one["name"]], one["placement"], exact(one["rate_mbps"])
        if _above(ways.t_min, rate):
            yield f"rate {float(rate)} is below t_min {float(ways.t_min)}"
        if _above(rate, ways.t_max):
            yield f"rate {float(rate)} is above t_max {float(ways.t_max)}"
        latency, limit = ways.latency(placement), ways.chain.get("d_max_us")
        if abs(latency - exact(one["latency_us"])) > TOLERANCE * max(latency, abs(exact(one["latency_us"]))):
            yield f"latency {one['latency_us']} is {float(latency)}"
        if limit is not None and _above(latency, exact(limit)):
            yield f"latency {float(latency)} is above d_max {limit}"
        if not ways.keeps_table_order(placement):
            yield "its NFs on the switch do not follow the order of the tables"
        stated = sorted((group["on"], *sorted(group["nfs"])) for group in one["subgroups"])
        if stated != sorted((site, *sorted(nfs)) for site, nfs in ways.groups(placement)):
            yield "the subgroups are not the connected NFs of each device"
            return
        for group in one["subgroups"]:
            yield from self._subgroup(ways, group, rate)

    def _subgroup(self, ways: ChainWays, group: Json, rate: Fraction) -> Iterator[str]:
        """Whether a subgroup's cores are whole, may be several, and carry the rate."""
        name, cores = f"subgroup {' '.join(group['nfs'])} on {group['on']}", group["cores"]
        if isinstance(cores, bool) or not isinstance(cores, int) or cores < 1:
            yield f"{name} has {cores} cores"
            return
        for nf in group["nfs"] if cores > 1 else ():
            if not ways.cost(nf, group["on"]).get("replicable", True):
                yield f"{name} has {cores} cores, and {nf} is not replicable"
            if max(len(ways.into[nf]), len(ways.from_[nf])) > 1:
                yield f"{name} has {cores} cores, and {nf} branches or merges"
        carried = ways.group_rate(group["on"], group["nfs"], cores)
        if carried is not None and _above(rate, carried):
            yield f"{name} needs {float(rate * cores / carried)} cores, not {cores}"

    def _devices(self, placed: Iterable[Json]) -> Iterator[str]:
        """Whether devices have the cores, and NICs carry the rates."""
        used = dict.fromkeys(self.places, 0)
        carried = [Fraction(0)] * (2 * len(self.rack["servers"]))
        for one in placed:
            for group in one["subgroups"]:
                used[group["on"]] += group["cores"]
            for nic, share in enumerate(self.ways[one["name"]].shares_of_nics(one["placement"])):
                carried[nic] += share * exact(one["rate_mbps"])
        for name, place in self.places.items():
            if used[name] > place.cores:
                yield f"{name}: {used[name]} cores are used, of {place.cores}"
        for nic, mbps in enumerate(carried):
            server, way = self.rack["servers"][nic // 2], ("in", "out")[nic % 2]
            limit = exact(server["nic_mbps"])
            if _above(mbps, limit):
                yield f"{server['name']}: its NIC carries {float(mbps)} Mbps {way}, of {float(limit)}"

    def _stages(self, placed: Iterable[Json]) -> Iterator[str]:
        switch = self.rack.get("switch", {})
        if switch.get("stages") is None:
            return
        placements: dict[str, Mapping[str, str]] = {one["name"]: one["placement"] for one in placed}
        blocks = {
            (name, nf): self.rack["nfs"][self.ways[name].kinds[nf]][SWITCH]["blocks"]
            for name, placement in placements.items()
            for nf, site in placement.items()
            if site == SWITCH
        }
        before = {
            (name, nf): {(name, tail) for tail, _ in self.ways[name].into[nf]} & blocks.keys() for name, nf in blocks
        }
        stages = switch["stages"] - switch.get("reserved_stages", 0)
        if any(site != SWITCH for placement in placements.values() for site in placement.values()):
            stages -= self.rack.get("overheads", {}).get("stages", 0)
        if not fits_stages(blocks, before, max(stages, 0), switch.get("blocks_per_stage", 1)):
            yield f"switch: the {len(blocks)} tables do not fit {max(stages, 0)} stages"

    def _sums(self, placed: Iterable[Json]) -> Iterator[str]:
        rates = [(exact(one["rate_mbps"]), self.ways[one["name"]].t_min) for one in placed]
        marginal, total = sum((rate - least for rate, least in rates), Fraction(0)), sum(rate for rate, _ in rates)
        stated, bound = exact(self.answer["marginal_mbps"]), exact(self.answer["bound_mbps"])
        # what is lost in a difference of floating-point numbers is relative to the rates
        if abs(marginal - stated) > TOLERANCE * total:
            yield f"marginal {float(stated)} is {float(marginal)}"
        if _above(stated, bound):
            yield f"marginal {float(stated)} is above the bound {float(bound)}"
        if self.answer["status"] == "optimal" and bound - stated > 100 * TOLERANCE * max(total, 1):
            yield f"optimal, and the bound {float(bound)} is above the marginal {float(stated)}"
