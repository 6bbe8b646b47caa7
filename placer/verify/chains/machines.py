"""What chains share, and how much of it there is: cores, NICs, table memory; by server, or equal servers together."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from placer.rack.rack import Rack, Server
from placer.verify.chains.claims import LeafPrices
from placer.verify.chains.facts import LIMIT_TOLERANCE, Cores, CoreSite, core_sites, pools_of


@dataclass(frozen=True)
class Machines:
    """The machines that prices are of. `rack`: with one server for each machine. `sizes`: how many equal servers a
    machine stands for. `together`: whether a machine stands for all servers that are equal: then chains may be split
    over them."""

    rack: Rack
    sizes: tuple[int, ...]
    together: bool

    @cached_property
    def sites(self) -> list[CoreSite]:
        return core_sites(self.rack)

    @cached_property
    def pools(self) -> list[Cores]:
        """The cores of sites, by the numbers of their pools."""
        return pools_of(self.sites)

    @property
    def cores(self) -> list[int]:
        """By pool, of all servers that it stands for."""
        sizes = {site.pool: self.sizes[site.server] for site in self.sites}
        return [pool.number * sizes[number] for number, pool in enumerate(self.pools)]

    @cached_property
    def nics(self) -> list[str]:
        """The names of NICs."""
        return [name for server in self.rack.servers for name in server.nic_names]

    @property
    def nic_mbps(self) -> list[Fraction]:
        """By NIC, of all servers that a machine stands for, with what is allowed."""
        each = zip(self.rack.servers, self.sizes, strict=True)
        rates = [(mbps * size) for server, size in each for mbps in nic_rates(server)]
        return [mbps * (1 + LIMIT_TOLERANCE) for mbps in rates]

    @property
    def blocks(self) -> int | None:
        """Of table memory in all stages; None without a bound."""
        switch = self.rack.switch
        if switch.stages is None:
            return None
        return max(switch.stages - switch.reserved_stages, 0) * switch.blocks_per_stage

    def price_sites(self, prices: LeafPrices) -> "SitePrices":
        """Prices by number. Raises ValueError when they name what there is not, or are negative."""
        names = [pool.name for pool in self.pools]
        for given, known in ((prices.cores, names), (prices.nic_in, self.nics), (prices.nic_out, self.nics)):
            if unknown := sorted(set(given) - set(known)):
                raise ValueError(f"a price of {unknown[0]}, which is not one of the machines")
        every = [*prices.cores.values(), *prices.nic_in.values(), *prices.nic_out.values(), *prices.cuts.values()]
        if min([prices.blocks, *every]) < 0:
            raise ValueError("a price is negative")
        if self.blocks is None and prices.blocks:
            raise ValueError("a price of table memory, which is without a bound")
        none = Fraction(0)
        nic = [(prices.nic_in.get(name, none), prices.nic_out.get(name, none)) for name in self.nics]
        return SitePrices(
            prices.gain,
            tuple(prices.cores.get(name, none) for name in names),
            tuple(price for pair in nic for price in pair),
            prices.blocks,
        )

    def worth(self, prices: "SitePrices") -> Fraction:
        """Of everything, at these prices."""
        total = sum((price * limit for price, limit in zip(prices.cores, self.cores, strict=True)), Fraction(0))
        for side, mbps in enumerate(self.nic_mbps):
            total += (prices.nics[2 * side] + prices.nics[2 * side + 1]) * mbps
        return total + prices.blocks * (self.blocks or 0)


@dataclass(frozen=True)
class SitePrices:
    """Prices by number: of cores per pool; of NICs, in and out; of a block of table memory."""

    gain: int
    cores: tuple[Fraction, ...]
    nics: tuple[Fraction, ...]
    blocks: Fraction


def nic_rates(server: Server) -> list[Fraction]:
    """What each NIC of a server carries in each direction, Mbps."""
    return [nic.mbps for nic in server.nics] or [server.nic_mbps]


def machines_of(rack: Rack, *, together: bool) -> Machines:
    """Every server a machine, or servers that differ only in their names one. Raises ValueError where one has several
    sockets or NICs, or shared cores, and is to be one with others."""
    if not together:
        return Machines(rack, (1,) * len(rack.servers), False)
    for server in rack.servers:
        if len(server.sockets) > 1 or len(server.nics) > 1 or server.shared_cores:
            raise ValueError(f"{server.name} has several sockets or NICs or shared cores, and no prices with others")
    sizes: dict[object, int] = {}
    first: dict[object, Server] = {}
    for server in rack.servers:
        usable, nic = max(server.cores - server.reserved_cores, 0), server.smartnic
        key = (usable, server.clock_mhz, server.nic_mbps, nic and (nic.cores, nic.clock_mhz))
        sizes[key] = sizes.get(key, 0) + 1
        first.setdefault(key, server)
    return Machines(replace(rack, servers=tuple(first.values())), tuple(sizes.values()), True)
