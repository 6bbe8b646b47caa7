"""Regions of a rack: servers that chains connect, with all chains on them, each an instance of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from placer.rack.chain import Chain, TableId
from placer.rack.plan import SWITCH_SITE, ChainPlan, Layout, RackPlan
from placer.rack.rack import Rack, Server
from placer.rack.replanning.moves import GONE_SITE, NEW_SITE
from placer.rack.replanning.replan_search import Replanning
from placer.rack.search.fleet_bound import classes_of
from placer.rack.stages.stage_oracles import StageOracle, stage_oracle


@dataclass(frozen=True)
class Region:
    """Servers, and the chains on them; by index."""

    servers: tuple[int, ...]
    chains: tuple[int, ...]


@dataclass(frozen=True)
class _Beside:
    """Whether tables of a region fit the switch beside those of all other chains."""

    stages: StageOracle
    chains: Sequence[int]
    others: frozenset[TableId]

    def fits(self, tables: frozenset[TableId]) -> bool:
        return self.stages.fits(self.others | {(self.chains[chain], nf) for chain, nf in tables})


class Regions:
    """Makes regions of a rack. `kept`: per chain and NF, as `kept_sites` returns them."""

    def __init__(self, chains: Sequence[Chain], rack: Rack, kept: Sequence[Sequence[int]]) -> None:
        self.chains, self.rack, self.kept = chains, rack, kept
        self.stages = stage_oracle(rack, chains)
        self.class_of = {chain: number for number, same in enumerate(classes_of(chains)) for chain in same}
        self.devices_of = [
            [number for number, device in enumerate(rack.devices) if device.server == server]
            for server in range(len(rack.servers))
        ]

    def every(self) -> tuple[list[Region], list[int]]:
        """Servers that chains connect; and chains that are on no server yet and need a place."""
        joined = list(range(len(self.rack.servers)))
        homes: dict[int, int] = {}
        loose: list[int] = []
        alone: list[int] = []
        for chain, kept in enumerate(self.kept):
            servers = sorted({self.rack.devices[site].server for site in kept if site >= 0})
            if not servers:
                (alone if set(kept) == {SWITCH_SITE} else loose).append(chain)
                continue
            homes[chain] = servers[0]
            roots = {_root(joined, server) for server in servers}
            for root in roots:
                joined[root] = min(roots)
        members: dict[int, tuple[list[int], list[int]]] = {}
        for server in range(len(joined)):
            members.setdefault(_root(joined, server), ([], []))[0].append(server)
        for chain, server in homes.items():
            members[_root(joined, server)][1].append(chain)
        regions = [self.of(*both) for both in members.values()] + [self.of([], [chain]) for chain in alone]
        return regions, sorted(loose, key=lambda chain: -self.chains[chain].slo.t_min_mbps)

    def of(self, servers: Sequence[int], chains: Sequence[int]) -> Region:
        """A region; chains are ordered such that those of equal regions correspond."""
        ordered = sorted(chains, key=lambda chain: (self.class_of[chain], self._keep_on(chain, servers)))
        return Region(tuple(servers), tuple(ordered))

    def join(self, regions: Sequence[Region]) -> Region:
        """One region of several."""
        servers = [server for region in regions for server in region.servers]
        return self.of(servers, [chain for region in regions for chain in region.chains])

    def devices(self, servers: Sequence[int]) -> list[int]:
        return [device for server in servers for device in self.devices_of[server]]

    def _keep_on(self, chain: int, servers: Sequence[int]) -> tuple[int, ...]:
        """The old sites of a chain as a rack of these servers counts them."""
        local = {device: at for at, device in enumerate(self.devices(servers))} | {
            SWITCH_SITE: SWITCH_SITE,
            NEW_SITE: NEW_SITE,
        }
        return tuple(local.get(site, GONE_SITE) for site in self.kept[chain])

    def key(self, region: Region) -> object:
        """Equal for regions that differ in names only."""
        chains = tuple((self.class_of[chain], self._keep_on(chain, region.servers)) for chain in region.chains)
        return tuple(_features(self.rack.servers[server]) for server in region.servers), chains

    def instance(
        self, region: Region, others: frozenset[TableId], empty: Sequence[Server] = (), *, split: bool = True
    ) -> Replanning:
        """A region by itself.

        `others`: tables of other chains that are on the switch, too. `empty`: servers beside those of the region.
        `split`: as of `Replanning`.
        """
        rack = replace(self.rack, servers=(*(self.rack.servers[server] for server in region.servers), *empty))
        kept = [self._keep_on(chain, region.servers) for chain in region.chains]
        chains = [self.chains[chain] for chain in region.chains]
        return Replanning(chains, rack, kept, _Beside(self.stages, region.chains, others), split)

    def placed(self, region: Region, plan: RackPlan) -> dict[int, ChainPlan]:
        """The chains of a region's plan on the whole rack, by index."""
        own = self.devices(region.servers)
        found = {}
        for number, one in zip(region.chains, plan.chains, strict=True):
            sites = tuple(SWITCH_SITE if site == SWITCH_SITE else own[site] for site in one.layout.sites)
            found[number] = ChainPlan(Layout(self.chains[number], self.rack, sites), one.rate_mbps, one.cores)
        return found

    def empty(self, number: int) -> list[Server]:
        """So many new servers of each kind."""
        kinds = {_features(server): server for server in self.rack.servers}
        return [_rename(server, f"{at}") for server in kinds.values() for at in range(number)]


def _root(joined: list[int], server: int) -> int:
    while joined[server] != server:
        server = joined[server]
    return server


def _features(server: Server) -> object:
    nic = server.smartnic
    return server.usable_cores, server.clock_mhz, server.nic_mbps, nic and (nic.cores, nic.clock_mhz)


def _rename(server: Server, name: str) -> Server:
    nic = server.smartnic and replace(server.smartnic, name=f"nic {name}")
    return replace(server, name=name, smartnic=nic)
