"""What the verifier asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiles import Workload

Company = tuple[Workload, ...]
Ask = Callable[[int, Sequence[Company]], Sequence[Sequence[float]]]
"""Given the number of a NIC kind and companies, the throughputs (kpps) of each."""


def lowest_of(number: int, companies: Sequence[Company], ask: Ask) -> dict[Company, dict[Workload, float]]:
    """By company, the throughput of each workload; of equal workloads the lowest."""
    told: dict[Company, dict[Workload, float]] = {}
    for company, answer in zip(companies, ask(number, companies), strict=True):
        lowest: dict[Workload, float] = {}
        for workload, kpps in zip(company, answer, strict=True):
            lowest[workload] = min(kpps, lowest.get(workload, kpps))
        told[company] = lowest
    return told


def alone_of(number: int, workloads: set[Workload], ask: Ask) -> dict[Workload, float]:
    asked: list[Company] = [(workload,) for workload in sorted(workloads)]
    return {company[0]: answer[0] for company, answer in zip(asked, ask(number, asked), strict=True)}
