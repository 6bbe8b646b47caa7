"""What the verifier asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiles import Workload

CoLocation = tuple[Workload, ...]
Ask = Callable[[int, Sequence[CoLocation]], Sequence[Sequence[float]]]
"""Given the number of a NIC kind and companies, the throughputs (kpps) of each."""


def lowest_of(number: int, co_locations: Sequence[CoLocation], ask: Ask) -> dict[CoLocation, dict[Workload, float]]:
    """By company, the throughput of each workload; of equal workloads the lowest."""
    told: dict[CoLocation, dict[Workload, float]] = {}
    for co_location, answer in zip(co_locations, ask(number, co_locations), strict=True):
        lowest: dict[Workload, float] = {}
        for workload, kpps in zip(co_location, answer, strict=True):
            lowest[workload] = min(kpps, lowest.get(workload, kpps))
        told[co_location] = lowest
    return told


def alone_of(number: int, workloads: set[Workload], ask: Ask) -> dict[Workload, float]:
    asked: list[CoLocation] = [(workload,) for workload in sorted(workloads)]
    return {co_location[0]: answer[0] for co_location, answer in zip(asked, ask(number, asked), strict=True)}
