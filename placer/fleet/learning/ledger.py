"""The ledger: what was measured of each workload in each co-location, by whom and when.

Every tenant has one vote, the median of its own readings, so that outliers and a tenant that reports false readings
count little. Readings that are lower bounds only ever vote for more than was predicted, and against less than they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from statistics import median
from typing import NamedTuple

from profiles import CoLocation, Workload

MAX_READINGS = 64
LEAST_NOISE = 0.01  # readings are at least so noisy, of the logarithm
OF_NORMAL = 1.4826  # the standard deviation of normal noise, in multiples of its median distance
FEW_TENANTS = 3  # votes from which on their median counts; of fewer, the one that is nearest to the prediction
MOST_SHARE = 0.75  # the share of an NF's readings of instances that lost packets, from which on these are most of them

HALF_SHARE, ROUNDING_ERROR = 0.5, 1e-9


class Votes(NamedTuple):
    """What tenants say of a prediction: what they can do, and what others did who were not asked for more."""

    exact: list[float]
    at_least: list[float]


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

    `readings`: the latest, oldest first. `mostly_capacity`: whether most readings of the NF, when the latest came, were
    of instances that lost packets.
    """

    competitors: CoLocation
    readings: deque[Measured] = field(default_factory=lambda: deque(maxlen=MAX_READINGS))
    mostly_capacity: bool = True

    def votes(self, predicted_kpps: float) -> Votes:
        """What tenants say, as logarithms of throughput over this prediction."""
        by_tenant: dict[str, list[Measured]] = defaultdict(list)
        for reading in self.readings:
            by_tenant[reading.tenant].append(reading)
        found = Votes([], [])
        for readings in by_tenant.values():
            capacities = [reading.kpps for reading in readings if reading.is_capacity]
            said = median(capacities) if capacities else max(reading.kpps for reading in readings)
            vote = log(max(said, 1e-9) / predicted_kpps)
            (found.exact if capacities or vote > 0 else found.at_least).append(vote)
        return found

    @property
    def seen_below_sla(self) -> bool:
        return any(reading.below_sla for reading in self.readings)

    def standard_error(self) -> float:
        """How far what its readings agree on usually is off by their noise, of the logarithm."""
        logs = [log(max(reading.kpps, 1e-9)) for reading in self.readings if reading.is_capacity]
        if not logs:
            return 0.0
        middle = median(logs)
        noise = max(OF_NORMAL * median(abs(value - middle) for value in logs), LEAST_NOISE)
        return noise / sqrt(len(logs))


def agree_on(votes: Sequence[float], at_least: Sequence[float] = ()) -> float:
    """What several tenants agree on: the median, or of few the vote that is nearest to 0; 0 of none.

    `votes`: what tenants can do. `at_least`: what others did who were not asked for more, up to 0: they may be able to
    do anything above. The median is that of Kaplan and Meier (1958), for values of which some are known only as lower
    bounds; where it may lie anywhere above a bound, it is what is nearest to 0.
    """
    if len(votes) < FEW_TENANTS:
        nearest = min(votes, key=abs, default=0.0)
        return max(nearest, min(max(at_least, default=nearest), 0.0))
    said = sorted([(vote, 0) for vote in votes] + [(bound, 1) for bound in at_least])
    left, above, middle, bounded = len(said), 1.0, None, False
    for value, is_bound in said:
        above *= 1.0 if is_bound else (left - 1) / left
        left -= 1
        if above < HALF_SHARE - ROUNDING_ERROR:
            value = min(value, 0.0) if bounded else value
            return value if middle is None else (middle + value) / 2
        if middle is None and above <= HALF_SHARE + ROUNDING_ERROR:
            middle = value
        bounded = bool(is_bound)
    return 0.0 if middle is None else middle


class Ledger:
    """Entries by NIC model, workload and competitors."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, Workload], dict[CoLocation, LedgerEntry]] = defaultdict(dict)
        self._with_one_more: dict[tuple[str, Workload, CoLocation], list[LedgerEntry]] = defaultdict(list)
        self.readings = 0
        self.lower_bounds = 0
        self._readings_of: Counter[tuple[str, str]] = Counter()
        self._capacities_of: Counter[tuple[str, str]] = Counter()

    def add(self, reading: ProductionReading) -> LedgerEntry:
        """Learn a reading; returns its entry."""
        self.readings += 1
        self.lower_bounds += not reading.is_capacity
        entry = self._entry(reading)
        nf = reading.nic_model, reading.workload.nf
        self._readings_of[nf] += 1
        self._capacities_of[nf] += reading.is_capacity
        entry.mostly_capacity = self._capacities_of[nf] >= MOST_SHARE * self._readings_of[nf]
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
        return self._with_one_more.get((nic_model, workload, competitors), ())

    def forget(self, nic_model: str, nf: str, before: int) -> None:
        """Drop readings of an NF from before this event: it has changed since."""
        for (model, workload), entries in self._entries.items():
            if model == nic_model and workload.nf == nf:
                for entry in entries.values():
                    kept = [reading for reading in entry.readings if reading.event >= before]
                    entry.readings = deque(kept, maxlen=MAX_READINGS)

    def entries(self) -> Iterator[tuple[str, Workload, LedgerEntry]]:
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


def parts_of(co_location: CoLocation) -> Iterator[CoLocation]:
    """The co-location without each one of its distinct workloads."""
    for at, workload in enumerate(co_location):
        if not at or co_location[at - 1] != workload:
            yield co_location[:at] + co_location[at + 1 :]


# Readings: what instances did in production, each in the co-location that it ran in.


SATURATED_OFFER = 1.02
"""How many times its throughput must be offered to an instance, at least, so that it is known to have lost packets."""


@dataclass(frozen=True, slots=True)
class ProductionReading:
    """What one instance did in one window.

    `co_location`: all workloads on the NIC, sorted. `offered_kpps`: what was offered to it; None where that is not
    known. `event`: the number of the event that brought it. `below_sla`: whether it is known to be below what the SLA
    of the tenant required.
    """

    nic_model: str
    co_location: CoLocation
    workload: Workload
    tenant: str
    kpps: float
    offered_kpps: float | None
    event: int
    below_sla: bool = False

    @property
    def is_capacity(self) -> bool:
        """Whether the instance did all it can; else its throughput is only a lower bound of that."""
        return self.offered_kpps is not None and self.offered_kpps >= SATURATED_OFFER * self.kpps

    def is_below(self, required_kpps: float) -> bool | None:
        """Whether its throughput is below what its SLA requires; None unless at least that was offered."""
        if self.kpps >= required_kpps:
            return False
        return True if self.offered_kpps is not None and self.offered_kpps >= required_kpps else None


def competitors_of(co_location: CoLocation, workload: Workload) -> CoLocation:
    at = co_location.index(workload)
    return co_location[:at] + co_location[at + 1 :]
