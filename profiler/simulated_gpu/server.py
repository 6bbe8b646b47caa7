"""From NFs on a card to what happened: prepares the tables of the loop and runs it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.random import Generator

from profiler.simulated.arrivals import arrivals, mean_burst, wire_us
from profiler.simulated_gpu import columns as of
from profiler.simulated_gpu.card import ETHERNET_BYTES, HEADER_BYTES, VERDICT_BYTES, WARP_LANES, GpuCard, GpuNfSpec
from profiler.simulated_gpu.columns import EXECUTORS, SPATIAL, TEMPORAL, World
from profiler.simulated_gpu.loop import simulate
from profiles import GpuSettings, TrafficProfile
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

    arrived: Floats
    """When each packet came that was not lost (us)."""
    lost: int
    waiting: int
    """Packets that found the ring full, and that no batch took until the end."""
    times: Floats
    """Of every batch that came back, columns `TAKEN` to `POST_PACKET` of `profiler.simulated_gpu.columns`."""
    first: Ints
    count: Ints
    """Its first packet, and how many it has."""
    part_ends: Floats
    """When each of its parts was done; 0 where a short batch has none."""


def run_server(card: GpuCard, loads: Sequence[GpuLoad], until_us: float, seed: str) -> list[Timeline]:
    """Run `loads` side by side on packets that come until `until_us`; a timeline per load.

    Packets and jitter of each load are drawn from the seed and its text alone.
    """
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
