"""What a sweep measures, as its file says (docs/formats/sweep.md); which values a testbed accepts is in `loads`."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from profiler.sweeps.refinement import Axis
from profiler.testbed import LATENCY_NAMES, Measurement
from profiles import COUNTERS, NfDescription, TestbedDescription
from profiles.faults import suggestion
from profiles.files.toml import WrongKey

# What a sweep can record of the NF that it measures.


THROUGHPUT_METRIC, CYCLES_METRIC = "throughput_kpps", "cycles_per_packet"

_Metric = Callable[[Measurement, float], float | None]


def _throughput(one: Measurement, cycles_per_ms: float) -> float:
    return one.throughput_kpps


def _cycles(one: Measurement, cycles_per_ms: float) -> float | None:
    return cycles_per_ms / one.throughput_kpps if cycles_per_ms else None


def _counter(name: str) -> _Metric:
    return lambda one, _: float(getattr(one.counters, name))


def _latency(name: str) -> _Metric:
    return lambda one, _: getattr(one.latency_us, name) if one.latency_us else None


METRIC_OF_NAME: dict[str, _Metric] = {
    THROUGHPUT_METRIC: _throughput,
    CYCLES_METRIC: _cycles,
    **{f"latency_{name}_us": _latency(name) for name in LATENCY_NAMES},
    **{name: _counter(name) for name in COUNTERS},
}
"""By name; each gets a measurement and the cycles per ms of the NF's cores, and returns None where it is not known."""


def cycles_per_ms(description: TestbedDescription, nf: NfDescription) -> float:
    """Of all cores of the NF together; 0 where the testbed does not describe its clock."""
    return nf.cores * (description.nic.clock_mhz or 0.0) * 1e3


MOST_POINTS = 10_000
MOST_REPEATS = 1_000
MOST_RUNS = 1_000_000
MOST_COPIES = 1_024
LARGEST_VALUE = 1e15
LARGEST_SEED = 2**53
DEFAULT_REPEATS = 3
"""Runs at each point unless the file gives another number."""
RUN_COLUMNS = ("repeat", "run")
"""Columns of measurements.csv that are neither varied nor measured."""

Path = tuple[str | int, ...]


def _number(value: object) -> float:
    """The number as it is written: whole numbers stay whole."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r:.80} is not a number")
    if not math.isfinite(value) or abs(value) > LARGEST_VALUE:
        raise ValueError(f"{value:.80g} is not a number up to {LARGEST_VALUE:g}")
    return value


Number = Annotated[int | float, PlainValidator(_number)]
Whole = Annotated[int, Field(strict=True)]
LONGEST_TESTBED = 4_096  # characters of a testbed, which may be a command
Name = Annotated[str, Field(strict=True, min_length=1, max_length=200)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Competitor(_Table):
    """What shares the NIC: a bench, or another NF with its traffic; `count` copies of it."""

    bench: Name | None = None
    nf: Name | None = None
    count: Annotated[Whole, Field(ge=1, le=MOST_COPIES)] = 1
    flows: Number | None = None
    packet_size: Number | None = None
    mtbr: Number | None = None
    parameters: dict[Name, Number] = {}

    @property
    def name(self) -> str:
        """Of the bench or NF, by which varied keys name it."""
        return self.bench or self.nf or ""


class SweptWorkload(_Table):
    """The NF that is measured; traffic and parameters that are left out have the testbed's defaults."""

    nf: Name
    flows: Number | None = None
    packet_size: Number | None = None
    mtbr: Number | None = None
    parameters: dict[Name, Number] = {}
    competitors: tuple[Competitor, ...] = ()


class VariedKey(_Table):
    """A key and its values: `values`, or `points` of a range; of the first key, later points follow the curve."""

    key: Name
    start: Number | None = Field(default=None, alias="from")
    end: Number | None = Field(default=None, alias="to")
    points: Annotated[Whole, Field(ge=2, le=MOST_POINTS)] | None = None
    scale: Literal["linear", "log"] = "linear"
    values: Annotated[tuple[Number, ...], Field(min_length=1, max_length=MOST_POINTS)] | None = None

    @property
    def axis(self) -> Axis | None:
        """The range; None where values are listed."""
        if self.start is None or self.end is None:
            return None
        whole = isinstance(self.start, int) and isinstance(self.end, int)
        return Axis(float(self.start), float(self.end), self.scale, whole)

    @property
    def settings(self) -> list[float]:
        """The listed values, else points evenly over the range."""
        if self.values is not None:
            return [float(value) for value in self.values]
        axis = self.axis
        return axis.even(self.points or 0) if axis else []

    @property
    def count(self) -> int:
        """How many points are measured, at most."""
        return len(self.values) if self.values is not None else self.points or 0


class MeasureTable(_Table):
    """Names of `METRIC_OF_NAME`, of which the first places adaptive points, and runs at each point."""

    metrics: Annotated[tuple[Name, ...], Field(min_length=1)] = (THROUGHPUT_METRIC,)
    repeats: Annotated[Whole, Field(ge=1, le=MOST_REPEATS)] = DEFAULT_REPEATS


class SweepSpec(_Table):
    """A sweep, as its file describes it."""

    testbed: Annotated[str, Field(strict=True, min_length=1, max_length=LONGEST_TESTBED)] | None = None
    seed: Annotated[Whole, Field(ge=0, le=LARGEST_SEED)] = 0
    workload: SweptWorkload
    vary: Annotated[tuple[VariedKey, ...], Field(min_length=1)]
    measure: MeasureTable = MeasureTable()

    @property
    def runs(self) -> int:
        """How many runs it takes, without those that decide between repeats."""
        return math.prod(variation.count for variation in self.vary) * self.measure.repeats


def spec_faults(spec: SweepSpec) -> list[WrongKey]:
    """What is wrong with a sweep on any testbed; empty when nothing is."""
    faults = [fault for number, one in enumerate(spec.vary) for fault in _of_key(number, one)]
    times = Counter(variation.key for variation in spec.vary)
    faults += [
        WrongKey(("vary", number, "key"), f"{one.key} is varied twice")
        for number, one in enumerate(spec.vary)
        if times[one.key] > 1 and one.key in [other.key for other in spec.vary[:number]]
    ]
    faults += [fault for number, one in enumerate(spec.workload.competitors) for fault in _of_competitor(number, one)]
    faults += _of_metrics(spec)
    if not faults and spec.runs > MOST_RUNS:
        faults.append(WrongKey(("vary", 0), f"{spec.runs:,} runs are more than {MOST_RUNS:,}"))
    return faults


def _of_key(number: int, one: VariedKey) -> Iterator[WrongKey]:
    def wrong(key: str, message: str, hint: str | None = None) -> WrongKey:
        return WrongKey(("vary", number, key), message, hint)

    ranged = {"from": one.start, "to": one.end, "points": one.points}
    if one.values is not None:
        given = [key for key, value in ranged.items() if value is not None]
        given += ["scale"] if "scale" in one.model_fields_set else []
        yield from (wrong(key, "does not go with values", "give a range or values") for key in given)
        if len(set(one.values)) < len(one.values):
            yield wrong("values", "holds a value twice")
        return
    for key, value in ranged.items():
        if value is None:
            yield wrong(key, "is missing", "a range is from, to and points; else list the values")
    if one.start is not None and one.end is not None and one.start >= one.end:
        yield wrong("to", f"{one.end:g} is not above from, {one.start:g}")
    if one.start is not None and one.start <= 0 and one.scale == "log":
        yield wrong("from", f"{one.start:g} is not above 0, as a logarithmic scale needs")


def _of_competitor(number: int, one: Competitor) -> Iterator[WrongKey]:
    path: Path = ("workload", "competitors", number)
    if (one.bench is None) == (one.nf is None):
        yield WrongKey(path, "is a bench or an nf", 'as in bench = "mem-bench"')
    elif one.bench is not None:
        for key in ("flows", "packet_size", "mtbr"):
            if getattr(one, key) is not None:
                yield WrongKey((*path, key), "a bench has no traffic", "write its parameters, if it has such a one")


def _of_metrics(spec: SweepSpec) -> Iterator[WrongKey]:
    metrics = spec.measure.metrics
    for name in dict.fromkeys(metrics):
        if name not in METRIC_OF_NAME:
            yield WrongKey(("measure", "metrics"), f"'{name}' is not a metric", suggestion(name, METRIC_OF_NAME))
        elif metrics.count(name) > 1:
            yield WrongKey(("measure", "metrics"), f"{name} is named twice")
    for number, one in enumerate(spec.vary):
        if one.key in (*metrics, *RUN_COLUMNS):
            hint = f"write parameters.{one.key} for a parameter of the NF"
            yield WrongKey(("vary", number, "key"), f"{one.key} is another column of measurements.csv", hint)
