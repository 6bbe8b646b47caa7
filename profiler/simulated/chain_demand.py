"""What a chain of network functions needs of each of its cores.

A source on the core of the first stage takes packets from a pool in memory, a sink on the core of the last one returns
them; there is no port. What a chain needs is more than the sum of its NFs, or less:

- On one core, source and sink are paid once. The next NF of the core finds the packet in the private caches, but all
  tables and all code of the core compete for them.
- From core to core, packets pass a ring: instructions per packet and per batch on both sides, and the lines of the
  packet come from the private cache of the other core.
- What a stage drops, later stages do not see; what it adds to packets or takes from them, they do.

All figures are per packet that enters the chain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

from profiler.simulated.card import HEADER_BYTES, LINE_BYTES, Card
from profiler.simulated.demand import Access, LoadDemand, Touched, filter_accesses, private_hits
from profiler.simulated.solve import UNBOUNDED_RATE
from profiles import ChainLoad, TrafficProfile


@dataclass(frozen=True, slots=True)
class PacketPath:
    """The software that moves packets between the NFs of a server."""

    source_instructions: float  # per packet
    sink_instructions: float  # per packet
    ring_instructions: float  # on each side of a ring, per packet
    ring_batch_instructions: float  # on each side of a ring, per batch
    batch_instructions: float
    """Per batch and core: polling, and switching to another task where the core has a share of its time only."""
    ipc: float  # of all of these
    batch: int  # the most packets that a core takes at once
    pool: float  # packet buffers of a chain
    ring: int  # packets that a ring holds
    header_lines: float  # lines of metadata and headers that every stage reads
    payload_overlap: float
    remote_overlap: float
    """Accesses to payload that are outstanding at the same time; to lines that another core wrote last."""
    code_cache: float  # bytes of the instruction cache of a core


@dataclass(frozen=True, slots=True)
class StageFlow:
    """The packets that reach a stage: which share of those that enter the chain, and what they look like."""

    spec: StageSpec
    values: Mapping[str, float]
    share: float
    packets: TrafficProfile


@dataclass(frozen=True, slots=True)
class ChainDemand:
    """What a chain needs."""

    cores: tuple[LoadDemand, ...]  # per core, in the order of the request
    batch_us: tuple[float, ...]  # per core, the part of its time that is per batch and not per packet
    visits: tuple[int, ...]  # the indices of the cores in the order in which packets first reach them
    kept: tuple[float, ...]
    leaving: tuple[float, ...]
    """Per stage, the share of the packets that reach it that it passes on, and of all that enter the chain."""
    rate_kpps: float  # offered load; 0 in a closed loop


def chain_demand(load: ChainLoad, specs: Mapping[str, StageSpec], card: Card, path: PacketPath) -> ChainDemand:
    """What the chain needs of each core."""
    flows, kept = _flows(load, specs)
    leaving = tuple(accumulate(kept, mul))
    core_of = {stage: core for core, stages in enumerate(load.cores) for stage in stages}
    shares = load.shares or (1.0,) * len(load.cores)
    parts = [_Core(path, shares[core]) for core in range(len(load.cores))]
    parts[core_of[0]].source()
    holder: _Core | None = None
    for at, flow in enumerate(flows):
        core = parts[core_of[at]]
        if at and core is not parts[core_of[at - 1]]:
            parts[core_of[at - 1]].ring(flow.share)
            core.ring(flow.share)
            core.remote(path.header_lines * flow.share, writes=0.3)
        holder = core.stage(flow, holder)
    parts[core_of[len(flows) - 1]].sink(leaving[-1])
    offered = [load.rate_kpps / 1e3 or UNBOUNDED_RATE] + [UNBOUNDED_RATE] * (len(parts) - 1)
    demands = [part.demand(card, one, core > 0) for core, (part, one) in enumerate(zip(parts, offered, strict=True))]
    visits = tuple(dict.fromkeys(core_of[at] for at in range(len(flows))))
    batch_us = tuple(part.batch_us(card) for part in parts)
    return ChainDemand(tuple(demands), batch_us, visits, kept, leaving, load.rate_kpps)


def _flows(load: ChainLoad, specs: Mapping[str, StageSpec]) -> tuple[list[StageFlow], tuple[float, ...]]:
    """What reaches each stage, and which share of it the stage passes on."""
    flows, kept = [], []
    share, packets = 1.0, load.traffic
    for stage in load.stages:
        spec = specs[stage.nf]
        values = spec.values(dict(stage.parameters))
        flows.append(StageFlow(spec, values, share, packets))
        kept.append(spec.kept(packets, values))
        share *= kept[-1]
        packets = spec.changed(packets, values)
    return flows, tuple(kept)


class _Core:
    """Adds up what one core does for the chain."""

    def __init__(self, path: PacketPath, share: float) -> None:
        self._path = path
        self._share = share
        self._instructions = self._cycles = 0.0
        self._per_batch = path.batch_instructions * (1 if share == 1 else 2)
        self._touched: list[Touched] = []
        self._near: list[Access] = []
        self._code: list[float] = []

    def source(self) -> None:
        path = self._path
        self._work(path.source_instructions, path.ipc)
        lines = path.header_lines
        self._touched.append(Touched(path.pool * lines * LINE_BYTES, lines, 0.5, path.payload_overlap))

    def sink(self, share: float) -> None:
        self._work(self._path.sink_instructions * share, self._path.ipc)

    def ring(self, share: float) -> None:
        """One side of a ring."""
        path = self._path
        self._work(path.ring_instructions * share, path.ipc)
        self._per_batch += path.ring_batch_instructions

    def remote(self, lines: float, writes: float) -> None:
        """Lines that another core touched last: the shared cache finds them."""
        self._near.append(Access(0.0, lines, lines, writes, self._path.remote_overlap))

    def stage(self, flow: StageFlow, holder: _Core | None) -> _Core | None:
        """A stage; returns the core that holds the payload in its private cache afterwards, `holder` before."""
        spec = flow.spec
        self._work(spec.work(flow.packets, flow.values) * flow.share, spec.ipc)
        self._code.append(spec.code_bytes)
        for table in spec.tables:
            entries = spec.entries(table, flow.packets, flow.values)
            accesses = table.accesses + table.accesses_per_byte * payload(flow.packets) + table.accesses_each * entries
            size = table.fixed_bytes + table.bytes_each * entries
            self._touched.append(Touched(size, accesses * flow.share, table.writes, table.overlap))
        if not spec.payload_touches:
            return holder
        lines = payload(flow.packets) / LINE_BYTES * flow.share
        again = spec.payload_touches - 1 if holder is not self else spec.payload_touches
        if holder is None:
            size = self._path.pool * payload(flow.packets)
            self._touched.append(Touched(size, lines, spec.payload_writes, self._path.payload_overlap))
        elif holder is not self:
            self.remote(lines, spec.payload_writes)
        self._near.append(Access(0.0, again * lines, 0.0, spec.payload_writes, self._path.payload_overlap))
        return self

    def demand(self, card: Card, offered: float, follows: bool) -> LoadDemand:
        """What the core needs per packet that enters the chain."""
        path = self._path
        instructions = self._instructions + self._per_batch / path.batch
        cycles = self._cycles + self._per_batch / path.batch / path.ipc
        accesses = (*filter_accesses(self._touched, 1, card), *self._near, self._refetched())
        size = sum(part.size for part in self._touched) + sum(self._code)
        return LoadDemand(
            cores=self._share, instructions=instructions, compute_ns=cycles / card.clock_ghz, accesses=accesses,
            offered=offered, dma_bytes=0.0, queues=(0,) * len(card.engines), service_us=(0.0,) * len(card.engines),
            serial=False, wss_mb=size / 1e6, follows=follows,
        )  # fmt: skip

    def batch_us(self, card: Card) -> float:
        """Time per batch."""
        return self._per_batch / self._path.ipc / card.clock_ghz / 1e3

    def _work(self, instructions: float, ipc: float) -> None:
        self._instructions += instructions
        self._cycles += instructions / ipc

    def _refetched(self) -> Access:
        """The lines of code that come from the L2 cache again for each batch."""
        lines = [size / LINE_BYTES for size in self._code]
        found: Sequence[float] = private_hits(lines, [1.0] * len(lines), self._path.code_cache / LINE_BYTES)
        missed = sum(n * (1 - hit) for n, hit in zip(lines, found, strict=True)) / self._path.batch
        return Access(0.0, missed, 0.0, 0.0, self._path.remote_overlap)


# What a network function on a server needs per packet, and what it does to the packets.


FLOWS_ATTRIBUTE = "flows"
ENTRIES_PARAMETER, DENIED_PARAMETER, REDUNDANCY_PARAMETER = "entries", "denied_pct", "redundancy_pct"
"""Parameters with one meaning for every NF: the most flows of its table, packets that it denies, repeated payload."""
LEAST_PACKET = 64.0


@dataclass(frozen=True, slots=True)
class NfParameter:
    """Range and default of a parameter."""

    low: float
    high: float
    default: float


@dataclass(frozen=True, slots=True)
class Table:
    """A data structure that an NF keeps to itself; each line is as likely to be touched as the next."""

    accesses: float = 0.0  # that miss the L1 cache, per packet
    accesses_per_byte: float = 0.0  # the same per byte of payload
    accesses_each: float = 0.0  # the same per entry
    fixed_bytes: float = 0.0  # its size without entries
    bytes_each: float = 0.0  # what each entry adds
    of: str = FLOWS_ATTRIBUTE  # what it has an entry for: `flows`, or the parameter that is their number
    writes: float = 0.0
    overlap: float = 1.0


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A network function of a server.

    `instructions`, `instructions_per_byte`, `instructions_per_match`: per packet, per payload byte, and per match of
    its patterns in the payload. `instructions_each`: per unit of a parameter, as per rule. `ipc`: instructions per
    cycle while every access hits the L1 cache. `payload_touches`, `payload_writes`: how often each line of the payload
    is touched, and the share that writes. `code_bytes`: what it executes per batch; NFs of one core compete for its
    instruction cache. `added_bytes`: by which packets grow. `blocked_per_match`: the share of matches for which the
    packet is dropped. `replicable`: whether several cores can run copies of it: packets of one flow go to one copy."""

    name: str
    instructions: float
    ipc: float = 1.6
    instructions_per_byte: float = 0.0
    instructions_per_match: float = 0.0
    instructions_each: Mapping[str, float] = field(default_factory=dict, hash=False)
    tables: tuple[Table, ...] = ()
    payload_touches: float = 0.0
    payload_writes: float = 0.0
    code_bytes: float = 2048.0
    added_bytes: float = 0.0
    blocked_per_match: float = 0.0
    parameters: Mapping[str, NfParameter] = field(default_factory=dict, hash=False)
    replicable: bool = True

    def values(self, given: Mapping[str, float]) -> dict[str, float]:
        """Its parameters: as given, else the defaults."""
        return {name: given.get(name, parameter.default) for name, parameter in self.parameters.items()}

    def work(self, packets: TrafficProfile, values: Mapping[str, float]) -> float:
        """Instructions per packet."""
        return (
            self.instructions
            + payload(packets) * self.instructions_per_byte
            + matches(packets) * self.instructions_per_match
            + sum(each * values[name] for name, each in self.instructions_each.items())
        )

    def entries(self, table: Table, packets: TrafficProfile, values: Mapping[str, float]) -> float:
        """How many entries a table has in use."""
        if table.of != FLOWS_ATTRIBUTE:
            return values[table.of]
        return min(packets.flows, values.get(ENTRIES_PARAMETER, math.inf))

    def kept(self, packets: TrafficProfile, values: Mapping[str, float]) -> float:
        """The share of the packets that it passes on."""
        clean = math.exp(-self.blocked_per_match * matches(packets))
        return clean * (1 - values.get(DENIED_PARAMETER, 0.0) / 100)

    def changed(self, packets: TrafficProfile, values: Mapping[str, float]) -> TrafficProfile:
        """The packets that it passes on: their size may differ."""
        size = packets.packet_size - payload(packets) * values.get(REDUNDANCY_PARAMETER, 0.0) / 100 + self.added_bytes
        return TrafficProfile(packets.flows, max(size, LEAST_PACKET), packets.mtbr)


def payload(packets: TrafficProfile) -> float:
    """Bytes of payload per packet."""
    return max(packets.packet_size - HEADER_BYTES, 1.0)


def matches(packets: TrafficProfile) -> float:
    """Matches per packet."""
    return packets.mtbr * 1e-6 * payload(packets)
