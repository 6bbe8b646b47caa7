"""Testbeds: what can run workloads side by side on a NIC and measure them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from profiles import Counters, Load, TestbedDescription


class TestbedError(Exception):
    """A testbed that failed; the message holds its last output."""

    __test__ = False


class RunRefused(TestbedError):
    """A request that the testbed understood and will refuse each time."""


class TestbedChanged(TestbedError):
    """A testbed that describes itself differently after a restart, or drifted far: it belongs to another profile."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class StageMeasurement:
    """One stage of a chain: the packets that leave it (kpps), and how many of those that enter it it drops (%)."""

    throughput_kpps: float
    dropped_pct: float
    cpu_pct: float | None = None  # what the stages of its core use of a whole core, where the testbed measures it


@dataclass(frozen=True, slots=True)
class PacketLatency:
    """Time of packets from the source to the sink, us."""

    mean: float
    p50: float
    p99: float
    max: float
    p95: float | None = None  # where the testbed measures it


@dataclass(frozen=True, slots=True)
class GpuStages:
    """Time of a packet in each stage of its way through a GPU, us (Grus, equation 1, and the way back)."""

    batching: float  # from its arrival until its batch is complete and the worker takes it
    pre_post: float  # in the worker, before and after the GPU
    transfer_wait: float  # until its batch has the bus to the GPU
    transfer: float  # on the bus
    kernel_wait: float  # until its part of the batch has an SM
    kernel: float  # until the last part of the batch is done
    returned: float  # until its batch is back in the memory of the host; `return` in the protocol

    def as_dict(self) -> dict[str, float]:
        """The times by their names in the protocol."""
        return dict(zip(GPU_STAGES, astuple(self), strict=True))


GPU_STAGES = ("batching", "pre_post", "transfer_wait", "transfer", "kernel_wait", "kernel", "return")
"""Names of the stages in the protocol, in the order of the fields of `GpuStages`."""


LATENCY_NAMES = tuple(field.name for field in fields(PacketLatency))
"""Names of the latencies, in the order of every file."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One workload during a run, under its contention."""

    throughput_kpps: float  # its throughput; of a chain, the packets that enter it
    counters: Counters  # its own counters
    stages: tuple[StageMeasurement, ...] = ()  # of a chain, each stage; else empty
    latency_us: PacketLatency | None = None  # of its packets, where the testbed measures it
    stages_us: GpuStages | None = None
    stages_p99_us: GpuStages | None = None
    """On a GPU, the mean over its packets of the time in each stage, and the 99th percentile of each."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: a measurement per load, in the order of the request, and the testbed's time for it (s). `best_effort` is
    None unless the testbed could not measure it undisturbed."""

    measurements: tuple[Measurement, ...]
    elapsed_s: float = 0.0
    best_effort: BestEffort | None = None


def refuse_invalid(run: Run) -> None:
    """TestbedError when a throughput or counter cannot be a measurement, so that no model learns from it."""
    for measurement in run.measurements:
        if not (math.isfinite(measurement.throughput_kpps) and measurement.throughput_kpps > 0):
            raise TestbedError(f"testbed reports a throughput of {measurement.throughput_kpps} kpps")
        if wrong := {
            name: value for name, value in measurement.counters.as_dict().items() if not 0 <= value < math.inf
        }:
            raise TestbedError(f"testbed reports counters {wrong}")
        for stage in measurement.stages:
            if not (0 <= stage.throughput_kpps < math.inf and 0 <= stage.dropped_pct <= 100 and _sound(stage.cpu_pct)):
                raise TestbedError(f"testbed reports {stage}")
        for times in (measurement.latency_us, measurement.stages_us, measurement.stages_p99_us):
            if times and not all(map(_sound, astuple(times))):
                raise TestbedError(f"testbed reports {times}")


def _sound(value: float | None) -> bool:
    """Whether a testbed can have measured this, or did not measure it."""
    return value is None or 0 <= value < math.inf


class Testbed(ABC):
    """A NIC on which loads run together. Use it as a context manager; leaving it frees what it holds."""

    __test__ = False

    @abstractmethod
    def describe(self) -> TestbedDescription:
        """What the testbed reports of itself."""

    @abstractmethod
    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        """Run `loads` side by side and measure each. `loads`: NF workloads, chains of NFs and benches that share the
        NIC. `noise`: false requests the noise-free truth from a simulated testbed; a real one ignores it. `seed`: a
        simulated testbed draws its noise from the seed and the loads alone. Raises `RunRefused` when the testbed
        refuses the request. Raises `TestbedError` when the testbed fails."""

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[Run]:
        """One run per co-location, in order; a testbed that can batch overrides this."""
        return [self.run(loads, noise=noise, seed=seed) for loads in co_locations]

    @property
    def batches(self) -> bool:
        """Whether it runs several co-locations together faster than one after another."""
        return type(self).run_many is not Testbed.run_many

    @property
    def measured_by(self) -> str:
        """What measures, if the description does not show it: machines of a kind describe themselves alike. A journal
        is resumed only by the one that began it."""
        return ""

    def close(self) -> None:
        """Free what the testbed holds; safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TestbedWrapper(Testbed):
    """A testbed that passes requests on to another; `run_many` of the subclass changes the requests or the answers.
    `inner`: runs the requests."""

    __test__ = False

    def __init__(self, inner: Testbed) -> None:
        self._inner = inner

    @property
    def batches(self) -> bool:
        return self._inner.batches

    @property
    def measured_by(self) -> str:
        return self._inner.measured_by

    def describe(self) -> TestbedDescription:
        return self._inner.describe()

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        return self.run_many([loads], noise=noise, seed=seed)[0]


def processor_fields() -> dict[str, str]:
    """What the kernel says of the last processor of this machine, by its own names (`model name`, `cpu MHz`); empty
    where it says nothing."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


# Best-effort answers: what a testbed measured although other work disturbed the run (docs/host-testbed.md).


WIDE_ERRORS = 1.96  # standard errors on each side that hold the truth in 95 % of all runs


@dataclass(frozen=True, slots=True)
class BestEffort:
    """What a testbed says of a run that it could not measure undisturbed."""

    standard_error_pct: tuple[float | None, ...]
    """Of the throughput of each workload, in the order of the request; None where it is not known."""
    disturbed_pct: float | None = None  # the share of its windows that were disturbed; None where it is not known

    def as_dict(self) -> dict[str, Any]:
        """The fields, as `from_mapping` reads them."""
        return asdict(self)

    @classmethod
    def from_mapping(cls, fields: Mapping[str, Any]) -> Self:
        """What `as_dict` returned, also after JSON. Raises `KeyError`, `TypeError` or `ValueError` for all else."""
        errors = tuple(None if error is None else float(error) for error in fields["standard_error_pct"])
        disturbed = fields["disturbed_pct"]
        return cls(errors, None if disturbed is None else float(disturbed))


def difference_by_error(one: BestEffort | None, other: BestEffort | None) -> float:
    """The relative difference of the first workload's throughputs up to which two runs differ by their errors alone. 0
    where neither is best effort, or its error is not known: a testbed accepts other runs only with small errors."""
    errors = [effort.standard_error_pct[0] or 0.0 for effort in (one, other) if effort and effort.standard_error_pct]
    return WIDE_ERRORS * math.hypot(*errors) / 100 if errors else 0.0
