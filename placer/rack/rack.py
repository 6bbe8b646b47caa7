"""A rack: a switch, servers with their NICs, perhaps SmartNICs, and what each kind of NF costs on each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from profiles.chain import NfStage

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
class Server:
    """A server.

    `cores`, `reserved_cores`: its cores, and those that NFs may not use. `nic_mbps`: what its NIC carries in each
    direction. `smartnic`: None: its NIC runs no NFs.
    """

    name: str
    cores: int
    clock_mhz: Fraction
    nic_mbps: Fraction
    reserved_cores: int = 0
    smartnic: SmartNic | None = None

    @property
    def usable_cores(self) -> int:
        return max(self.cores - self.reserved_cores, 0)


@dataclass(frozen=True)
class CoreCost:
    """An NF on cores: cycles per packet, and whether several cores may run copies of it.

    `testbed_nf`: the NF of the rack's testbed, and of models, that it corresponds to; None: that of the same name.
    """

    cycles: Fraction
    replicable: bool = True
    testbed_nf: NfStage | None = None


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


@dataclass(frozen=True)
class Device:
    """Where subgroups run on cores: a server or a SmartNIC.

    `server`: the number of the server that it is or belongs to: which NIC packets cross to reach it. `is_smartnic`:
    whether it is the SmartNIC of that server.
    """

    name: str
    server: int
    is_smartnic: bool
    cores: int
    clock_mhz: Fraction


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
        for number, server in enumerate(self.servers):
            found.append(Device(server.name, number, False, server.usable_cores, server.clock_mhz))
            if nic := server.smartnic:
                found.append(Device(nic.name, number, True, nic.cores, nic.clock_mhz))
        return tuple(found)

    def cost_on(self, nf: str, device: Device) -> CoreCost | None:
        """What an NF costs on a device; None if it cannot run there."""
        costs = self.costs[nf]
        return costs.smartnic if device.is_smartnic else costs.server

    def stages_left(self, tables: int, nfs: int) -> int | None:
        """Those that the tables of some of all NFs may use, fewer where packets cross to servers; None: no bound."""
        usable = self.switch.usable_stages
        return None if usable is None else max(usable - (self.overheads.stages if tables < nfs else 0), 0)
