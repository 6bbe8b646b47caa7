"""Tables of an open state, whatever it is kept in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, Protocol

from profiles import ATTRIBUTES, TrafficProfile, Workload

Row = tuple[object, ...]
Statement = tuple[str, Sequence[Row]]  # a statement, and the rows that it is executed with


class Tables(Protocol):
    """An open database."""

    def execute(self, statement: str, /) -> Iterable[tuple[Any, ...]]:
        """The rows that a statement returns."""


# A workload is written as its NF, its traffic, and its load: null where it is saturated, has its default number of
# cores, and is promised no latency.

LoadValues = tuple[float | None, int | None, float | None]  # rate (kpps), cores, and promised latency (us)


def load_values(workload: Workload) -> LoadValues:
    """The load of a workload."""
    rate, latency = (None if value == inf else value for value in (workload.rate_kpps, workload.latency_us))
    return rate, workload.cores or None, latency


def workload_of(nf: str, *values: float | None) -> Workload:
    """The workload with this traffic and, behind it, this load; without a load it is saturated."""
    *traffic, rate, cores, latency = values if len(values) > len(ATTRIBUTES) else (*values, None, None, None)
    offered, promised = (inf if value is None else float(value) for value in (rate, latency))
    profile = TrafficProfile(*(float(value or 0) for value in traffic))
    return Workload(nf, profile, offered, cores=int(cores or 0), latency_us=promised)
