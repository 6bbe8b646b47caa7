"""Corrections: what readings say of predictions, where they were taken and, fading, near there.

Where a workload was measured beside the same competitors, its prediction moves to what the tenants agree on, the more
of them the further. Beside others that differ by one competitor it moves part of the way; further away it stays. A
factor per NF stands for drift: a change of the NF itself, which is seen in all of its co-locations.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice
from math import exp, hypot, log, sqrt

from placer.feedback.ledger import FEW_TENANTS, Ledger, LedgerEntry, Measured, Votes, agreed
from placer.feedback.places import SILENT, MeasuredShift, NearPlaces, Place
from profiles import CoLocation, Workload

BELIEVED = 2.0
"""A tenant moves a prediction as if it were at most so many of its usual errors away, and two tenants twice as far:
they may be wrong."""

SIGMAS = 2.0
"""Standard errors of readings that are left as a margin where SLAs were violated."""

FIRST_WEIGHT, DOUBT = 0.5, 0.25
"""How far the first tenant moves a prediction, of the way; n tenants who agree move it n / (n + DOUBT) of the way."""

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
    noise
        How far it usually is off by the noise of readings, of the logarithm; None where these do not make placement
        bolder, because nobody lost packets, or a few tenants say more than they are believed.
    doubt
        How much lower it is taken to be because of that, of the logarithm, where tenants were below their SLA: SLAs
        are violated there again and again while estimates swing about the truth.
    """

    by: float
    spread_left: float = 1.0
    drift: float = 0.0
    noise: float | None = None
    doubt: float = 0.0

    @property
    def changes_nothing(self) -> bool:
        """Whether predictions stay as they are."""
        return not self.by and self.spread_left == 1.0

    def median(self, estimate: Estimate) -> float:
        """The corrected median prediction, kpps."""
        return estimate.kpps * exp(self.by)

    def at_risk(self, estimate: Estimate) -> float:
        """The corrected throughput at risk, kpps.

        What was measured near moves it down only, apart from drift. What was measured there moves it up as well, as
        far as its noise allows: else feedback costs NICs, since co-locations that do less than predicted are avoided,
        and those that do more are not used.
        """
        if estimate.kpps <= 0:
            return 0.0
        margin = log(max(estimate.at_risk, 1e-300) / estimate.kpps)
        moved = self.by - self.doubt + self.spread_left * margin
        predicted = self.drift + margin
        if moved > predicted:
            moved = predicted
            if self.noise is not None:  # the errors of predictions and of readings are independent
                both = hypot(self.spread_left, self.noise / estimate.spread)
                moved = max(predicted, self.by - self.doubt + both * margin)
        return estimate.kpps * exp(moved)


NOTHING = PredictionShift(0.0)


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
        self._said = NearPlaces(ledger, self._agreement)

    def learn(self, entry: LedgerEntry, nic_model: str, workload: Workload, estimate: Estimate) -> None:
        """Count an entry that got a reading; `estimate` is its prediction."""
        place = nic_model, workload, entry.competitors
        self._estimates[place] = estimate
        self._said.changed(place)
        self._places.append(place)
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
        self._said.clear()

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

    def shift(self, place: Place) -> PredictionShift:
        """How the prediction of a workload beside competitors moves."""
        nic_model, workload, competitors = place
        drifted = self._drift.get((nic_model, workload.nf, not competitors), 0.0)
        if not self.ledger.knows(nic_model, workload):
            return PredictionShift(drifted, drift=drifted) if drifted else NOTHING
        near, own = self._said.at(place)
        if not own.weight:
            return PredictionShift(drifted + near, drift=drifted)
        by = drifted + near + own.weighted - own.weight * near
        return PredictionShift(by, sqrt(1.0 - own.weight), drifted, own.noise, own.doubt)

    def _agreement(self, place: Place, entry: LedgerEntry) -> MeasuredShift:
        """What the tenants of an entry agree on."""
        estimate = self._estimates.get(place)
        if estimate is None or not entry.readings:
            return SILENT
        nic_model, workload, competitors = place
        return _agreement(entry, estimate, self._drift.get((nic_model, workload.nf, not competitors), 0.0))


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
    error = entry.standard_error()
    doubtful = entry.seen_below_sla and (count > 1 or moved > 0)
    doubt = min(SIGMAS * error, BELIEVED * estimate.spread) if doubtful else 0.0
    bold = error > 0 and entry.mostly_capacity and agreed(*votes) <= moved
    return MeasuredShift(weight * moved, weight, weight * error if bold else None, doubt)


def _believed(votes: Votes, estimate: Estimate) -> float:
    """What tenants agree on, of the logarithm; of few not more than `BELIEVED` allows."""
    if len(votes.exact) >= FEW_TENANTS:
        return agreed(*votes)
    most = BELIEVED * len(votes.exact) * estimate.spread
    return min(max(agreed(*votes), -most), most)
