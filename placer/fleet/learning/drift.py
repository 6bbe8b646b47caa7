"""Drift: an NF that is slower or faster than before, on all NICs of a model, and since when.

Every capacity reading bets a part of a stake that the NF has changed. The stake grows only while readings lie on one
side of what was measured before; what it reaches without a change is bounded, so is the number of false alarms.

References
----------
J. Shin, A. Ramdas, A. Rinaldo, "E-detectors: a nonparametric framework for sequential change detection", New England
Journal of Statistics in Data Science 2, 2024: the sum over all starting points of products of e-values, restarted at
every reading, exceeds A within n readings with a probability of at most n / A. Assumption: while nothing changes, a
reading lies as often and as far beyond `DRIFT_MARGIN` below what is expected of it as it lies above that, or less.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import exp, log
from statistics import median

from placer.fleet.learning.ledger import ProductionReading, agree_on, competitors_of
from profiles import CoLocation, Workload

DRIFT_MARGIN = 0.04  # a change that does not count, of the logarithm
DRIFT_SCALE = 0.06  # beyond the margin, so much counts fully, of the logarithm: an outlier counts no more
BET_PARTS = (0.3, 0.6, 0.9)  # parts of the stake that are bet; the stakes of all are added
FALSE_ALARMS = 1.0  # at most so many are expected in `READINGS_PER_ALARM` readings of all NFs together

READINGS_PER_ALARM = 10_000

DRIFT_SIDES = (-1, 1)  # slower, faster

ALARM_WEALTH = len(DRIFT_SIDES) * READINGS_PER_ALARM / FALSE_ALARMS

FIRST_TENANTS = 5  # tenants of a co-location whose first readings there say what is usual
USUAL_PLACES = 30  # tenants whose first readings in some co-location say what is usual of an NF

FRESH_ERRORS = 0.5
"""In a co-location that is measured for the first time, a change must be larger by so many usual errors."""

OTHER_TENANTS = 2
"""A tenant bets again only after so many other tenants of the NF: one that reports false readings is outvoted."""

OWN_READINGS = 5  # readings alone on a NIC from which on their factor is their own


@dataclass(frozen=True, slots=True)
class Drift:
    """A change of an NF.

    `alone`, `beside`: how many times the throughput before it has now, alone on a NIC and beside others. `since`: the
    number of the event that brought the first reading after the change.
    """

    nic_model: str
    nf: str
    alone: float
    beside: float
    since: int


@dataclass(slots=True)
class _Usual:
    """What is usual: what the first residuals, one of each tenant, agree on."""

    most: int
    residuals: dict[str, float] = field(default_factory=dict)

    def value(self, otherwise: float) -> float:
        """Drawn towards what is usual otherwise, the further the fewer tenants."""
        count = len(self.residuals)
        return otherwise + count / (count + 1) * agree_on(
            [residual - otherwise for residual in self.residuals.values()]
        )

    def add(self, tenant: str, residual: float) -> None:
        if len(self.residuals) < self.most:
            self.residuals.setdefault(tenant, residual)


@dataclass(slots=True)
class _Since:
    """Readings since the most likely start of a change to one side, and the evidence of it."""

    evidence: float = 0.0
    readings: list[tuple[int, float, bool]] = field(default_factory=list)

    def add(self, gain: float, reading: tuple[int, float, bool]) -> None:
        self.evidence += gain
        self.readings.append(reading)
        if self.evidence <= 0.0:
            self.evidence = 0.0
            self.readings.clear()


class _Follower:
    """The stakes on an NF."""

    def __init__(self) -> None:
        self.usual: dict[tuple[Workload, CoLocation], _Usual] = {}
        self._stakes = {side: [0.0] * len(BET_PARTS) for side in DRIFT_SIDES}
        self._since = {side: _Since() for side in DRIFT_SIDES}
        self._last: deque[str] = deque(maxlen=OTHER_TENANTS)
        self._usual = _Usual(USUAL_PLACES)

    def add(self, reading: ProductionReading, residual: float, spread: float) -> list[tuple[int, float, bool]] | None:
        """Bet on a reading; returns the readings since a change where there is one."""
        competitors = competitors_of(reading.co_location, reading.workload)
        usual = self.usual.setdefault((reading.workload, competitors), _Usual(FIRST_TENANTS))
        beyond = DRIFT_MARGIN if usual.residuals else DRIFT_MARGIN + FRESH_ERRORS * spread
        change = residual - usual.value(self._usual.value(0.0))
        self._learn(usual, reading.tenant, residual)
        if reading.tenant in self._last:
            return None
        self._last.append(reading.tenant)
        for side in DRIFT_SIDES:
            gain = min(max((side * change - beyond) / DRIFT_SCALE, -1.0), 1.0)
            stakes = self._stakes[side]
            stakes[:] = [(stake + 1.0) * (1.0 + bet * gain) for stake, bet in zip(stakes, BET_PARTS, strict=True)]
            self._since[side].add(log(1.0 + BET_PARTS[1] * gain), (reading.event, change, not competitors))
            if sum(stakes) / len(BET_PARTS) >= ALARM_WEALTH and self._since[side].readings:
                return self._since[side].readings
        return None

    def _learn(self, usual: _Usual, tenant: str, residual: float) -> None:
        """The first residuals of co-locations say what is usual of the NF."""
        if not usual.residuals:
            self._usual.add(tenant, residual)
        usual.add(tenant, residual)


class DriftDetector:
    """Finds drift of NFs; one object for a whole fleet."""

    def __init__(self) -> None:
        self._followers: dict[tuple[str, str], _Follower] = {}

    def add(self, reading: ProductionReading, predicted_kpps: float, spread: float) -> Drift | None:
        """Count a reading. `predicted_kpps`: what the model predicts there, with all drift that was found before,
        without other corrections. `spread`: how far its predictions usually err, of the logarithm. Returns a change
        where there is one now; what comes next is compared with what the NF does since."""
        if not reading.is_capacity or predicted_kpps <= 0.0:
            return None
        place = reading.nic_model, reading.workload.nf
        follower = self._followers.setdefault(place, _Follower())
        found = follower.add(reading, log(max(reading.kpps, 1e-9) / predicted_kpps), spread)
        if found is None:
            return None
        del self._followers[place]
        alone = [change for _, change, is_alone in found if is_alone]
        beside = [change for _, change, is_alone in found if not is_alone]
        typical = median(alone + beside)
        return Drift(
            *place,
            exp(median(alone) if len(alone) >= OWN_READINGS else typical),
            exp(median(beside) if len(beside) >= OWN_READINGS else typical),
            found[0][0],
        )
