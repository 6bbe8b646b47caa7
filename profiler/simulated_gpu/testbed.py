"""The simulated GPU as a testbed."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.random import Generator

from profiler.protocol.request_checks import refusals
from profiler.simulated.arrivals import arrivals, mean_burst, wire_us
from profiler.simulated_gpu import columns as of
from profiler.simulated_gpu.card import (
    ETHERNET_BYTES,
    GPU_NFS,
    HEADER_BYTES,
    TITAN,
    VERDICT_BYTES,
    WARP_LANES,
    GpuCard,
    GpuNfSpec,
)
from profiler.simulated_gpu.columns import EXECUTORS, SPATIAL, TEMPORAL, World
from profiler.simulated_gpu.loop import simulate
from profiler.testbed import GpuStages, Measurement, PacketLatency, Run, RunRefused, Testbed, TestbedError
from profiles import (
    Counters,
    GpuSettings,
    GpuWorkload,
    Load,
    NfDescription,
    NicModel,
    TestbedDescription,
    TrafficProfile,
)
from profiles.arrays import Floats, Ints

KB = 1024.0
NO_ORDER = -1


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """An NF that runs: its costs, traffic, rate (kpps) and settings, and the text from which its draws come."""

    spec: GpuNfSpec
    traffic: TrafficProfile
    rate_kpps: float
    gpu: GpuSettings
    text: str

    @property
    def period_us(self) -> float:
        """Mean time between batches."""
        period = 1e3 * self.gpu.batch / self.rate_kpps
        # a time-out sends a part of a batch, and at most one per time-out
        return period if self.gpu.flush_us is None else min(period, max(self.gpu.flush_us, 1e3 / self.rate_kpps))


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened to the batches of one NF."""

    arrived: Floats  # when each packet came that was not lost (us)
    lost: int
    waiting: int  # packets that found the ring full, and that no batch took until the end
    times: Floats  # of every batch that came back, columns `TAKEN` to `POST_PACKET` of `profiler.simulated_gpu.columns`
    first: Ints  # the first packet of each batch
    count: Ints  # how many packets it has
    part_ends: Floats  # when each of its parts was done; 0 where a short batch has none


def run_server(card: GpuCard, loads: Sequence[GpuLoad], until_us: float, seed: str) -> list[Timeline]:
    """Run `loads` side by side on packets that come until `until_us`; a timeline per load. Packets and jitter of each
    load are drawn from the seed and its text alone."""
    origins = [np.random.default_rng(list(hashlib.sha256(f"{seed}\n{load.text}".encode()).digest())) for load in loads]
    came = [_arrivals(card, load, until_us, origin) for load, origin in zip(loads, origins, strict=True)]
    # The tables of the loop before anything happened.
    parts = _parts(card, loads)
    nfs = _nfs(loads, came, parts, until_us)
    of_load, batches = parts[:, of.NF], np.diff(nfs[:, of.BATCHES]).tolist()
    most = int(np.bincount(of_load).max())
    draws = np.concatenate([one.random((n, of.DRAWS + most)) for one, n in zip(origins, batches, strict=True)])
    nfs[:-1, of.FOLLOWING] = nfs[:-1, of.PACKETS]
    states = np.zeros((len(parts), of.PART_STATE))
    states[:, of.AT] = math.inf
    world = World(
        buses=np.array([[*astuple(bus), -1, 0] for bus in (card.to_card, card.to_host)], dtype=np.float64),
        card=_card(card, _mode(loads[0].gpu)),
        nfs=nfs,
        costs=np.array([[*_costs(card, load), 0.0, 0.0] for load in loads]),
        parts=parts,
        draws=draws,
        packets=np.concatenate(came),
        times=np.zeros((len(draws), of.COLUMNS + most)),
        states=states,
        sms=np.zeros((parts[:, of.SM].max() + 1, of.PRESENT + len(loads))),
    )
    simulate(world)
    return [_timeline(world, i) for i in range(len(loads))]


def _timeline(w: World, i: int) -> Timeline:
    kept, consumed = w.nfs[i, of.KEPT], w.nfs[i, of.CONSUMED]
    first, begin = w.nfs[i, of.PACKETS], w.nfs[i, of.BATCHES]
    rows = w.times[begin : begin + w.nfs[i, of.N_POSTED]]
    return Timeline(
        w.packets[first : first + kept],
        int(w.nfs[i, of.LOST]),
        int(kept - consumed),
        rows[:, : of.FIRST],
        rows[:, of.FIRST].astype(np.int64),
        rows[:, of.COUNT].astype(np.int64),
        rows[:, of.COLUMNS : of.COLUMNS + w.nfs[i + 1, of.PARTS] - w.nfs[i, of.PARTS]],
    )


def _arrivals(card: GpuCard, load: GpuLoad, until_us: float, origin: Generator) -> Floats:
    burst, wire = mean_burst(load.traffic.flows), wire_us(load.traffic.packet_size, card.port_gbps)
    return arrivals(load.rate_kpps, burst, wire, load.spec.burst_shape, until_us, origin)


def _mode(gpu: GpuSettings) -> int:
    if gpu.minibatches:
        return EXECUTORS
    return TEMPORAL if gpu.scheduler == "temporal" else SPATIAL


def _card(card: GpuCard, mode: int) -> Floats:
    """`World.card`."""
    return np.array(
        [
            mode, card.sms, WARP_LANES, card.schedulers, card.packets_per_executor, card.cache_kb, card.cache_us,
            card.memory_us, card.memory_bytes_per_us, card.memory_wait, card.dispatch_us, card.executor_us,
            card.launch_us, card.switch_us, card.ring, card.in_flight, 0, 0, 0, card.sms, -1,
        ],
        dtype=np.float64,
    )  # fmt: skip


def _parts(card: GpuCard, loads: Sequence[GpuLoad]) -> Ints:
    """`World.parts`; the scheduler of the GPU spreads warps over SMs, on which no two NFs are at a time."""
    rows = []
    for i, load in enumerate(loads):
        if load.gpu.minibatches:
            rows += [(i, minibatch.sm, minibatch.packets, 0) for minibatch in load.gpu.minibatches]
        else:
            warps = -(-load.gpu.batch // WARP_LANES)
            each, more = divmod(warps, min(warps, card.sms))
            rows += [(i, len(rows) + sm, WARP_LANES * (each + (sm < more)), 0) for sm in range(min(warps, card.sms))]
    return np.array(rows, dtype=np.int64)


def _nfs(loads: Sequence[GpuLoad], came: Sequence[Floats], parts: Ints, until_us: float) -> Ints:
    """`World.nfs`."""
    kinds = sorted({load.spec.name for load in loads})
    nfs = np.zeros((len(loads) + 1, of.NF_COLUMNS), np.int64)
    nfs[:-1, of.ORDER] = [NO_ORDER if load.gpu.order is None else load.gpu.order for load in loads]
    nfs[:-1, of.BATCH] = [load.gpu.batch for load in loads]
    nfs[:-1, of.KIND] = [kinds.index(load.spec.name) for load in loads]
    nfs[1:, of.PACKETS] = np.cumsum([len(times) for times in came])
    nfs[1:, of.BATCHES] = np.cumsum(
        [_most_batches(*load_and_count, until_us) for load_and_count in zip(loads, map(len, came), strict=True)]
    )
    nfs[1:, of.PARTS] = np.cumsum(np.bincount(parts[:, of.NF]))
    return nfs


def _most_batches(load: GpuLoad, packets: int, until_us: float) -> int:
    """Batches that the worker can take, at most."""
    full = packets // load.gpu.batch + 1
    flushed = 0 if load.gpu.flush_us is None else int(until_us / load.gpu.flush_us) + 1
    return min(packets, full + flushed) + 1


def _costs(card: GpuCard, load: GpuLoad) -> list[float]:
    """`World.costs` of one NF."""
    spec, size = load.spec, load.traffic.packet_size
    payload = max(0.0, size - ETHERNET_BYTES)
    moved = {"header": float(HEADER_BYTES), "payload": payload, "both": size}[spec.moves]
    back = size + spec.grows_bytes if spec.moves == "both" else float(VERDICT_BYTES)
    cycle_us = 1e-3 / card.clock_ghz
    issue = (spec.instructions + spec.instructions_per_byte * payload) * cycle_us
    match = spec.instructions_per_match * cycle_us
    return [
        math.inf if load.gpu.flush_us is None else load.gpu.flush_us,
        spec.pre_us,
        spec.pre_packet_us + spec.pre_byte_us * moved,
        spec.post_us,
        spec.post_packet_us,
        moved,
        back,
        issue,
        issue * spec.dependency_cycles,
        match,
        match * spec.dependency_cycles,
        load.traffic.mtbr * payload * 1e-6,
        spec.reads + spec.reads_per_byte * payload,
        spec.locality,
        spec.table_kb + spec.bytes_per_flow * load.traffic.flows / KB,
        moved + back,
    ]


TRAFFIC_BOUNDS = {"flows": (1.0, 500_000.0), "packet_size": (64.0, 1500.0), "mtbr": (0.0, 1100.0)}
DEFAULT_TRAFFIC = {"flows": 16_000.0, "packet_size": 850.0, "mtbr": 100.0}

RUN_BATCHES, EXACT_BATCHES = 200, 1500  # batches of the slowest NF in a run, and in one without noise
RUN_PACKETS, EXACT_PACKETS = 1_500_000, 8_000_000
"""Packets of all NFs together in a run, at most, and in one without noise, ..."""
LEAST_BATCHES, MOST_PACKETS = 20, 20_000_000
"""... unless the slowest NF would have fewer batches than that; it has them while there are at most so many packets."""
TRUTH_SETTING = "truth"


class SimulatedGpu(Testbed):
    """Runs NFs on a simulated GPU: `profiler.simulated_gpu.loop` follows every batch. Measurements vary from run to run
    because packets come at random. A run without noise is long, and its packets are the same every time. `seed`: of the
    packets of runs without a seed of their own. Repeats of such a run differ. `card`: the server and its GPU. `nfs`:
    the NFs that it can run."""

    def __init__(self, *, seed: int = 0, card: GpuCard = TITAN, nfs: Sequence[GpuNfSpec] = GPU_NFS) -> None:
        self._seed = seed
        self._card = card
        self._nfs = {nf.name: nf for nf in nfs}
        self._description = TestbedDescription(
            name=f"simulated-{card.model}",
            simulated=True,
            nic=NicModel(
                model=card.model, cores=card.workers, kind="gpu", clock_mhz=card.clock_ghz * 1e3, sms=card.sms,
                executors_per_sm=card.executors_per_sm, packets_per_executor=card.packets_per_executor,
            ),
            attributes=TRAFFIC_BOUNDS,
            default_traffic=DEFAULT_TRAFFIC,
            nfs=tuple(NfDescription(name=nf.name, cores=1, moves=nf.moves) for nf in nfs),
            workers=card.workers,
            arbitration="sporadic",
        )  # fmt: skip
        self._repeats: Counter[tuple[str, ...]] = Counter()

    def describe(self) -> TestbedDescription:
        """The card, its workers and NFs, and the range of traffic."""
        return self._description

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        """Run `loads` side by side; see `Testbed.run`. The answer does not depend on the order of the request. Raises
        `RunRefused` when the card cannot run them: unknown names, values out of range, too many executors; or when
        their rates are so far apart that a run would have too many packets."""
        prepared, places = self._prepared(self._accepted(loads))
        until_us = _duration_us(prepared, exact=not noise)
        timelines = run_server(self._card, prepared, until_us, self._origin(prepared, noise, seed))
        found = {}
        for place, load, timeline in zip(places, prepared, timelines, strict=True):
            one = measure_nf(timeline, load.rate_kpps, until_us, exact=not noise)
            if one is None:
                raise TestbedError(f"{load.spec.name}: no batch came back within {until_us / 1e6:g} s")
            found[place] = one
        return Run(tuple(found[place] for place in range(len(loads))), until_us / 1e6)

    def timelines(self, loads: Sequence[Load], *, seed: int = 0, until_us: float | None = None) -> list[Timeline]:
        """What happened to every batch of each load, in the order of the request; `until_us` shortens the run."""
        prepared, places = self._prepared(self._accepted(loads))
        found = run_server(self._card, prepared, until_us or _duration_us(prepared, exact=False), str(seed))
        return [timeline for _, timeline in sorted(zip(places, found, strict=True), key=lambda pair: pair[0])]

    def _accepted(self, loads: Sequence[Load]) -> list[GpuWorkload]:
        if not loads:
            raise RunRefused("bad-request: nothing to run")
        if faults := refusals(self._description, loads):
            raise RunRefused(f"bad-request: {'; '.join(faults)}")
        return [load for load in loads if isinstance(load, GpuWorkload)]

    def _prepared(self, loads: Sequence[GpuWorkload]) -> tuple[list[GpuLoad], list[int]]:
        """The loads in an order of their own, and the place of each in the request."""
        places = sorted(range(len(loads)), key=lambda place: _text(loads[place]))
        seen: Counter[str] = Counter()
        prepared = []
        for load in (loads[place] for place in places):
            text = _packets_text(load)
            prepared.append(GpuLoad(self._nfs[load.nf], load.traffic, load.rate_kpps, load.gpu, f"{text} {seen[text]}"))
            seen[text] += 1
        return prepared, places

    def _origin(self, loads: Sequence[GpuLoad], noise: bool, seed: int | None) -> str:
        """What the packets of a run are drawn from."""
        if not noise:
            return TRUTH_SETTING
        if seed is not None:
            return str(seed)
        key = tuple(f"{load.text} {load.gpu}" for load in loads)
        self._repeats[key] += 1
        return f"{self._seed}/{self._repeats[key]}"


def _text(load: GpuWorkload) -> str:
    """The load as text, which sorts it."""
    return f"{_packets_text(load)} {load.gpu}"


def _packets_text(load: GpuWorkload) -> str:
    """What the packets of a load depend on, as text; the same for 1 and 1.0."""
    return f"{load.nf} {[value + 0.0 for value in load.traffic.as_tuple()]} {load.rate_kpps + 0.0!r}"


def _duration_us(loads: Sequence[GpuLoad], *, exact: bool) -> float:
    """How long packets come: long enough for the slowest NF, and not so long that the fastest has too many."""
    slowest = max(load.period_us for load in loads)
    total = sum(load.rate_kpps for load in loads) / 1e3
    wanted = (EXACT_BATCHES if exact else RUN_BATCHES) * slowest
    most = (EXACT_PACKETS if exact else RUN_PACKETS) / total
    duration = max(min(wanted, most), LEAST_BATCHES * slowest)
    if duration * total > MOST_PACKETS:
        raise RunRefused(
            f"bad-request: {LEAST_BATCHES} batches of the slowest NF are {duration * total:.3g} packets of all NFs, "
            f"this simulation takes {MOST_PACKETS:.3g}"
        )
    return duration


# From what happened to what a testbed reports: throughput, latency of packets, and time in each stage.


SETTLING_SHARE, ENDING_SHARE = 0.1, 0.03
"""Shares of the time, first and last, whose batches are left out: queues fill, and packets stop coming."""
READING_DIGITS = 6
LEAST_LOSS = 2e-3  # fewer packets missing than that are under way, not lost
NO_COUNTERS = Counters()


@dataclass(frozen=True, slots=True)
class SettledBatches:
    """The batches that were taken while the server was settled, and the place of each of their packets."""

    times: Floats  # as in `Timeline`
    count: Ints  # as in `Timeline`
    arrived: Floats  # when each packet came (us)
    place: Ints  # place of each packet in its batch, from 0


def select_settled(timeline: Timeline, until_us: float) -> SettledBatches:
    """The batches from which a run on packets until `until_us` is measured."""
    taken = timeline.times[:, of.TAKEN]
    kept = (taken >= SETTLING_SHARE * until_us) & (taken <= (1 - ENDING_SHARE) * until_us)
    count = timeline.count[kept]
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return SettledBatches(
        timeline.times[kept], count, timeline.arrived[np.repeat(timeline.first[kept], count) + place], place
    )


def measure_nf(timeline: Timeline, rate_kpps: float, until_us: float, *, exact: bool) -> Measurement | None:
    """The measurement of one NF; None where no batch came back in time. `exact` reports the offered rate as throughput
    where no packets are lost, instead of the packets that were counted."""
    batches = select_settled(timeline, until_us)
    if not len(batches.count):
        return None
    times, count = batches.times, batches.count
    batching = np.repeat(times[:, of.TAKEN], count) - batches.arrived
    sending = (batches.place + 1) * np.repeat(times[:, of.POST_PACKET], count)
    worker = sending + np.repeat(
        times[:, of.READY] - times[:, of.TAKEN] + times[:, of.POSTED] - times[:, of.BACK], count
    )
    latency = np.repeat(times[:, of.POSTED], count) - batches.arrived + sending
    p50, p99 = np.percentile(latency, (50, 99)).tolist()
    of_batch = np.diff(times[:, of.READY : of.DONE + 1], axis=1).T
    stages = [*of_batch, times[:, of.BACK] - times[:, of.DONE]]
    means = [batching.mean(), worker.mean(), *(np.average(stage, weights=count) for stage in stages)]
    tails = [*(np.percentile(times, 99) for times in (batching, worker)), *(_tail(times, count) for times in stages)]
    return Measurement(
        round_reading(_throughput_kpps(timeline, rate_kpps, until_us, exact)),
        NO_COUNTERS,
        (),
        PacketLatency(*map(round_reading, (latency.mean(), p50, p99, latency.max()))),
        GpuStages(*map(round_reading, means)),
        GpuStages(*map(round_reading, tails)),
    )


def _tail(values: Floats, count: Ints) -> float:
    """The time that 99 % of the packets do not exceed, of batches with so many packets."""
    order = np.argsort(values)
    packets = np.cumsum(count[order])
    return float(values[order][np.searchsorted(packets, 0.99 * packets[-1])])


def _throughput_kpps(timeline: Timeline, rate_kpps: float, until_us: float, exact: bool) -> float:
    """Packets that leave while the server is settled, of those that are offered meanwhile."""
    begin, end = SETTLING_SHARE * until_us, until_us
    times, count = timeline.times, timeline.count
    done = times[:, of.POSTED] + count * times[:, of.POST_PACKET]
    left = float(count[(done >= begin) & (done <= end)].sum())
    if not exact:
        return max(left, 1.0) * 1e3 / (end - begin)
    came = float(np.sum((timeline.arrived >= begin) & (timeline.arrived <= end)))
    came += timeline.lost * (end - begin) / until_us
    overloaded = 1 - left / max(came, 1.0) > max(LEAST_LOSS, 4 * float(count.max()) / max(came, 1.0))
    return rate_kpps * max(left, 1.0) / max(came, 1.0) if overloaded else rate_kpps


def round_reading(value: float) -> float:
    """The value with the digits that a testbed reports; no time is negative."""
    return float(f"{max(value, 0.0):.{READING_DIGITS}g}")
