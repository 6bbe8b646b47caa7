"""Queries of throughputs, and the co-locations to query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from placer.verify.certificate_file import Kind
from profiles import CoLocation, Workload

Query = Callable[[int, Sequence[CoLocation]], Sequence[Sequence[float]]]
"""From the number of a NIC kind and co-locations, the throughputs (kpps) in each."""


def lowest_of(number: int, co_locations: Sequence[CoLocation], query: Query) -> dict[CoLocation, dict[Workload, float]]:
    """By co-location, the throughput of each workload; of equal workloads the lowest."""
    throughputs: dict[CoLocation, dict[Workload, float]] = {}
    for co_location, answer in zip(co_locations, query(number, co_locations), strict=True):
        lowest: dict[Workload, float] = {}
        for workload, kpps in zip(co_location, answer, strict=True):
            lowest[workload] = min(kpps, lowest.get(workload, kpps))
        throughputs[co_location] = lowest
    return throughputs


def solo_of(number: int, workloads: set[Workload], query: Query) -> dict[Workload, float]:
    """The throughput of each workload alone on a NIC."""
    alone: list[CoLocation] = [(workload,) for workload in sorted(workloads)]
    return {co_location[0]: answer[0] for co_location, answer in zip(alone, query(number, alone), strict=True)}


def co_locations_on(kind: Kind, instances_of: Mapping[Workload, int]) -> Iterator[CoLocation]:
    """Every co-location of at most so many instances of these workloads that fits the cores."""
    workloads = sorted(instances_of)

    def grow(co_location: CoLocation, first: int) -> Iterator[CoLocation]:
        for place in range(first, len(workloads)):
            larger = (*co_location, workloads[place])
            if larger.count(workloads[place]) <= instances_of[workloads[place]] and kind.taken(larger) <= kind.cores:
                yield larger
                yield from grow(larger, place)

    return grow((), 0)
