"""Runs of co-locations on a GPU server, several times each, and what is left of their repeats."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from statistics import median

import numpy as np

from profiler.testbed import GPU_STAGES, Measurement, PacketLatency, RunRefused, Testbed, TestbedChanged, TestbedError
from profiles import GpuWorkload, TrafficProfile
from profiles.arrays import Floats

GpuCoLocation = tuple[GpuWorkload, ...]

AGREEING_DIFFERENCE = 0.1  # mean latencies of two runs that differ by more are decided by a third
CARRIED_SHARE = 0.9
"""The least share of the offered packets that leaves a server that is not overloaded, unless few packets came."""
LOST_SHARE = 0.5  # of which less leaves, however few packets come, only a server that loses packets
QUEUED_BATCHES = 1.0  # batches that wait for the worker of an overloaded server that carries more, at least
SEED_STRIDE = 3_000_017
AT_ONCE = 64
MOST_FAILURES = 3  # Co-locations that may fail one after another before the testbed itself is taken to have failed


@dataclass(frozen=True)
class MeasuredGpuRun:
    """A co-location with the measurements of each workload, one per repeat."""

    loads: GpuCoLocation
    repeats: tuple[tuple[Measurement, ...], ...]

    def latency_us(self, at: int, name: str) -> float:
        """A latency of one workload (`mean`, `p50`, `p99`): the median of its repeats."""
        return self._median(at, "latency_us", name)

    def stage_us(self, at: int, stage: str) -> float:
        """The mean time in a stage, by its name in the protocol."""
        return self._median(at, "stages_us", stage)

    def stage_p99_us(self, at: int, stage: str) -> float | None:
        """The p99 of a stage; None where the testbed does not measure it."""
        if any(measurement.stages_p99_us is None for measurement in self.repeats[at]):
            return None
        return self._median(at, "stages_p99_us", stage)

    def kpps(self, at: int) -> float:
        """The throughput of one workload."""
        return median(measurement.throughput_kpps for measurement in self.repeats[at])

    def spread_us(self, at: int, stage: str) -> float:
        """The largest less the smallest mean of a stage over the repeats."""
        values = list(self._values(at, "stages_us", stage))
        return max(values) - min(values)

    @property
    def overloaded(self) -> bool:
        """Whether a workload carries less than it is offered, and its packets queue. Without a queue, few packets came
        by chance: in such runs, they wait longest for their batches, so that errors without them would be too small."""
        shares = [self.kpps(at) / load.rate_kpps for at, load in enumerate(self.loads)]
        return any(
            share < LOST_SHARE or (share < CARRIED_SHARE and self._queued_batches(at) >= QUEUED_BATCHES)
            for at, share in enumerate(shares)
        )

    def _queued_batches(self, at: int) -> float:
        """Batches of one workload that wait for its worker on average: packets by Little's law, less those of a batch
        that is not complete."""
        batch = self.loads[at].gpu.batch
        return (self.stage_us(at, "batching") * self.kpps(at) / 1000.0 - (batch - 1) / 2) / batch

    def _median(self, at: int, field: str, name: str) -> float:
        return median(self._values(at, field, name))

    def _values(self, at: int, field: str, name: str) -> Iterator[float]:
        for measurement in self.repeats[at]:
            yield float(getattr(getattr(measurement, field), "returned" if name == "return" else name))


class GpuRuns:
    """Runs co-locations on a testbed, each several times. `testbed`: where they run; it keeps what it measured. `seed`:
    of the noise of a simulated testbed; each repeat has its own. `done`: called with the number of runs, after each
    batch."""

    def __init__(self, testbed: Testbed, seed: int, done: Callable[[int], None] = lambda runs: None) -> None:
        self._testbed = testbed
        self._seed = seed
        self._done = done
        self.made = 0  # runs, repeats counted
        self.left_out: list[GpuCoLocation] = []
        """Co-locations that the testbed refuses, or that fail at every attempt: a server may end under overload."""
        self._failures = 0

    def measure(self, co_locations: Sequence[GpuCoLocation], repeats: int) -> list[MeasuredGpuRun]:
        """The co-locations that run, in order; repeats that disagree are decided by a further one. Raises
        `TestbedError` when the testbed fails, or measures no latency."""
        found: dict[GpuCoLocation, list[tuple[Measurement, ...]]] = {}
        for repeat in range(repeats):
            wanted = [co_location for co_location in dict.fromkeys(co_locations) if not repeat or co_location in found]
            for one, run in self._run(wanted, repeat):
                found.setdefault(one, []).append(run)
        doubted = [one for one, runs in found.items() if len(runs) == 2 and not _agree(*runs)]
        for one, run in self._run(doubted, repeats):
            found[one].append(run)
        return [MeasuredGpuRun(one, tuple(zip(*runs, strict=True))) for one, runs in found.items()]

    def _run(
        self, co_locations: Sequence[GpuCoLocation], repeat: int
    ) -> Iterator[tuple[GpuCoLocation, tuple[Measurement, ...]]]:
        for start in range(0, len(co_locations), AT_ONCE):
            yield from self._run_some(co_locations[start : start + AT_ONCE], self._seed + SEED_STRIDE * (repeat + 1))

    def _run_some(
        self, co_locations: Sequence[GpuCoLocation], seed: int
    ) -> list[tuple[GpuCoLocation, tuple[Measurement, ...]]]:
        try:
            runs = self._testbed.run_many(co_locations, seed=seed)
        except TestbedChanged:
            raise
        except TestbedError as error:
            if len(co_locations) > 1:
                half = len(co_locations) // 2
                return [*self._run_some(co_locations[:half], seed), *self._run_some(co_locations[half:], seed)]
            if not isinstance(error, RunRefused):
                self._failures += 1
                if self._failures > MOST_FAILURES:
                    raise
            self.left_out += co_locations
            return []
        self._failures = 0
        self.made += len(runs)
        self._done(len(runs))
        for run in runs:
            if any(measurement.latency_us is None or measurement.stages_us is None for measurement in run.measurements):
                latency = ", ".join(field.name for field in fields(PacketLatency) if field.default is MISSING)
                names = f"latency_us ({latency}) and stages_us ({', '.join(GPU_STAGES)})"
                raise TestbedError(f"testbed answers NFs on a GPU without {names}")
        return [(one, run.measurements) for one, run in zip(co_locations, runs, strict=True)]


def _agree(one: Sequence[Measurement], other: Sequence[Measurement]) -> bool:
    pairs = [(here.latency_us, there.latency_us) for here, there in zip(one, other, strict=True)]
    return all(
        abs(here.mean - there.mean) <= AGREEING_DIFFERENCE * max(here.mean, there.mean)
        for here, there in pairs
        if here and there
    )


# About how long each stage of an NF takes, so that runs are chosen that a server carries. No model learns from it.


SERVING_STAGES = ("pre_post", "transfer", "kernel", "return")  # stages in which one batch after the other is served
LEAST_US = 1e-3
PRIOR_SERVICE = 1e-2


@dataclass(frozen=True)
class StageEstimate:
    """The time of each of `SERVING_STAGES` for an NF: log-quadratic in the packets, log-linear in the traffic."""

    coefficients: Floats  # shape (terms, stages)
    centre: Floats  # logarithms of packets and traffic about which it is

    @classmethod
    def of(cls, runs: Sequence[MeasuredGpuRun]) -> "StageEstimate":
        """From runs of the NF alone."""
        inputs = np.array([_inputs(run.loads[0]) for run in runs])
        centre = inputs.mean(axis=0)
        times = np.log([[max(run.stage_us(0, stage), LEAST_US) for stage in SERVING_STAGES] for run in runs])
        columns = _terms(inputs - centre)
        ridge = PRIOR_SERVICE * np.eye(columns.shape[1])
        ridge[0, 0] = 0.0
        coefficients = np.linalg.solve(columns.T @ columns + ridge, columns.T @ times)
        return cls(np.asarray(coefficients, dtype=np.float64), centre)

    def times_us(self, batch: int, packets: int, traffic: TrafficProfile) -> dict[str, float]:
        """Each stage's time for a batch, with at most that many packets on one SM."""
        rows = np.array([[np.log(count), *_of_traffic(traffic)] for count in (batch, packets)])
        whole, kernel = np.exp(_terms(rows - self.centre) @ self.coefficients)
        found = dict(zip(SERVING_STAGES, whole.tolist(), strict=True))
        return found | {"kernel": float(kernel[SERVING_STAGES.index("kernel")])}

    def most_kpps(self, batch: int, packets: int, traffic: TrafficProfile) -> float:
        """About the highest rate at which each stage is done with a batch when the next one comes."""
        return 1000.0 * batch / max(self.times_us(batch, packets, traffic).values())


def _inputs(load: GpuWorkload) -> list[float]:
    most = max(minibatch.packets for minibatch in load.gpu.minibatches)
    return [float(np.log(most)), *_of_traffic(load.traffic)]


def _of_traffic(traffic: TrafficProfile) -> list[float]:
    return [float(np.log(traffic.flows)), float(np.log(traffic.packet_size)), float(np.log1p(traffic.mtbr))]


def _terms(inputs: Floats) -> Floats:
    return np.column_stack([np.ones(len(inputs)), inputs, inputs[:, 0] ** 2])
