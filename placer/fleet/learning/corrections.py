"""Corrections: what readings say of predictions, where they were taken and, fading, near there.

Where a workload was measured beside the same competitors, its prediction moves to what the tenants agree on, the more
of them the further. Beside others that differ by one competitor it moves part of the way; further away it stays. A
factor per NF stands for drift: a change of the NF itself, which is seen in all of its co-locations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from math import exp, hypot, log, sqrt
from typing import NamedTuple

from placer.fleet.learning.ledger import FEW_TENANTS, Ledger, LedgerEntry, Measured, Votes, agree_on, parts_of
from placer.model.oracle import CACHED_ANSWERS
from profiles import CoLocation, Workload

BELIEVED_ERRORS = 2.0
"""A tenant moves a prediction as if it were at most so many of its usual errors away, and two tenants twice as far:
they may be wrong."""

MARGIN_SIGMAS = 2.0  # standard errors of readings that are left as a margin where SLAs were violated

FIRST_WEIGHT, VOTE_DOUBT = 0.5, 0.25
"""How far the first tenant moves a prediction, of the way; n who agree move it n / (n + VOTE_DOUBT) of it."""

REMEMBERED_PLACES = 10_000
"""Readings of which is remembered where they were taken, so that what they change can be found."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A prediction before corrections.

    `kpps`: the median prediction. `at_risk`: the throughput that is exceeded with the probability that placement asks
    for. `spread`: how far predictions usually err, of the logarithm.
    """

    kpps: float
    at_risk: float
    spread: float


@dataclass(frozen=True, slots=True)
class PredictionShift:
    """How a prediction moves.

    `by`: in all, of the logarithm. `spread_left`: the share of its spread that is left. `drift`: the part of it that an
    NF that has changed causes, of the logarithm. `noise`: how far it usually is off by the noise of readings, of the
    logarithm; None where these do not make placement bolder, because nobody lost packets, or a few tenants say more
    than they are believed. `doubt`: how much lower it is taken to be because of that, of the logarithm, where tenants
    were below their SLA: SLAs are violated there again and again while estimates swing about the truth.
    """

    by: float
    spread_left: float = 1.0
    drift: float = 0.0
    noise: float | None = None
    doubt: float = 0.0

    @property
    def changes_nothing(self) -> bool:
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


NO_SHIFT = PredictionShift(0.0)


@dataclass(frozen=True, slots=True)
class MeasuredEntry:
    """A copy of an entry of the ledger, with its prediction.

    `drift`: the logarithm of the factor of drift.
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
        if not any(reading.is_capacity for reading in self.readings) or self.estimate.kpps <= 0:
            return None
        predicted = self.estimate.kpps * exp(self.drift)
        return predicted * exp(
            _limit_agreement(LedgerEntry(self.competitors, deque(self.readings)).votes(predicted), self.estimate)
        )


class LearntCorrections:
    """What was learnt of the predictions of one version of the models.

    `ledger`: all readings; versions share it. `stamp`: changes with everything that is learnt.
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
        self._said.mark_changed(place)
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
            return PredictionShift(drifted, drift=drifted) if drifted else NO_SHIFT
        near, own = self._said.at(place)
        if not own.weight:
            return PredictionShift(drifted + near, drift=drifted)
        by = drifted + near + own.weighted - own.weight * near
        return PredictionShift(by, sqrt(1.0 - own.weight), drifted, own.noise, own.doubt)

    def _agreement(self, place: Place, entry: LedgerEntry) -> MeasuredShift:
        """What the tenants of an entry agree on."""
        estimate = self._estimates.get(place)
        if estimate is None or not entry.readings:
            return NO_MEASUREMENT
        nic_model, workload, competitors = place
        return _agreement(entry, estimate, self._drift.get((nic_model, workload.nf, not competitors), 0.0))


def _agreement(entry: LedgerEntry, estimate: Estimate, drifted: float) -> MeasuredShift:
    """What tenants of an entry agree on, of the logarithm beyond drift."""
    if estimate.kpps <= 0:
        return NO_MEASUREMENT
    votes = entry.votes(estimate.kpps * exp(drifted))
    count = len(votes.exact)
    if not count:
        return NO_MEASUREMENT
    weight = FIRST_WEIGHT if count == 1 else count / (count + VOTE_DOUBT)
    moved = _limit_agreement(votes, estimate)
    error = entry.standard_error()
    doubtful = entry.seen_below_sla and (count > 1 or moved > 0)
    doubt = min(MARGIN_SIGMAS * error, BELIEVED_ERRORS * estimate.spread) if doubtful else 0.0
    bold = error > 0 and entry.mostly_capacity and agree_on(*votes) <= moved
    return MeasuredShift(weight * moved, weight, weight * error if bold else None, doubt)


def _limit_agreement(votes: Votes, estimate: Estimate) -> float:
    """What tenants agree on, of the logarithm; of few not more than `BELIEVED_ERRORS` allows."""
    if len(votes.exact) >= FEW_TENANTS:
        return agree_on(*votes)
    most = BELIEVED_ERRORS * len(votes.exact) * estimate.spread
    return min(max(agree_on(*votes), -most), most)


# What readings say of a place and near it. A place is a workload on a NIC model beside certain competitors.


NEAR_WEIGHTS = {1: 0.2, 2: 0.15}
"""The weight of what was measured where so many competitors differ. Placement chooses what is predicted too high, so
what is measured lies below the predictions of what is near: with more weight, it costs NICs and saves no violation."""

PREDICTION_WEIGHT = 1.0  # the weight of the prediction itself among what was measured near
Place = tuple[str, Workload, CoLocation]  # NIC model, workload and competitors


class MeasuredShift(NamedTuple):
    """What readings say together, of the logarithm.

    `weighted`: by how much predictions move, times its weight. `noise`: how far that usually is off by the noise of
    readings; None where nobody lost packets. `doubt`: how much lower it is taken to be because of that.
    """

    weighted: float
    weight: float
    noise: float | None = None
    doubt: float = 0.0


NO_MEASUREMENT = MeasuredShift(0.0, 0.0)


class _Node:
    """A place, linked with those in which one competitor is missing; None where something is not known yet."""

    __slots__ = ("more", "own", "parts", "place")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.own: MeasuredShift | None = None
        self.more: MeasuredShift | None = None
        self.parts: tuple[_Node, ...] | None = None


class NearPlaces:
    """What is said of places, as it is asked for.

    A decision asks for hundreds of places, and a reading changes what is said of a few. So places are linked once, and
    what was added up is kept until a reading changes it.

    `agreement`: what the readings of an entry say together.
    """

    def __init__(self, ledger: Ledger, agreement: Callable[[Place, LedgerEntry], MeasuredShift]) -> None:
        self._ledger = ledger
        self._agreement = agreement
        self._nodes: dict[Place, _Node] = {}

    def at(self, place: Place) -> tuple[float, MeasuredShift]:
        """By how much what was measured near moves the prediction of a place, of the logarithm, and what was measured
        in exactly this place.

        Nothing is near an NF alone, which was measured before it was deployed.
        """
        node = self._nodes.get(place) or self._node(place)
        own = node.own or self._own(node)
        return (self._near(node, own) if place[2] else 0.0), own

    def mark_changed(self, place: Place) -> None:
        """Something was measured here."""
        node = self._node(place)
        node.own = None
        for part in self._parts(node):
            part.more = None

    def clear(self) -> None:
        """Anything may have changed."""
        self._nodes.clear()

    def _near(self, node: _Node, own: MeasuredShift) -> float:
        one_more = node.more or self._more(node)
        one, two = NEAR_WEIGHTS[1], NEAR_WEIGHTS[2]
        total, weights = one * one_more.weighted, PREDICTION_WEIGHT + one * one_more.weight
        for part in node.parts or self._parts(node):
            fewer, others = part.own or self._own(part), part.more or self._more(part)
            total += one * fewer.weighted
            weights += one * fewer.weight
            total += two * (others.weighted - own.weighted)
            weights += two * (others.weight - own.weight)
        return total / weights

    def _node(self, place: Place) -> _Node:
        node = self._nodes.get(place)
        if node is None:
            if len(self._nodes) >= CACHED_ANSWERS:
                self._nodes.clear()
            node = self._nodes[place] = _Node(place)
        return node

    def _parts(self, node: _Node) -> tuple[_Node, ...]:
        if node.parts is None:
            nic_model, workload, competitors = node.place
            node.parts = tuple([self._node((nic_model, workload, part)) for part in parts_of(competitors)])
        return node.parts

    def _own(self, node: _Node) -> MeasuredShift:
        if node.own is None:
            entry = self._ledger.find(*node.place)
            node.own = NO_MEASUREMENT if entry is None else self._agreement(node.place, entry)
        return node.own

    def _more(self, node: _Node) -> MeasuredShift:
        """What all entries with these competitors and one more say together."""
        if node.more is None:
            nic_model, workload, _ = node.place
            entries = self._ledger.with_one_more(*node.place)
            every = [self._own(self._node((nic_model, workload, entry.competitors))) for entry in entries]
            node.more = MeasuredShift(sum(shift.weighted for shift in every), sum(shift.weight for shift in every))
        return node.more
