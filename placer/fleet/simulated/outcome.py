"""What came of a simulated production: figures of each compared fleet, and how they went over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from placer.fleet.simulated.monitor import TrueDrift
from placer.inputs.production import ProductionFile

WITHOUT_FEEDBACK, WITH_FEEDBACK, BY_HAND = COMPARED_FLEETS = ("without feedback", "with feedback", "retrained by hand")
"""The compared fleets: models as they were trained; corrected by measurements; and corrected at the very event of each
drift by its true factor, which nobody knows in production."""

LATE_AFTER = 100  # events after the first drift from which on arrivals are counted apart


@dataclass(frozen=True)
class DriftAlarm:
    """The online engine reported that an NF changed.

    `event`: the event of the trace after which it did. `factor`: how many times its predicted throughput it is believed
    to have. `readings`: readings of the NF since it last changed, or since the start. `false`: whether the NF had never
    changed.
    """

    event: int
    nf: str
    factor: float
    readings: int
    false: bool


@dataclass(frozen=True)
class ProductionPoint:
    """A fleet after an event of the trace.

    `event`, `time`: its number and its time, seconds. `nics`, `tenants`: in use, and placed on them. `believed`: per NF
    that drifts, or is believed to, how many times its predicted throughput it is believed to have.
    """

    event: int
    time: float
    nics: int
    tenants: int
    violating: int
    model: int
    believed: Mapping[str, float]


@dataclass(frozen=True)
class FleetOutcome:
    """One of the compared fleets.

    `name`: one of `COMPARED_FLEETS`. `nics`: most NICs in use at one time. `placed`, `rejected`: arrivals. `violated`:
    placed instances that were ever below their SLA. `late_placed`, `late_violated`: the same of arrivals at least
    `LATE_AFTER` events after the first drift; None without drift. `measurements`, `readings`: measured events, and
    readings in them. `repeated`: NICs that violated the SLA of a workload in a co-location after that had been
    measured, of the worst case.
    """

    name: str
    nics: int
    placed: int
    rejected: int
    violated: int
    late_placed: int | None
    late_violated: int | None
    measurements: int
    readings: int
    moves: int
    repeated: int
    model: int
    alarms: tuple[DriftAlarm, ...]
    points: tuple[ProductionPoint, ...]

    @property
    def violations_pct(self) -> float:
        """Violating instances per 100 placed."""
        return 100.0 * self.violated / self.placed if self.placed else 0.0

    @property
    def late_violations_pct(self) -> float | None:
        """Violating instances per 100 late arrivals; None without any."""
        if self.late_violated is None or not self.late_placed:
            return None
        return 100.0 * self.late_violated / self.late_placed

    @property
    def false_alarms(self) -> int:
        """Reported drifts of NFs that had not changed."""
        return sum(alarm.false for alarm in self.alarms)

    def count_until_found(self, drift: TrueDrift) -> int | None:
        """Readings of the NF from the drift to the first alarm of it; None where it was not found while it held."""
        for alarm in self.alarms:
            if alarm.nf == drift.nf and not alarm.false and drift.holds(alarm.event):
                return alarm.readings
        return None


@dataclass(frozen=True)
class Production:
    """A simulated production.

    `file`: how it was measured and how it drifted. `risk`: the share of cases that fall short of the predictions that
    were used; None for the median. `drifts`: what changed, by the number of the event. `fleets`: the compared fleets,
    in the order of `COMPARED_FLEETS`.
    """

    file: ProductionFile
    seed: int
    arrivals: int
    events: int
    predictor: str
    rule: str
    risk: float | None
    truth: str
    drifts: tuple[TrueDrift, ...]
    fleets: tuple[FleetOutcome, ...]

    def fleet(self, name: str) -> FleetOutcome:
        return next(fleet for fleet in self.fleets if fleet.name == name)
