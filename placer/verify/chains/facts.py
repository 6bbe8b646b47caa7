"""What follows from a chain, a rack and a site for each NF, in exact fractions (CONTRACTS 9). Written for the check
alone: placing computes the same in other ways."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor

from placer.rack.chain import Chain
from placer.rack.rack import MOST_TURNS, CoreCost, Rack

LIMIT_TOLERANCE = Fraction(1, 10**9)  # relative: by how much a comparison with a limit may be missed
SWITCH_SITE = -1  # the site of an NF on the switch, and the side of the world
Sites = Sequence[int]  # per NF the number of a core site, or SWITCH_SITE


@dataclass(frozen=True)
class Cores:
    """Equal cores: of a socket of a server, or of a SmartNIC. `first`: the number of the first one on its device.
    `shared`: whether subgroups may take turns on one."""

    name: str
    number: int
    first: int
    shared: bool

    def holds(self, cores: Iterable[int]) -> bool:
        """Whether cores, by their numbers on the device, are all of these."""
        return all(self.first <= core < self.first + self.number for core in cores)

    def short(self, turns: Iterable[int]) -> bool:
        """Whether cores are too few for subgroups that need one of so many turns each, or one core alone."""
        needed, beside = 0, 0
        for of in sorted(turns):
            if not beside:
                needed, beside = needed + 1, of
            beside -= 1
        return needed > self.number


@dataclass(frozen=True)
class CoreSite:
    """A server or a SmartNIC, as far as NFs may use it; of a server, one socket and one NIC. `pool`: the number of its
    cores. `side`: the number of the NIC, on whose inner side it is. `crossing`: cycles per packet between the two."""

    name: str
    server: int
    socket: int
    nic: str
    is_smartnic: bool
    pool: int
    side: int
    cores: Cores
    clock_mhz: Fraction
    crossing: Fraction

    @property
    def split_name(self) -> str:
        """What splits call it: the cores, and of a server with several NICs that one."""
        return f"{self.cores.name} {self.nic}" if self.nic else self.cores.name


def core_sites(rack: Rack) -> list[CoreSite]:
    """Each server, followed by its SmartNIC."""
    found: list[CoreSite] = []
    pool, side = -1, 0
    for at, server in enumerate(rack.servers):
        sockets = [(socket.cores, socket.reserved_cores) for socket in server.sockets]
        nics = [(nic.name, nic.socket) for nic in server.nics] or [("", 0)]
        first = 0
        for socket, (cores, reserved) in enumerate(sockets or [(server.cores, server.reserved_cores)]):
            pool += 1
            own = Cores(server.socket_names[socket], max(cores - reserved, 0), first, server.shared_cores)
            first += cores
            for number, (nic, near) in enumerate(nics):
                far = server.cross_socket_cycles if near != socket else Fraction(0)
                found.append(
                    CoreSite(server.name, at, socket, nic, False, pool, side + number, own, server.clock_mhz, far)
                )
        if (card := server.smartnic) is not None:
            pool, own = pool + 1, Cores(card.name, card.cores, 0, False)
            found.append(CoreSite(card.name, at, 0, "", True, pool, side, own, card.clock_mhz, Fraction(0)))
        side += len(nics)
    return found


def pools_of(sites: Sequence[CoreSite]) -> list[Cores]:
    """The cores of the sites, by the number of their pool."""
    return list({site.pool: site.cores for site in sites}.values())


@dataclass(frozen=True)
class Component:
    """Connected NFs of one chain on one core site. `nfs`: ascending. `each`: Mbps of the chain on one core; None
    without a bound. `each_of_several`: Mbps per core on several; None without a bound, 0 where one core must do."""

    site: int
    nfs: tuple[int, ...]
    each: Fraction | None
    each_of_several: Fraction | None

    def carries(self, cores: int | Fraction) -> Fraction | None:
        """The largest rate of the chain on so many cores, Mbps; None without a bound."""
        each = self.each if cores <= 1 else self.each_of_several
        return None if each is None else cores * each

    def most_turns(self, rate: Fraction, *, beyond: bool) -> int:
        """Of how many turns on a core one carries a rate that the core does, or more than it."""
        if self.each is None or not rate:
            return MOST_TURNS
        turns = self.each / rate
        return min(ceil(turns) - 1 if beyond else floor(turns), MOST_TURNS)

    def fewest(self, rate: Fraction, *, beyond: bool) -> int | None:
        """The fewest cores that carry a rate, or more than it; None if no number does."""
        if self.each is None or self.each > rate or (self.each == rate and not beyond):
            return 1
        each = self.each_of_several
        if each is None:
            return 2
        if not each:
            return None
        return max(2, floor(rate / each) + 1 if beyond else ceil(rate / each))


class ChainFacts:
    """A chain on a rack."""

    def __init__(self, chain: Chain, rack: Rack, sites: Sequence[CoreSite]) -> None:
        self.chain, self.rack, self.core_sites = chain, rack, sites
        self.tails: list[list[int]] = [[] for _ in chain.nfs]
        self.heads: list[list[int]] = [[] for _ in chain.nfs]
        for edge in chain.edges:
            self.tails[edge.head].append(edge.tail)
            self.heads[edge.tail].append(edge.head)
        self._components: dict[tuple[int, tuple[int, ...]], Component] = {}

    @cached_property
    def ordered(self) -> list[int]:
        """The NFs, each after those that lead to it."""
        done: list[int] = []
        while len(done) < len(self.chain.nfs):
            done += [
                nf
                for nf in range(len(self.chain.nfs))
                if nf not in done and all(tail in done for tail in self.tails[nf])
            ]
        return done

    @cached_property
    def reached(self) -> list[Fraction]:
        """Per NF the share of the chain's packets that reaches it."""
        share = [Fraction(not tails) for tails in self.tails]
        for nf in self.ordered:
            for edge in self.chain.edges:
                if edge.tail == nf:
                    share[edge.head] += share[nf] * edge.share
        return share

    @cached_property
    def flows(self) -> list[tuple[int, int, Fraction]]:
        """From which NF to which (-1: the world) what share of the chain's packets goes."""
        return [
            *((-1, nf, self.reached[nf]) for nf, tails in enumerate(self.tails) if not tails),
            *((edge.tail, edge.head, self.reached[edge.tail] * edge.share) for edge in self.chain.edges),
            *((nf, -1, self.reached[nf]) for nf, heads in enumerate(self.heads) if not heads),
        ]

    def cost(self, nf: int, site: int) -> CoreCost | None:
        """What an NF costs on a core site; None if it cannot run there."""
        costs = self.rack.costs[self.chain.nfs[nf].nf]
        cost = costs.smartnic if self.core_sites[site].is_smartnic else costs.server
        return cost and cost.of(self.chain.nfs[nf], self.chain.packet_size)

    def blocks(self, nf: int) -> int | None:
        """Of table memory that an NF takes on the switch; None if it cannot run there."""
        return self.rack.costs[self.chain.nfs[nf].nf].switch_blocks

    def keeps_table_order(self, sites: Sites) -> bool:
        """Whether the NFs on an OpenFlow switch have tables there, and follow their order along each edge."""
        switch = self.rack.switch
        if switch.kind.value != "openflow":
            return True
        place = {kind: number for number, kind in enumerate(switch.table_order)}
        if any(site == SWITCH_SITE and nf.nf not in place for nf, site in zip(self.chain.nfs, sites, strict=True)):
            return False
        kinds = [nf.nf for nf in self.chain.nfs]
        return all(
            place[kinds[edge.tail]] < place[kinds[edge.head]]
            for edge in self.chain.edges
            if sites[edge.tail] == sites[edge.head] == SWITCH_SITE
        )

    def keeps_sockets(self, sites: Sites) -> bool:
        """Whether connected NFs on a server are at one socket and one NIC, of the first NFs or of all."""
        names = [None if site == SWITCH_SITE else self.core_sites[site].name for site in sites]
        inside = ((edge.tail, edge.head) for edge in self.chain.edges if max(edge.tail, edge.head) < len(sites))
        return all(sites[tail] == sites[head] or names[tail] != names[head] for tail, head in inside)

    def side(self, sites: Sites, nf: int) -> int:
        """The NIC on whose side an NF is; SWITCH_SITE for the world."""
        return SWITCH_SITE if nf < 0 or sites[nf] == SWITCH_SITE else self.core_sites[sites[nf]].side

    def share_by_nic(self, sites: Sites) -> Mapping[tuple[int, str], Fraction]:
        """By NIC and direction, the share of the chain's packets that it carries."""
        shares: dict[tuple[int, str], Fraction] = {}
        for tail, head, share in self.flows:
            for key in _find_crossings(self.side(sites, tail), self.side(sites, head)):
                shares[key] = shares.get(key, Fraction(0)) + share
        return shares

    def latency_us(self, sites: Sites) -> Fraction:
        """Of the longest path from the world to the world."""
        done: dict[int, Fraction] = {}
        for nf in self.ordered:
            before = [(done[tail], tail) for tail in self.tails[nf]] or [(Fraction(0), -1)]
            arrived = max(at + self._crossing(sites, tail, nf) for at, tail in before)
            done[nf] = arrived + self._time(nf, sites[nf])
        return max(done[nf] + self._crossing(sites, nf, -1) for nf, heads in enumerate(self.heads) if not heads)

    def _crossing(self, sites: Sites, tail: int, head: int) -> Fraction:
        return len(_find_crossings(self.side(sites, tail), self.side(sites, head))) * self.rack.crossing_us

    def _time(self, nf: int, site: int) -> Fraction:
        cost = None if site == SWITCH_SITE else self.cost(nf, site)
        return cost.cycles / self.core_sites[site].clock_mhz if cost else Fraction(0)

    def components(self, sites: Sites) -> list[Component]:
        """The subgroups: connected NFs on one core site."""
        left = {nf for nf, site in enumerate(sites) if site != SWITCH_SITE}
        found = []
        while left:
            nfs = tuple(sorted(self._connect(left.pop(), sites)))
            left.difference_update(nfs)
            found.append(self.component(sites[nfs[0]], nfs))
        return found

    def _connect(self, start: int, sites: Sites) -> set[int]:
        found, waiting = {start}, [start]
        while waiting:
            nf = waiting.pop()
            for other in (*self.tails[nf], *self.heads[nf]):
                if sites[other] == sites[nf] and other not in found:
                    found.add(other)
                    waiting.append(other)
        return found

    def component(self, site: int, nfs: tuple[int, ...]) -> Component:
        """Some connected NFs on a core site."""
        if (site, nfs) not in self._components:
            self._components[site, nfs] = self._component(site, nfs)
        return self._components[site, nfs]

    def _component(self, site: int, nfs: tuple[int, ...]) -> Component:
        costs = [cost for nf in nfs if (cost := self.cost(nf, site))]
        own = sum((self.reached[nf] * cost.cycles for nf, cost in zip(nfs, costs, strict=True)), Fraction(0))
        entering = sum((share for tail, head, share in self.flows if head in nfs and tail not in nfs), Fraction(0))
        branched = any(len(self.tails[nf]) > 1 or len(self.heads[nf]) > 1 for nf in nfs)
        once = own + entering * (self.rack.overheads.subgroup_cycles + self.core_sites[site].crossing)
        several = once + entering * self.rack.overheads.replica_cycles
        bits = self.core_sites[site].clock_mhz * 8 * self.chain.packet_size
        alone = branched or not all(cost.replicable for cost in costs)
        return Component(site, nfs, _rate(bits, once), Fraction(0) if alone else _rate(bits, several))


def _rate(bits: Fraction, cycles: Fraction) -> Fraction | None:
    return bits / cycles if cycles else None


def _find_crossings(one: int, other: int) -> list[tuple[int, str]]:
    """NICs and directions that packets cross from side to side."""
    ways = ((one, "out"), (other, "in"))
    return [] if one == other else [(side, way) for side, way in ways if side != SWITCH_SITE]


def on_switch(all_sites: Sequence[Sites]) -> Iterator[tuple[int, int]]:
    """The chains and NFs on the switch."""
    for chain, sites in enumerate(all_sites):
        yield from ((chain, nf) for nf, site in enumerate(sites) if site == SWITCH_SITE)
