"""What a sweep can record of the NF that it measures."""

from __future__ import annotations

from collections.abc import Callable

from profiler.testbed import LATENCIES, Measurement
from profiles import COUNTERS, NfDescription, TestbedDescription

THROUGHPUT, CYCLES = "throughput_kpps", "cycles_per_packet"

_Metric = Callable[[Measurement, float], float | None]


def _throughput(one: Measurement, cycles_per_ms: float) -> float:
    return one.throughput_kpps


def _cycles(one: Measurement, cycles_per_ms: float) -> float | None:
    return cycles_per_ms / one.throughput_kpps if cycles_per_ms else None


def _counter(name: str) -> _Metric:
    return lambda one, _: float(getattr(one.counters, name))


def _latency(name: str) -> _Metric:
    return lambda one, _: float(getattr(one.latency_us, name)) if one.latency_us else None


METRICS: dict[str, _Metric] = {
    THROUGHPUT: _throughput,
    CYCLES: _cycles,
    **{f"latency_{name}_us": _latency(name) for name in LATENCIES},
    **{name: _counter(name) for name in COUNTERS},
}
"""By name; each gets a measurement and the cycles per ms of the NF's cores, and returns None where it is not known."""


def cycles_per_ms(description: TestbedDescription, nf: NfDescription) -> float:
    """Of all cores of the NF together; 0 where the testbed does not describe its clock."""
    return nf.cores * (description.nic.clock_mhz or 0.0) * 1e3
