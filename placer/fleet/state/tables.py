"""Tables of an open state, whatever it is kept in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import inf
from typing import Any, Protocol

from placer.fleet.protocol import Check
from placer.model.constraints import CONSTRAINTS
from placer.model.groups import UNCONSTRAINED, Constraints, usable_group
from profiles import ATTRIBUTES, TrafficProfile, Workload

MAX_REMEMBERED_CONSTRAINTS = 100_000

Row = tuple[object, ...]
Statement = tuple[str, Sequence[Row]]  # a statement, and the rows that it is executed with


class Tables(Protocol):
    """An open database."""

    def execute(self, statement: str, /) -> Iterable[tuple[Any, ...]]:
        """The rows that a statement returns."""


# A workload is written as its NF, its traffic, and its load: null where it is saturated, has its default number of
# cores, and is promised no latency.

Labels = tuple[tuple[str, str], ...]  # by key in alphabetical order
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


def faults_of_running(check: Check, workload: Workload) -> list[tuple[str, str]]:
    """What is wrong with a workload that runs, as (column, message), where `check` is of one that arrives.

    It may be offered more than its cores carry, if others carry that: its SLA allows for it, or is at risk.
    """
    found = [*check(workload)]
    if not found or not workload.cores or workload.is_saturated:
        return found
    return [*check(workload.at_load(inf, workload.cores, inf)), *check(workload.on_cores(0))]


# Constraints are written as a JSON object, by name; null where there are none.


WAITING_GROUP = "group"
"""The name under which the group of an instance that waits is written beside its constraints."""


def format_constraints(constraints: Constraints, group: str = "") -> str | None:
    """The constraints of an instance as a state has them, and the group with which it waits."""
    written = dict(constraints.values) | ({WAITING_GROUP: group} if group else {})
    return json.dumps(written) if written else None


def format_labels(labels: Labels) -> str | None:
    """Labels as a state has them, as a JSON object; null for none."""
    return json.dumps(dict(labels)) if labels else None


@lru_cache(MAX_REMEMBERED_CONSTRAINTS)
def read_labels(written: str | None) -> Labels:
    """Labels as `format_labels` wrote them. Raises ValueError when they make no sense."""
    given = {} if written is None else json.loads(written)
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise ValueError("not an object whose values are texts")
    return tuple(sorted(given.items()))


@lru_cache(MAX_REMEMBERED_CONSTRAINTS)
def read_constraints(written: str | None) -> tuple[Constraints, str]:
    """Constraints and group as `format_constraints` wrote them. Raises ValueError when they make no sense."""
    if written is None:
        return UNCONSTRAINED, ""
    given = json.loads(written)
    if not isinstance(given, dict) or not given.keys() <= {*CONSTRAINTS, WAITING_GROUP}:
        raise ValueError(f"not an object with {', '.join((*CONSTRAINTS, WAITING_GROUP))}")
    group = str(given.pop(WAITING_GROUP, ""))
    for name, value in given.items():
        CONSTRAINTS[name].check_value(usable_group(str(value)))
    return Constraints(tuple(sorted((name, str(value)) for name, value in given.items()))), group
