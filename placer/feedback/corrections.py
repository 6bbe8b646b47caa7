"""Corrections: what readings say of predictions, where they were taken and, fading, near there.

Where a workload was measured beside the same competitors, its prediction moves to what the tenants agree on, the more
of them the further. Beside others that differ by one competitor it moves part of the way; further away it stays. A
factor per NF stands for drift: a change of the NF itself, which is seen in all of its co-locations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import exp, log, sqrt
from typing import NamedTuple

from placer.feedback.ledger import FEW_TENANTS, Ledger, LedgerEntry, Measured, Votes, agreed, parts_of
from placer.feedback.reading import competitors_of
from profiles import CoLocation, Workload

BELIEVED = 2.0
"""A tenant moves a prediction as if it were at most so many of its usual errors away, and two tenants twice as far:
they may be wrong."""

FIRST_WEIGHT, DOUBT = 0.5, 0.25
"""How far the first tenant moves a prediction, of the way; n tenants who agree move it n / (n + DOUBT) of the way."""

NEARNESS = {1: 0.2, 2: 0.15}
"""The weight of what was measured where so many competitors differ. Placement chooses what is predicted too high, so
what is measured lies below the predictions of what is near: with more weight, it costs NICs and saves no violation."""

UNMOVED = 1.0
"""The weight of the prediction itself among what was measured near."""


REMEMBERED_PLACES = 10_000
"""Readings of which is remembered where they were taken, so that what they change can be found."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A prediction before corrections.

    Parameters
    ----------
    kpps
        The median prediction.
    at_risk
        The throughput that is exceeded with the probability that placement asks for.
    spread
        How far predictions usually err, of the logarithm.
    """

    kpps: float
    at_risk: float
    spread: float


@dataclass(frozen=True, slots=True)
class PredictionShift:
    """How a prediction moves.

    Parameters
    ----------
    by
        In all, of the logarithm.
    spread_left
        The share of its spread that is left.
    drift
        The part of it that an NF that has changed causes, of the logarithm.
    doubt
        How much lower it may be by the noise of readings, of the logarithm, where tenants were below their SLA: SLAs
        are violated there again and again while estimates swing about the truth.
    """

    by: float
    spread_left: float = 1.0
    drift: float = 0.0
    doubt: float = 0.0

    def median(self, estimate: Estimate) -> float:
        """The corrected median prediction, kpps."""
        return estimate.kpps * exp(self.by)

    def at_risk(self, estimate: Estimate) -> float:
        """The corrected throughput at risk, kpps.

        Apart from drift it is never above the one without corrections: placement that goes up to what was measured
        saves hardly a NIC, and violates the SLAs for which a reading was a little too high.
        """
        if estimate.kpps <= 0:
            return 0.0
        margin = log(max(estimate.at_risk, 1e-300) / estimate.kpps)
        return estimate.kpps * exp(min(self.by - self.doubt + self.spread_left * margin, self.drift + margin))


NOTHING = PredictionShift(0.0)

Place = tuple[str, Workload, CoLocation]
"""NIC model, workload and competitors."""


class MeasuredShift(NamedTuple):
    """What readings say together: the logarithm by which predictions move, times its weight; that weight; and how
    much lower it may be by the noise of readings."""

    weighted: float
    weight: float
    doubt: float = 0.0


SILENT = MeasuredShift(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class MeasuredEntry:
    """A copy of an entry of the ledger, with its prediction.

    Parameters
    ----------
    drift
        The logarithm of the factor of drift.
    """

    nic_model: str
    workload: Workload
    competitors: CoLocation
    readings: tuple[Measured, ...]
    estimate: Estimate
    drift: float

    @property
    def kpps(self) -> float | None:
        """What its tenants agree on; None where nobody lost packets. A single tenant is believed only so far."""
        if not any(one.is_capacity for one in self.readings) or self.estimate.kpps <= 0:
            return None
        predicted = self.estimate.kpps * exp(self.drift)
        return predicted * exp(
            _believed(LedgerEntry(self.competitors, deque(self.readings)).votes(predicted), self.estimate)
        )


class LearntCorrections:
    """What was learnt of the predictions of one version of the models.

    Parameters
    ----------
    ledger
        All readings; versions share it.

    Attributes
    ----------
    stamp
        Changes with everything that is learnt.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.stamp = 0
        self._places: deque[Place] = deque(maxlen=REMEMBERED_PLACES)
        self._all_since = 0
        self._drift: dict[tuple[str, str, bool], float] = {}
        self._estimates: dict[Place, Estimate] = {}
        self._agreements: dict[LedgerEntry, MeasuredShift] = {}
        self._sums: dict[Place, MeasuredShift] = {}

    def learn(self, entry: LedgerEntry, nic_model: str, workload: Workload, estimate: Estimate) -> None:
        """Count an entry that got a reading; `estimate` is its prediction."""
        self._estimates[nic_model, workload, entry.competitors] = estimate
        self._agreements.pop(entry, None)
        for part in parts_of(entry.competitors):
            self._sums.pop((nic_model, workload, part), None)
        self._places.append((nic_model, workload, entry.competitors))
        self.stamp += 1

    def changed_since(self, stamp: int, nic_model: str) -> list[tuple[Workload, CoLocation]] | None:
        """The workloads of a NIC model that readings were learnt of since, with their competitors; None for all."""
        learnt = self.stamp - stamp
        if stamp < self._all_since or learnt > len(self._places):
            return None
        latest = islice(reversed(self._places), learnt)
        return [(workload, competitors) for name, workload, competitors in latest if name == nic_model]

    def set_drift(self, nic_model: str, nf: str, alone: bool, factor: float) -> None:
        """From now on the NF has so many times the predicted throughput, alone on a NIC or beside others."""
        self._drift[nic_model, nf, alone] = log(factor)
        self.stamp += 1
        self._all_since = self.stamp
        self._places.clear()
        self._agreements.clear()
        self._sums.clear()

    def drift(self, nic_model: str, nf: str, alone: bool) -> float:
        """The factor of an NF; 1 without drift."""
        return exp(self._drift.get((nic_model, nf, alone), 0.0))

    def concern(self, nic_model: str, workload: Workload) -> bool:
        """Whether anything is known of the workload."""
        if (nic_model, workload.nf, True) in self._drift or (nic_model, workload.nf, False) in self._drift:
            return True
        return self.ledger.knows(nic_model, workload)

    def entries(self) -> list[MeasuredEntry]:
        """What was measured, as it is now, beside what was predicted of it."""
        found = []
        for nic_model, workload, entry in self.ledger.entries():
            estimate = self._estimates.get((nic_model, workload, entry.competitors))
            if estimate is not None:
                drift = self._drift.get((nic_model, workload.nf, not entry.competitors), 0.0)
                values = tuple(entry.readings), estimate, drift
                found.append(MeasuredEntry(nic_model, workload, entry.competitors, *values))
        return found

    def shift(self, nic_model: str, co_location: CoLocation, workload: Workload, estimate: Estimate) -> PredictionShift:
        """How the prediction of a workload in a co-location moves."""
        drifted = self._drift.get((nic_model, workload.nf, len(co_location) == 1), 0.0)
        if not self.ledger.knows(nic_model, workload):
            return PredictionShift(drifted, drift=drifted) if drifted else NOTHING
        competitors = competitors_of(co_location, workload)
        near = self._near(nic_model, workload, competitors)
        entry = self.ledger.find(nic_model, workload, competitors)
        if entry is None or not entry.readings:
            return PredictionShift(drifted + near, drift=drifted)
        own = self._agreed(nic_model, workload, entry)
        by = drifted + near + own.weighted - own.weight * near
        return PredictionShift(by, sqrt(1.0 - own.weight), drifted, own.doubt)

    def _near(self, nic_model: str, workload: Workload, competitors: CoLocation) -> float:
        """What entries near here say together; nothing of an NF alone, which was measured before it was deployed."""
        if not competitors:
            return 0.0
        total, weights = 0.0, UNMOVED
        for said, nearness in self._said_near(nic_model, workload, competitors):
            total += nearness * said.weighted
            weights += nearness * said.weight
        return total / weights

    def _said_near(
        self, nic_model: str, workload: Workload, competitors: CoLocation
    ) -> Iterator[tuple[MeasuredShift, float]]:
        """What was measured with a competitor more, fewer or another one, and the weight of that."""
        yield self._with_one_more(nic_model, workload, competitors), NEARNESS[1]
        own = self._of(nic_model, workload, competitors)
        for part in parts_of(competitors):
            yield self._of(nic_model, workload, part), NEARNESS[1]
            others = self._with_one_more(nic_model, workload, part)
            yield MeasuredShift(others.weighted - own.weighted, others.weight - own.weight), NEARNESS[2]

    def _with_one_more(self, nic_model: str, workload: Workload, part: CoLocation) -> MeasuredShift:
        """What all entries with these competitors and one more say together."""
        place = nic_model, workload, part
        known = self._sums.get(place)
        if known is None:
            every = [self._agreed(nic_model, workload, entry) for entry in self.ledger.with_one_more(*place)]
            known = MeasuredShift(sum(one.weighted for one in every), sum(one.weight for one in every))
            self._sums[place] = known
        return known

    def _of(self, nic_model: str, workload: Workload, competitors: CoLocation) -> MeasuredShift:
        """What the entry with exactly these competitors says, if there is one."""
        entry = self.ledger.find(nic_model, workload, competitors)
        return SILENT if entry is None else self._agreed(nic_model, workload, entry)

    def _agreed(self, nic_model: str, workload: Workload, entry: LedgerEntry) -> MeasuredShift:
        """What the tenants of an entry agree on."""
        known = self._agreements.get(entry)
        if known is None:
            known = SILENT
            estimate = self._estimates.get((nic_model, workload, entry.competitors))
            if estimate is not None and entry.readings:
                known = _agreement(
                    entry, estimate, self._drift.get((nic_model, workload.nf, not entry.competitors), 0.0)
                )
            self._agreements[entry] = known
        return known


def _agreement(entry: LedgerEntry, estimate: Estimate, drifted: float) -> MeasuredShift:
    """What tenants of an entry agree on, of the logarithm beyond drift."""
    if estimate.kpps <= 0:
        return SILENT
    votes = entry.votes(estimate.kpps * exp(drifted))
    count = len(votes.exact)
    if not count:
        return SILENT
    weight = FIRST_WEIGHT if count == 1 else count / (count + DOUBT)
    moved = _believed(votes, estimate)
    doubt = min(entry.noise(), BELIEVED * estimate.spread) if count > 1 and entry.seen_below_sla else 0.0
    return MeasuredShift(weight * moved, weight, doubt)


def _believed(votes: Votes, estimate: Estimate) -> float:
    """What tenants agree on, of the logarithm; of few not more than `BELIEVED` allows."""
    if len(votes.exact) >= FEW_TENANTS:
        return agreed(*votes)
    most = BELIEVED * len(votes.exact) * estimate.spread
    return min(max(agreed(*votes), -most), most)
