"""A rack: a switch, servers with their NICs, perhaps SmartNICs, and what each kind of NF costs on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import lcm

from placer.rack.chain import Chain, ChainNf
from profiles import InputError
from profiles.chain import NfStage

SWITCH_NAME = "switch"  # how plans name it

# A match-action table of a switch program, and the memory of a stage that tables take.


OWN_PREFIX = "meta."
"""Begins the names of fields that belong to one NF alone; all other fields are those of the packet."""


class MatchKind(StrEnum):
    """How a table compares its key."""

    EXACT = "exact"
    TERNARY = "ternary"
    LPM = "lpm"


@dataclass(frozen=True)
class SwitchTable:
    """One table.

    `key`: bits by field; a table without key always runs its action and takes no memory. `match`: exact tables lie in
    SRAM, the others in TCAM. `writes`: the fields that its actions change.
    """

    name: str
    key: Mapping[str, int] = field(default_factory=dict)
    match: MatchKind = MatchKind.EXACT
    entries: int = 1
    writes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StageMemory:
    """The blocks of one kind of memory in each stage, and the bits and entries of a block."""

    blocks: int
    bits: int
    entries: int

    def columns(self, bits: int) -> int:
        """Blocks beside one another, for keys of so many bits."""
        return -(-bits // self.bits)

    def rows(self, entries: int) -> int:
        """Blocks above one another, for so many entries; at least one."""
        return max(-(-entries // self.entries), 1)


TCAM_MEMORY = StageMemory(24, 44, 512)
SRAM_MEMORY = StageMemory(80, 80, 2000)


class SwitchKind(StrEnum):
    """How a switch runs NFs: any program in stages, or fixed tables in a fixed order."""

    PISA = "pisa"
    OPENFLOW = "openflow"


@dataclass(frozen=True)
class Switch:
    """The switch at the top of the rack.

    `stages`, `reserved_stages`: of the pipeline, and those that NFs may not use; `stages` None: without a bound.
    `blocks_per_stage`: of table memory. `kind`: programmable, or OpenFlow. `table_order`: of an OpenFlow switch, the
    kinds of NF in the order of their tables. `tcam`, `sram`: of each stage, where NFs are packed as tables.
    """

    stages: int | None = None
    reserved_stages: int = 0
    blocks_per_stage: int = 1
    kind: SwitchKind = SwitchKind.PISA
    table_order: tuple[str, ...] = ()
    tcam: StageMemory = TCAM_MEMORY
    sram: StageMemory = SRAM_MEMORY

    @property
    def usable_stages(self) -> int | None:
        return None if self.stages is None else max(self.stages - self.reserved_stages, 0)


@dataclass(frozen=True)
class SmartNic:
    """A NIC with cores of its own, between the switch and its server."""

    name: str
    cores: int
    clock_mhz: Fraction


@dataclass(frozen=True)
class ServerSocket:
    """A processor of a server: its cores, and those that NFs may not use."""

    cores: int
    reserved_cores: int = 0

    @property
    def usable_cores(self) -> int:
        return max(self.cores - self.reserved_cores, 0)


@dataclass(frozen=True)
class ServerNic:
    """One of a server's NICs. `mbps`: in each direction. `socket`: the number of the socket that it is attached to."""

    name: str
    mbps: Fraction
    socket: int = 0


@dataclass(frozen=True)
class Server:
    """A server.

    `cores`, `reserved_cores`: its cores, and those that NFs may not use. `nic_mbps`: what its NIC carries in each
    direction. `smartnic`: None: its NIC runs no NFs. `sockets`, `nics`: those of a server that has several; then
    `cores`, `reserved_cores` and `nic_mbps` are of all. `cross_socket_cycles`: more per packet that enters a subgroup
    through the NIC of another socket. `shared_cores`: whether subgroups may take turns on a core.
    """

    name: str
    cores: int
    clock_mhz: Fraction
    nic_mbps: Fraction
    reserved_cores: int = 0
    smartnic: SmartNic | None = None
    sockets: tuple[ServerSocket, ...] = ()
    nics: tuple[ServerNic, ...] = ()
    cross_socket_cycles: Fraction = Fraction(0)
    shared_cores: bool = False

    @property
    def usable_cores(self) -> int:
        return sum(socket.usable_cores for socket in self.each_socket)

    @property
    def each_socket(self) -> tuple[ServerSocket, ...]:
        """Its sockets; one with all cores unless they are named."""
        return self.sockets or (ServerSocket(self.cores, self.reserved_cores),)

    @property
    def each_nic(self) -> tuple[ServerNic, ...]:
        """Its NICs; one unless they are named, at the first socket."""
        return self.nics or (ServerNic("", self.nic_mbps),)

    @property
    def socket_names(self) -> tuple[str, ...]:
        """What plans call the cores of each socket."""
        return tuple(f"{self.name} socket {at}" for at in range(len(self.sockets))) or (self.name,)

    @property
    def nic_names(self) -> tuple[str, ...]:
        """What plans call each NIC."""
        return tuple(f"{self.name} {nic.name}" for nic in self.nics) or (self.name,)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that begin with its own, and that of its SmartNIC."""
        smartnic = [self.smartnic.name] if self.smartnic else []
        return tuple(dict.fromkeys([self.name, *self.socket_names, *self.nic_names])) + tuple(smartnic)

    @property
    def is_simple(self) -> bool:
        """Whether it has one socket and one NIC, and no shared cores."""
        return len(self.each_socket) == len(self.each_nic) == 1 and not self.shared_cores


@dataclass(frozen=True)
class CyclesBy:
    """How cycles follow a number: a parameter of the NF, or the packet size of its chain.

    `at`: the number for which the cycles of the NF are given. `points`: numbers, ascending, with cycles: linear between
    two of them, and beyond the first and the last one.
    """

    at: Fraction
    points: tuple[tuple[Fraction, Fraction], ...]

    def beyond(self, number: Fraction) -> Fraction:
        """How many cycles a number costs more than `at`."""
        return self._cycles(number) - self._cycles(self.at)

    def _cycles(self, number: Fraction) -> Fraction:
        last = len(self.points) - 1
        right = next((at for at in range(1, last) if number <= self.points[at][0]), last)
        (low, before), (high, after) = self.points[right - 1], self.points[right]
        return before + (after - before) * (number - low) / (high - low)


PACKET_SIZE = "packet_size"
"""The number of a chain that is not a parameter of its NFs."""


@dataclass(frozen=True)
class CoreCost:
    """An NF on cores: cycles per packet, and whether several cores may run copies of it.

    `testbed_nf`: the NF of the rack's testbed, and of models, that it corresponds to; None: that of the same name.
    `by`: how cycles follow parameters, by the name of each.
    """

    cycles: Fraction
    replicable: bool = True
    testbed_nf: NfStage | None = None
    by: Mapping[str, CyclesBy] = field(default_factory=dict)

    def times(self, factor: Fraction) -> CoreCost:
        """The cost with all cycles multiplied."""
        by = {
            name: replace(one, points=tuple((number, cycles * factor) for number, cycles in one.points))
            for name, one in self.by.items()
        }
        return replace(self, cycles=self.cycles * factor, by=by)

    def of(self, nf: ChainNf, packet_size: int) -> CoreCost:
        """The cost of an NF with its parameters; those that it does not set cost what `cycles` says."""
        cycles = self.cycles
        for name, by in self.by.items():
            number = packet_size if name == PACKET_SIZE else nf.parameters.get(name)
            if isinstance(number, int | float):
                cycles += by.beyond(Fraction(number))
        return replace(self, cycles=max(cycles, Fraction(0)), by={}) if self.by else self


@dataclass(frozen=True)
class NfCosts:
    """What one kind of NF costs; None where it cannot run.

    `server`, `smartnic`: on their cores. `switch_tables`: of the NF, in the order in which packets meet them; None:
    those of the library.
    """

    server: CoreCost | None = None
    smartnic: CoreCost | None = None
    switch_blocks: int | None = None
    switch_tables: tuple[SwitchTable, ...] | None = None


@dataclass(frozen=True)
class Overheads:
    """What placing apart costs (Lemur, section 5.3); 0 unless given.

    `subgroup_cycles`: per packet that enters a subgroup on cores, for its service header. `replica_cycles`: more, where
    several cores run the subgroup. `stages`: of the switch, when packets cross to servers at all.
    """

    subgroup_cycles: Fraction = Fraction(0)
    replica_cycles: Fraction = Fraction(0)
    stages: int = 0


@dataclass(frozen=True)
class RackTestbed:
    """What measures how subgroups on one device slow one another down, and with which traffic.

    `spec`: of the testbed (CONTRACTS 5), such as `simulated:server`; None: contention is not looked at unless models
    are named. `flows`, `mtbr`: of each chain: concurrent flows, regex matches per MB; None: the testbed's default.
    """

    spec: str | None = None
    flows: float | None = None
    mtbr: float | None = None


MOST_TURNS = 16
"""Of subgroups on a core that these share."""
TURN_PARTS = lcm(*range(1, MOST_TURNS + 1))
"""Parts of a core of which shares are whole numbers."""


@dataclass(frozen=True)
class CorePool:
    """Equal cores that subgroups share out: those of a socket, or of a SmartNIC.

    `server`: the number of the server that it is of. `first_core`: the number of its first core on that device.
    `is_shared`: whether subgroups may take turns on a core.
    """

    name: str
    server: int
    is_smartnic: bool
    socket: int
    cores: int
    first_core: int
    is_shared: bool


@dataclass(frozen=True)
class NicLink:
    """A NIC of a server. `mbps`: what it carries in each direction."""

    name: str
    server: int
    mbps: Fraction


@dataclass(frozen=True)
class Device:
    """Where subgroups run on cores: a server or a SmartNIC; of a server with several sockets or NICs one of each.

    `server`: the number of the server that it is or belongs to. `is_smartnic`: whether it is the SmartNIC of that
    server. `pool`: the number of its cores among `Rack.pools`. `nic`: the number of the NIC among `Rack.nics` that
    packets cross to reach it. `cross_cycles`: per packet that crosses it, where that NIC is at another socket. `label`:
    the name, with those of its socket and its NIC where the server names several.
    """

    name: str
    server: int
    is_smartnic: bool
    cores: int
    clock_mhz: Fraction
    pool: int
    nic: int
    cross_cycles: Fraction
    label: str


@dataclass(frozen=True)
class Rack:
    """A rack.

    `crossing_us`: latency of each change between switch and a server's side, us. `costs`: by kind of NF.
    `stage_oracle`: what decides whether NFs fit the switch (`stage_oracles.py`). No file sets it: it may start a
    program.
    """

    switch: Switch
    servers: tuple[Server, ...]
    crossing_us: Fraction
    costs: Mapping[str, NfCosts]
    overheads: Overheads = field(default_factory=Overheads)
    testbed: RackTestbed = field(default_factory=RackTestbed)
    stage_oracle: str = "blocks"

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """Servers and SmartNICs, each server before its SmartNIC."""
        found: list[Device] = []
        for at, pool in enumerate(self.pools):
            server = self.servers[pool.server]
            clock = server.smartnic.clock_mhz if pool.is_smartnic and server.smartnic else server.clock_mhz
            name = server.smartnic.name if pool.is_smartnic and server.smartnic else server.name
            numbers = [number for number, nic in enumerate(self.nics) if nic.server == pool.server]
            for number, nic in zip(numbers, server.each_nic, strict=True):
                crosses = nic.socket != pool.socket and not pool.is_smartnic
                cycles = server.cross_socket_cycles if crosses else Fraction(0)
                label = f"{pool.name} {nic.name}" if server.nics and not pool.is_smartnic else pool.name
                found.append(Device(name, pool.server, pool.is_smartnic, pool.cores, clock, at, number, cycles, label))
        return tuple(found)

    @cached_property
    def pools(self) -> tuple[CorePool, ...]:
        """The cores of each server, by socket, then those of its SmartNIC."""
        found: list[CorePool] = []
        for number, server in enumerate(self.servers):
            first = 0
            for at, socket in enumerate(server.each_socket):
                name = server.socket_names[at]
                found.append(CorePool(name, number, False, at, socket.usable_cores, first, server.shared_cores))
                first += socket.cores
            if nic := server.smartnic:
                found.append(CorePool(nic.name, number, True, 0, nic.cores, 0, False))
        return tuple(found)

    @cached_property
    def nics(self) -> tuple[NicLink, ...]:
        """The NICs of each server."""
        return tuple(
            NicLink(name, number, nic.mbps)
            for number, server in enumerate(self.servers)
            for name, nic in zip(server.nic_names, server.each_nic, strict=True)
        )

    @cached_property
    def core_parts(self) -> int:
        """In how many parts cores are counted: 1 where subgroups take whole ones."""
        return TURN_PARTS if any(pool.is_shared for pool in self.pools) else 1

    @cached_property
    def is_simple(self) -> bool:
        """Whether each server has one socket and one NIC, and no shared cores."""
        return all(server.is_simple for server in self.servers)

    def refuse_for(self, what: str, hint: str | None = None) -> None:
        """Raise InputError where a server has several sockets or NICs, or shared cores, which something cannot plan."""
        for server in self.servers:
            if not server.is_simple:
                message = f"{what} takes no server with several sockets or NICs, or with shared cores"
                raise InputError.of(server.name, message, hint=hint)

    def cost_on(self, chain: Chain, at: int, device: Device) -> CoreCost | None:
        """What an NF of a chain costs on a device; None if it cannot run there."""
        nf = chain.nfs[at]
        costs = self.costs[nf.nf]
        cost = costs.smartnic if device.is_smartnic else costs.server
        if cost is None or device.name in nf.not_on:
            return None
        cost = cost.of(nf, chain.packet_size)
        return replace(cost, replicable=False) if nf.most_copies == 1 else cost

    def has_table(self, nf: ChainNf) -> bool:
        """Whether the switch can run an NF."""
        return self.costs[nf.nf].switch_blocks is not None and SWITCH_NAME not in nf.not_on

    def stages_left(self, tables: int, nfs: int) -> int | None:
        """Those that the tables of some of all NFs may use, fewer where packets cross to servers; None: no bound."""
        usable = self.switch.usable_stages
        return None if usable is None else max(usable - (self.overheads.stages if tables < nfs else 0), 0)
