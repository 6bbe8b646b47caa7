"""The ledger: what was measured of each workload in each co-location, by whom and when.

Every tenant has one vote, the median of its own readings, so that outliers and a tenant that reports false readings
count little. Readings that are lower bounds only ever vote for more than was predicted.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from statistics import median

from placer.feedback.reading import ProductionReading, competitors_of
from profiles import CoLocation, Workload

REMEMBERED = 64
"""Readings that an entry keeps, the latest."""

LEAST_NOISE = 0.01
"""Readings are at least so noisy, of the logarithm."""

SIGMAS = 2.0

OF_NORMAL = 1.4826
"""The standard deviation of normal noise, in multiples of its median distance."""

FEW_TENANTS = 3
"""Votes from which on their median counts; of fewer, the one that is nearest to the prediction."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One reading of an entry: kpps that the tenant reached, whether that was all it can, and below its SLA."""

    tenant: str
    kpps: float
    event: int
    is_capacity: bool
    below_sla: bool = False


@dataclass(slots=True, eq=False)
class LedgerEntry:
    """What was measured of a workload beside these competitors.

    Parameters
    ----------
    readings
        The latest, oldest first.
    """

    competitors: CoLocation
    readings: deque[Measured] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def votes(self, predicted_kpps: float) -> list[float]:
        """Per tenant whose readings say anything, the logarithm of what it reached over this prediction."""
        by_tenant: dict[str, list[Measured]] = defaultdict(list)
        for one in self.readings:
            by_tenant[one.tenant].append(one)
        votes = (_vote(readings, predicted_kpps) for readings in by_tenant.values())
        return [one for one in votes if one is not None]

    @property
    def seen_below_sla(self) -> bool:
        """Whether some tenant was seen below its SLA."""
        return any(one.below_sla for one in self.readings)

    def noise(self) -> float:
        """How far what its readings agree on may be off by their noise, of the logarithm: `SIGMAS` standard errors."""
        logs = [log(max(one.kpps, 1e-9)) for one in self.readings if one.is_capacity]
        if not logs:
            return 0.0
        middle = median(logs)
        noise = max(OF_NORMAL * median(abs(one - middle) for one in logs), LEAST_NOISE)
        return SIGMAS * noise / sqrt(len(logs))


def agreed(votes: list[float]) -> float:
    """What several tenants agree on: the median, or of few the vote that is nearest to 0; 0 of none."""
    if len(votes) >= FEW_TENANTS:
        return median(votes)
    return min(votes, key=abs, default=0.0)


class Ledger:
    """Entries by NIC model, workload and competitors."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, Workload], dict[CoLocation, LedgerEntry]] = defaultdict(dict)
        self._with_one_more: dict[tuple[str, Workload, CoLocation], list[LedgerEntry]] = defaultdict(list)
        self.readings = 0
        self.lower_bounds = 0

    def add(self, reading: ProductionReading) -> LedgerEntry:
        """Learn a reading; returns its entry."""
        self.readings += 1
        self.lower_bounds += not reading.is_capacity
        entry = self._entry(reading)
        values = reading.tenant, reading.kpps, reading.event, reading.is_capacity, reading.below_sla
        entry.readings.append(Measured(*values))
        return entry

    def knows(self, nic_model: str, workload: Workload) -> bool:
        """Whether anything was measured of the workload."""
        return (nic_model, workload) in self._entries

    def find(self, nic_model: str, workload: Workload, competitors: CoLocation) -> LedgerEntry | None:
        """What was measured in exactly this co-location."""
        return self._entries.get((nic_model, workload), {}).get(competitors)

    def with_one_more(self, nic_model: str, workload: Workload, competitors: CoLocation) -> Sequence[LedgerEntry]:
        """Entries with these competitors and one more."""
        return self._with_one_more.get((nic_model, workload, competitors), ())

    def forget(self, nic_model: str, nf: str, before: int) -> None:
        """Drop readings of an NF from before this event: it has changed since."""
        for (model, workload), entries in self._entries.items():
            if model == nic_model and workload.nf == nf:
                for entry in entries.values():
                    kept = [one for one in entry.readings if one.event >= before]
                    entry.readings = deque(kept, maxlen=REMEMBERED)

    def entries(self) -> Iterator[tuple[str, Workload, LedgerEntry]]:
        """All entries with readings."""
        for (nic_model, workload), entries in self._entries.items():
            yield from ((nic_model, workload, entry) for entry in entries.values() if entry.readings)

    def _entry(self, reading: ProductionReading) -> LedgerEntry:
        competitors = competitors_of(reading.co_location, reading.workload)
        own = self._entries[reading.nic_model, reading.workload]
        if competitors not in own:
            own[competitors] = LedgerEntry(competitors)
            for part in parts_of(competitors):
                self._with_one_more[reading.nic_model, reading.workload, part].append(own[competitors])
        return own[competitors]


def _vote(readings: list[Measured], predicted_kpps: float) -> float | None:
    """The median of what a tenant reached; of lower bounds the highest, if it is above the prediction."""
    capacities = [one.kpps for one in readings if one.is_capacity]
    if capacities:
        return log(max(median(capacities), 1e-9) / predicted_kpps)
    least = max(one.kpps for one in readings)
    return log(least / predicted_kpps) if least > predicted_kpps else None


def parts_of(co_location: CoLocation) -> Iterator[CoLocation]:
    """The co-location without each one of its distinct workloads."""
    for at, workload in enumerate(co_location):
        if not at or co_location[at - 1] != workload:
            yield co_location[:at] + co_location[at + 1 :]
