"""A GPU server whose stages are short formulas, so that tests know what profiling and training must find."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from profiler.protocol.request_checks import gpu_refusals
from profiler.testbed import GpuStages, Measurement, PacketLatency, Run, RunRefused, Testbed
from profiles import COUNTERS, Counters, GpuWorkload, Load, TestbedDescription
from profiles.arrays import Floats

EXECUTORS, PER_EXECUTOR = 8, 32
BURST = 4.0  # mean packets of a burst
BATCHES = 150
PACKETS_AT_MOST = 60_000
PENALTY = {("hash", "scan"): 0.05, ("scan", "hash"): 0.02, ("hash", "hash"): 0.03, ("scan", "scan"): 0.04}
"""By which share each executor of the second NF slows the first."""


def toy_description(**changes: object) -> TestbedDescription:
    """Four SMs of eight executors; `hash` moves headers, `scan` payloads."""
    described: dict[str, object] = {
        "name": "toy-gpu",
        "simulated": True,
        "nic": {
            "model": "toy-gpu", "cores": 6, "kind": "gpu", "sms": 4, "executors_per_sm": EXECUTORS,
            "packets_per_executor": PER_EXECUTOR,
        },
        "attributes": {"packet_size": (64, 1500)},
        "default_traffic": {"flows": 1000, "packet_size": 512},
        "nfs": [{"name": "hash", "cores": 1, "moves": "header"}, {"name": "scan", "cores": 1, "moves": "payload"}],
        "workers": 6,
        "arbitration": "sporadic",
    }  # fmt: skip
    return TestbedDescription.model_validate(described | changes)


@dataclass(frozen=True)
class ToyTimes:
    """The true times of a load, us."""

    pre_post: float
    transfer: float
    kernel: float
    returned: float

    @classmethod
    def of(cls, load: GpuWorkload) -> "ToyTimes":
        """The times of an NF with its SMs for itself."""
        assert load.gpu is not None
        batch, size = load.gpu.batch, load.traffic.packet_size
        used = max(-(-one.packets // PER_EXECUTOR) for one in load.gpu.minibatches)
        moved = 40.0 if load.nf == "hash" else size
        per_executor = 3.0 if load.nf == "hash" else 4.0 + size / 200
        return cls(2 + 0.02 * batch, 4 + batch * moved / 10_000, 20 + per_executor * used, 4 + batch * 8 / 10_000)


@dataclass(eq=False)
class ToyGpu(Testbed):
    """A server that answers from formulas, and queues on its bus."""

    described: TestbedDescription = field(default_factory=toy_description)
    tails: bool = True  # whether it measures the p99 of each stage
    noise: float = 0.003  # relative error of each stage's mean
    runs: int = field(default=0, init=False)

    def describe(self) -> TestbedDescription:
        return self.described

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if wrong := gpu_refusals(self.described, loads):
            raise RunRefused("; ".join(wrong))
        self.runs += 1
        paced = [load for load in loads if isinstance(load, GpuWorkload)]
        rng = np.random.default_rng([seed or 0, zlib.crc32(json.dumps([load.as_request() for load in paced]).encode())])
        times = [ToyTimes.of(load) for load in paced]
        arrivals = [_arrivals(load, rng) for load in paced]
        ends = [packets[:, -1] for packets in arrivals]
        asked = [end + time.pre_post / 2 for end, time in zip(ends, times, strict=True)]
        begun = _bus(paced, asked, [time.transfer for time in times])
        measured = []
        for at, (load, time) in enumerate(zip(paced, times, strict=True)):
            error = 1 + self.noise * float(rng.standard_normal()) if noise else 1.0
            kernel = time.kernel * (1 + _slowdown(paced, at)) * error
            wait = begun[at] - asked[at]
            after = time.pre_post + time.transfer + kernel + time.returned
            packets = (ends[at] + wait + after)[:, None] - arrivals[at]
            batching = ends[at][:, None] - arrivals[at]
            stages = GpuStages(
                float(batching.mean()), time.pre_post, float(wait.mean()), time.transfer, 0.0, kernel, time.returned
            )
            tails = GpuStages(
                float(np.quantile(batching, 0.99)), time.pre_post, float(np.quantile(wait, 0.99)), time.transfer, 0.0,
                kernel, time.returned,
            )  # fmt: skip
            p50, p99 = np.quantile(packets, [0.5, 0.99]).tolist()
            latency = PacketLatency(float(packets.mean()), p50, p99, float(packets.max()))
            full = 1000.0 * load.gpu.batch / max(time.transfer, kernel, time.pre_post)  # type: ignore[union-attr]
            counters = Counters.from_mapping(dict.fromkeys(COUNTERS, 0.0))
            kpps = min(load.rate_kpps, full)
            measured.append(Measurement(kpps, counters, (), latency, stages, tails if self.tails else None))
        return Run(tuple(measured), 0.01)


def _arrivals(load: GpuWorkload, rng: np.random.Generator) -> Floats:
    """When the packets of each batch arrive, shape (batches, batch)."""
    assert load.gpu is not None
    batch = load.gpu.batch
    batches = max(min(BATCHES * 4, PACKETS_AT_MOST // batch), 20)
    count = batches * batch
    gaps = np.where(rng.random(count) < 1 / BURST, rng.exponential(1000.0 / load.rate_kpps * BURST, count), 0.0)
    gaps *= 1000.0 / load.rate_kpps * count / gaps.sum()
    found: Floats = np.cumsum(gaps).reshape(batches, batch)
    return found


def _bus(paced: Sequence[GpuWorkload], asked: Sequence[Floats], taken: Sequence[float]) -> list[Floats]:
    """When each batch has the bus; of those that wait, the one of the smallest order."""
    last = min(float(times[-1]) for times in asked)
    jobs = sorted((float(when), at, number) for at, times in enumerate(asked) for number, when in enumerate(times))
    begun = [times.copy() for times in asked]
    waiting: list[tuple[int, int, int]] = []
    now = 0.0
    while jobs or waiting:
        if not waiting:
            now = max(now, jobs[0][0])
        while jobs and jobs[0][0] <= now:
            _, at, number = jobs.pop(0)
            waiting.append((paced[at].gpu.order or 0, at, number))  # type: ignore[union-attr]
        waiting.sort()
        _, at, number = waiting.pop(0)
        begun[at][number] = now if now < last else max(now, begun[at][number])
        now += taken[at]
    return begun


def _slowdown(paced: Sequence[GpuWorkload], at: int) -> float:
    """By which share the kernel takes longer, as if its sharers always ran."""
    mine = {one.sm for one in paced[at].gpu.minibatches}  # type: ignore[union-attr]
    return sum(
        PENALTY[paced[at].nf, load.nf] * -(-one.packets // PER_EXECUTOR)
        for other, load in enumerate(paced)
        if other != at and load.gpu
        for one in load.gpu.minibatches
        if one.sm in mine
    )
