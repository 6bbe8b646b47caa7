"""The simulated GPU as a testbed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.protocol.request_checks import refusals
from profiler.simulated_gpu import columns as of
from profiler.simulated_gpu.card import GPU_NFS, TITAN, GpuCard, GpuNfSpec
from profiler.simulated_gpu.server import GpuLoad, Timeline, run_server
from profiler.testbed import GpuStages, Measurement, PacketLatency, Run, RunRefused, Testbed, TestbedError
from profiles import Counters, Load, NfDescription, NicModel, PacedWorkload, TestbedDescription
from profiles.arrays import Floats, Ints

TRAFFIC_BOUNDS = {"flows": (1.0, 500_000.0), "packet_size": (64.0, 1500.0), "mtbr": (0.0, 1100.0)}
DEFAULT_TRAFFIC = {"flows": 16_000.0, "packet_size": 850.0, "mtbr": 100.0}

RUN_BATCHES, EXACT_BATCHES = 200, 1500
"""Batches of the slowest NF in a run, and in one without noise."""
RUN_PACKETS, EXACT_PACKETS = 1_500_000, 8_000_000
"""Packets of all NFs together in a run, at most, and in one without noise, ..."""
LEAST_BATCHES, MOST_PACKETS = 20, 20_000_000
"""... unless the slowest NF would have fewer batches than that; it has them while there are at most so many packets."""
TRUTH_SETTING = "truth"


class SimulatedGpu(Testbed):
    """Runs NFs on a simulated GPU: `profiler.simulated_gpu.loop` follows every batch.

    Measurements vary from run to run because packets come at random. A run without noise is long, and its packets are
    the same every time.

    Parameters
    ----------
    seed
        Of the packets of runs without a seed of their own. Repeats of such a run differ.
    card
        The server and its GPU.
    nfs
        The NFs that it can run.
    """

    def __init__(self, *, seed: int = 0, card: GpuCard = TITAN, nfs: Sequence[GpuNfSpec] = GPU_NFS) -> None:
        self._seed = seed
        self._card = card
        self._nfs = {nf.name: nf for nf in nfs}
        self._description = TestbedDescription(
            name=f"simulated-{card.model}",
            simulated=True,
            nic=NicModel(
                model=card.model,
                cores=card.workers,
                kind="gpu",
                clock_mhz=card.clock_ghz * 1e3,
                sms=card.sms,
                executors_per_sm=card.executors_per_sm,
                packets_per_executor=card.packets_per_executor,
            ),
            attributes=TRAFFIC_BOUNDS,
            default_traffic=DEFAULT_TRAFFIC,
            nfs=tuple(NfDescription(name=nf.name, cores=1, moves=nf.moves) for nf in nfs),
            workers=card.workers,
            arbitration="sporadic",
        )
        self._repeats: Counter[tuple[str, ...]] = Counter()

    def describe(self) -> TestbedDescription:
        """The card, its workers and NFs, and the range of traffic."""
        return self._description

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        """Run `loads` side by side; see `Testbed.run`. The answer does not depend on the order of the request.

        Raises
        ------
        RunRefused
            When the card cannot run them: unknown names, values out of range, too many executors; or when their rates
            are so far apart that a run would have too many packets.
        """
        paced = self._accepted(loads)
        prepared, places = self._prepared(paced)
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

    def _accepted(self, loads: Sequence[Load]) -> list[PacedWorkload]:
        if not loads:
            raise RunRefused("bad-request: nothing to run")
        if faults := refusals(self._description, loads):
            raise RunRefused(f"bad-request: {'; '.join(faults)}")
        return [load for load in loads if isinstance(load, PacedWorkload)]

    def _prepared(self, loads: Sequence[PacedWorkload]) -> tuple[list[GpuLoad], list[int]]:
        """The loads in an order of their own, and the place of each in the request."""
        places = sorted(range(len(loads)), key=lambda place: _text(loads[place]))
        seen: Counter[str] = Counter()
        prepared = []
        for load in (loads[place] for place in places):
            assert load.gpu is not None  # others are refused
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


def _text(load: PacedWorkload) -> str:
    """The load as text, which sorts it."""
    return f"{_packets_text(load)} {load.gpu}"


def _packets_text(load: PacedWorkload) -> str:
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
LEAST_LOSS = 2e-3
"""Fewer packets missing than that are under way, not lost."""
NO_COUNTERS = Counters()


@dataclass(frozen=True, slots=True)
class SettledBatches:
    """The batches that were taken while the server was settled, and the place of each of their packets."""

    times: Floats
    count: Ints
    """As in `Timeline`."""
    arrived: Floats
    place: Ints
    """Of each packet: when it came (us), and its place in its batch, from 0."""


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
    """The measurement of one NF; None where no batch came back in time.

    `exact` reports the offered rate as throughput where no packets are lost, instead of the packets that were counted.
    """
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
    missing = 1 - left / max(came, 1.0)
    overloaded = missing > max(LEAST_LOSS, 4 * float(count.max()) / max(came, 1.0))
    return rate_kpps * max(left, 1.0) / max(came, 1.0) if overloaded else rate_kpps


def round_reading(value: float) -> float:
    """The value with the digits that a testbed reports; no time is negative."""
    return float(f"{max(value, 0.0):.{READING_DIGITS}g}")
