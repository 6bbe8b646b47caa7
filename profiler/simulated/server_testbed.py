"""A simulated server: runs network functions and chains of them on its cores."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, cast

import numpy as np
from numba import njit
from numpy.random import Generator

from profiler.simulated.arrivals import arrivals, mean_burst
from profiler.simulated.card import Card
from profiler.simulated.chain_demand import ChainDemand, PacketPath, StageSpec, chain_demand
from profiler.simulated.demand import mem_bench
from profiler.simulated.machine import PreparedLoad, SimulatedMachine, SolvedRuns, bench_text, nf_text, round_reading
from profiler.simulated.server import SERVER_CARD, SERVER_NFS, SERVER_PATH
from profiler.testbed import Measurement, PacketLatency, Run, StageMeasurement
from profiles import (
    BenchDescription,
    BenchLoad,
    ChainLoad,
    ConfiguredWorkload,
    Load,
    NfDescription,
    NfStage,
    NicModel,
    TestbedDescription,
    Workload,
)
from profiles.arrays import Floats

TRAFFIC_BOUNDS = {"flows": (1.0, 100_000.0), "packet_size": (64.0, 1500.0), "mtbr": (0.0, 600.0)}
DEFAULT_TRAFFIC = {"flows": 10_000.0, "packet_size": 1500.0, "mtbr": 100.0}
CORE_COUNTS = (1, 2, 4)  # cores that an NF can be given of which several copies can run
MEM_BENCH = {"wss_mb": (0.1, 64.0), "access_mops": (1.0, 180.0)}
FOLLOWED_PACKETS = 4096
FOLLOWED_OF_NF = 262_144
"""Packets that are followed for the latency of a run of a chain and of an NF; of a noise-free run, four times as many.
Bursts make the latency of an NF vary over long times."""
BURST_SHAPE = 0.85  # of the gaps between bursts: a little less even than at random
SATURATED_SHARE = 0.99
"""Below this share of the offered load a chain is measured at what it can, else at what is offered."""


@dataclass(frozen=True, slots=True)
class PreparedChain(PreparedLoad):
    """A chain that can run; an NF alone is one of a single stage, without measurements of stages. An NF on several
    cores runs as a copy on each. A copy has the packets of its share of the flows, and tables of its own."""

    demand: ChainDemand  # of copies, that of the first one, which has no fewer flows than any other
    stages: bool  # whether its stages are measured
    burst: float | None = None
    """Packets that arrive at once, in the mean, in an open loop; None: they arrive at random times."""
    shares: tuple[float, ...] = (1.0,)  # the share of the packets that each copy has

    @property
    def is_plain(self) -> bool:
        """Whether nothing but throughput and counters is measured."""
        return not (self.stages or self.demand.rate_kpps)


class SimulatedServer(SimulatedMachine):
    """Runs NFs, chains of them and memory benches on a simulated server. `seed`: of the noise of runs without a seed of
    their own. Repeats of such a run differ."""

    def __init__(
        self,
        *,
        seed: int = 0,
        card: Card = SERVER_CARD,
        nfs: Sequence[StageSpec] = SERVER_NFS,
        path: PacketPath = SERVER_PATH,
    ) -> None:
        super().__init__(seed, card, _describe(card, nfs))
        self._specs = {nf.name: nf for nf in nfs}
        self._path = path

    def _prepare(self, load: Load) -> PreparedLoad:
        match load:
            case BenchLoad():
                return PreparedLoad(bench_text(load), (mem_bench(dict(load.parameters), self._card),), 1)
            case ChainLoad():
                return self._chain(_chain_text(load), load, stages=True)
            case ConfiguredWorkload():
                workload, stage = load.workload, NfStage(load.workload.nf, load.parameters)
            case _:
                assert isinstance(load, Workload)
                workload, stage = load, NfStage(load.nf)
        text = nf_text(workload) + _parameters_text(stage)
        rate_kpps = 0.0 if workload.is_saturated else workload.rate_kpps
        if rate_kpps:
            text += f" {rate_kpps + 0.0!r}"
        if workload.cores > 1:
            return self._copies(f"{text} on {workload.cores}", workload, stage, rate_kpps)
        chain = ChainLoad.of([stage], [[0]], workload.traffic, rate_kpps=rate_kpps)
        return replace(self._chain(text, chain, stages=False), burst=_burst(workload), rate_kpps=workload.rate_kpps)

    def _copies(self, text: str, load: Workload, stage: NfStage, rate_kpps: float) -> PreparedChain:
        """Copies on the cores of the load, with as many flows each; those without a flow have no packets."""
        flows = max(round(load.traffic.flows), 1)
        of_copies = [flows // load.cores + (copy < flows % load.cores) for copy in range(load.cores)]
        shares = {count: count / flows for count in of_copies if count}
        demands = {
            count: chain_demand(
                ChainLoad.of([stage], [[0]], replace(load.traffic, flows=count), rate_kpps=rate_kpps * share),
                self._specs,
                self._card,
                self._path,
            )
            for count, share in shares.items()
        }
        busy = [count for count in of_copies if count]
        return PreparedChain(
            text, tuple(demands[count].cores[0] for count in busy), load.cores, demands[busy[0]], stages=False,
            burst=_burst(load), shares=tuple(shares[count] for count in busy), rate_kpps=load.rate_kpps, copies=True,
        )  # fmt: skip

    def _chain(self, text: str, load: ChainLoad, *, stages: bool) -> PreparedChain:
        demand = chain_demand(load, self._specs, self._card, self._path)
        return PreparedChain(text, demand.cores, len(demand.cores), demand, stages)

    def _runs(self, solved: SolvedRuns, answers: Floats) -> list[Run]:
        runs = super()._runs(solved, answers)
        return [
            self._with_stages(run, solved, c) if any(map(_reports_more, solved.loads[c])) else run
            for c, run in enumerate(runs)
        ]

    def _with_stages(self, run: Run, solved: SolvedRuns, c: int) -> Run:
        """The run with what is reported in addition: the stages of chains, and the latency in an open loop."""
        measured = list(run.measurements)
        first = 0
        for at, (load, place) in enumerate(zip(solved.loads[c], solved.orders[c], strict=True)):
            parts = slice(first, first + len(load.parts))
            first = parts.stop
            if isinstance(load, PreparedChain) and not load.is_plain:
                measured[place] = self._measured(measured[place], load, solved, (at, parts, c))
        return replace(run, measurements=tuple(measured))

    def _measured(
        self, one: Measurement, load: PreparedChain, solved: SolvedRuns, where: tuple[int, slice, int]
    ) -> Measurement:
        _, parts, c = where
        demand = load.demand
        kpps, latency = one.throughput_kpps, None
        if demand.rate_kpps:
            rate_kpps = demand.rate_kpps if load.stages else load.rate_kpps
            if load.stages:
                carried = 1e3 * float(solved.solution.throughput[parts.start, c])
            else:  # packets wait in a ring, so that none is lost at a rate below that of the core
                offered = rate_kpps * np.array(load.shares)
                carried = float(np.minimum(1e3 * solved.solution.core_rate[parts, c], offered).sum())
            kpps = rate_kpps if carried > SATURATED_SHARE * rate_kpps else min(kpps, rate_kpps)
            followed = self._followed(load, solved, where)
            if not load.stages:
                kpps = min(kpps, round_reading(followed.kept * rate_kpps))
            latency = PacketLatency(*map(round_reading, astuple(followed.latency)[:4]))
        stages = [
            StageMeasurement(round_reading(kpps * leaving), round_reading(100 * (1 - kept)))
            for leaving, kept in zip(demand.leaving, demand.kept, strict=True)
            if load.stages
        ]
        return replace(one, throughput_kpps=kpps, stages=tuple(stages), latency_us=latency)

    def _followed(self, load: PreparedChain, solved: SolvedRuns, where: tuple[int, slice, int]) -> "FollowedPackets":
        at, parts, c = where
        batch, solution = solved.batch, solved.solution
        factor = 1.0 if solved.noise is None else float(solved.noise[0, at, c])
        slower = 1 / (factor * batch.cores[parts, c])
        per_batch = np.broadcast_to(np.array(load.demand.batch_us), parts.stop - parts.start)
        compute = batch.compute_ns[parts, c] / 1e3 - per_batch / self._path.batch
        stalled = solution.stall_ns[:, parts, c].sum(axis=0) / 1e3
        of_cores = [CoreTime(*values) for values in (np.stack([compute, stalled, per_batch]) * slower).T.tolist()]
        key = f"{factor!r} {at} " + "\n".join(other.text for other in solved.loads[c])
        drawn = np.random.default_rng(list(hashlib.sha256(key.encode()).digest()))
        times = 1 if solved.noise is not None else 4
        path = self._path
        if load.burst is None:
            visited = [of_cores[core] for core in load.demand.visits]
            arrived = random_times(load.demand.rate_kpps / 1e3, times * FOLLOWED_PACKETS, drawn)
            return follow(visited, arrived, path.batch, path.ring, drawn)
        until_us = times * FOLLOWED_OF_NF * 1e3 / load.rate_kpps
        copies = [
            follow([core], arrivals(load.rate_kpps * share, load.burst, 0.0, BURST_SHAPE, until_us, drawn),
                   path.batch, path.ring, drawn)
            for core, share in zip(of_cores, load.shares, strict=True)
        ]  # fmt: skip
        kept = sum(share * copy.kept for copy, share in zip(copies, load.shares, strict=True))
        return FollowedPackets(np.concatenate([copy.latencies for copy in copies]), kept)


def _reports_more(load: PreparedLoad) -> bool:
    return isinstance(load, PreparedChain) and not load.is_plain


def _burst(load: Workload) -> float | None:
    """Packets that arrive at once, in the mean, where a rate is offered. Those of a burst are of one flow."""
    return None if load.is_saturated else mean_burst(load.traffic.flows)


def _chain_text(load: ChainLoad) -> str:
    """The chain as text, for sorting and seeding; the same for equal chains, also for 1 and 1.0."""
    stages = ",".join(stage.nf + _parameters_text(stage) for stage in load.stages)
    cores = "|".join(",".join(map(str, core)) for core in load.cores)
    values = [*load.traffic.as_tuple(), load.rate_kpps, *(load.shares or (1.0,) * len(load.cores))]
    return f"chain {stages} {cores} " + " ".join(repr(value + 0.0) for value in values)


def _parameters_text(stage: NfStage) -> str:
    return "".join(f" {name}={value + 0.0!r}" for name, value in stage.parameters)


def _describe(card: Card, nfs: Sequence[StageSpec]) -> TestbedDescription:
    return TestbedDescription(
        name=f"simulated-{card.model}",
        simulated=True,
        nic=NicModel(
            model=card.model, cores=card.cores, kind="server", clock_mhz=card.clock_ghz * 1e3, llc_bytes=card.llc_bytes
        ),
        attributes=TRAFFIC_BOUNDS,
        default_traffic=DEFAULT_TRAFFIC,
        nfs=tuple(
            NfDescription(
                name=nf.name,
                cores=1,
                parameters={name: (one.low, one.high) for name, one in nf.parameters.items()},
                default_parameters={name: one.default for name, one in nf.parameters.items()},
                core_counts=CORE_COUNTS if nf.replicable else (),
                replicable=nf.replicable,
            )
            for nf in nfs
        ),
        benches=(BenchDescription(name="mem-bench", cores=1, parameters=MEM_BENCH),),
        chains=True,
        paced=True,
    )


# Latency of packets that enter a chain at a given rate, by following each of them.
#
# Packets arrive and wait in the ring of the first core. A core takes what waits, at most a batch, and passes all of it
# on when the last packet of the batch is done; then it takes the next. A packet that finds a ring full is lost, and has
# no latency. A core that packets reach twice is passed once, for the time of both.


SETTLING_SHARE = 0.1  # the share of the packets, the first ones, that find rings emptier than later ones do


@dataclass(frozen=True, slots=True)
class CoreTime:
    """Time of one core per packet (us): certain, stalled on memory, and per batch."""

    compute_us: float
    stall_us: float
    batch_us: float


@dataclass(frozen=True, slots=True)
class FollowedPackets:
    """The latencies (us) of the packets that were not lost, and their share of all."""

    latencies: Floats
    kept: float

    @property
    def latency(self) -> PacketLatency:
        p50, p99 = np.percentile(self.latencies, [50, 99]).tolist()
        return PacketLatency(float(self.latencies.mean()), p50, p99, float(self.latencies.max()))


def follow(cores: Sequence[CoreTime], arrived: Floats, batch: int, ring: int, rng: Generator) -> FollowedPackets:
    """What becomes of packets that arrive at these times (us), in order. Stalls differ from packet to packet: their
    time is drawn from an exponential distribution."""

    waiting = entered = arrived
    for core in cores:
        times = core.compute_us + core.stall_us * rng.exponential(size=len(waiting))
        kept, waiting = pass_packets(waiting, times, core.batch_us, batch, ring)
        entered = entered[kept]
    latencies = (waiting - entered)[int(SETTLING_SHARE * len(waiting)) :]
    return FollowedPackets(latencies, len(entered) / len(arrived))


def random_times(rate_mpps: float, packets: int, rng: Generator) -> Floats:
    """When packets arrive (us) that know nothing of each other: a Poisson process."""
    return np.asarray(np.cumsum(rng.exponential(1 / rate_mpps, packets)))


# The queue of one core, packet by packet, compiled.


def compile_kernel(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel as machine code, cached on disk; where nothing can be written, it is compiled in every process."""
    try:
        return cast("Callable[..., Any]", njit(cache=True)(kernel))
    except RuntimeError:
        return cast("Callable[..., Any]", njit()(kernel))


@compile_kernel
def pass_packets(arrived, times, batch_us, batch, ring):  # type: ignore[no-untyped-def]
    """The packets that a core does not lose, and when each of them leaves it (us).

    Parameters
    ----------
    arrived
        When the packets arrive, us, in order; shape (packets,).
    times
        What the k-th packet that is not lost takes, us; shape (packets,).
    batch_us
        What each batch takes besides, us.
    batch
        The most packets that are taken at once.
    ring
        The most packets that wait.

    Returns
    -------
    kept
        Their indices, shape (kept,).
    left
        When they leave, shape (kept,)."""
    packets = len(arrived)
    until = np.zeros(packets + 1)
    for at in range(packets):
        until[at + 1] = until[at] + times[at]
    kept = np.empty(packets, np.int64)
    left = np.empty(packets)
    free, following, taken, known = 0.0, 0, 0, 0
    while taken < known or following < packets:
        start = free if taken < known else max(free, arrived[following])
        room = ring - (known - taken)
        while following < packets and arrived[following] <= start:
            if room > 0:
                kept[known] = following
                known, room = known + 1, room - 1
            following += 1
        size = min(batch, known - taken)
        free = start + batch_us + until[taken + size] - until[taken]
        for at in range(taken, taken + size):
            left[at] = free
        taken += size
    return kept[:known], left[:known]
