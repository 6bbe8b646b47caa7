"""The trial of a retrained model: each measurement is compared with what it and the champion predicted of it before."""

from __future__ import annotations

from collections.abc import Sequence, Set

from placer.fleet.learning.challenge import Challenge, ChallengeVerdict, ModelScore
from placer.fleet.learning.corrected_oracle import CorrectedOracle
from placer.fleet.learning.corrections import Place
from placer.fleet.learning.ledger import Ledger, ProductionReading, competitors_of
from placer.fleet.learning.versions import ModelVersion
from placer.model.oracle import CACHED_ANSWERS, Oracle
from profiles import CoLocation, Workload

MAX_TRIAL_READINGS = 5_000


class Trial:
    """A challenger on trial; after its promotion, the former champion.

    `number`: the how manieth of this lifetime, from 1. `champion`, `challenger`: the versions. One of them was
    retrained. `known`: where that one was trained with readings: its error there is not one on what it does not know.
    """

    def __init__(self, number: int, champion: ModelVersion, challenger: ModelVersion, known: Set[Place]) -> None:
        self.number = number
        self.champion, self.challenger = champion, challenger
        self.known = known
        self._challenge = Challenge(number)
        self._readings = 0

    def add(self, reading: ProductionReading) -> ChallengeVerdict:
        """Score a reading before it is learnt; returns the verdict now."""
        self._readings += 1
        place = reading.nic_model, reading.workload, competitors_of(reading.co_location, reading.workload)
        if place not in self.known:
            of_champion = self.champion.expected_kpps(reading)
            of_challenger = self.challenger.expected_kpps(reading)
            before = self._challenge.challenger.measured
            verdict = self._challenge.add(reading, of_champion, of_challenger)
            if self._challenge.challenger.measured > before:
                # count whether the reading is inside the interval of the challenger
                version = self.challenger
                bounds = version.oracles[reading.nic_model].bounds(reading.co_location)
                low, high = bounds[reading.co_location.index(reading.workload)]
                drift = version.corrections.drift(reading.nic_model, reading.workload.nf, len(reading.co_location) == 1)
                if low is not None and high is not None:
                    version.within += low * drift <= reading.kpps <= high * drift
            if verdict is not ChallengeVerdict.OPEN:
                return verdict
        return ChallengeVerdict.WORSE if self._readings >= MAX_TRIAL_READINGS else ChallengeVerdict.OPEN

    @property
    def e_value(self) -> float:
        """Evidence that the challenger is better."""
        return self._challenge.e_value

    @property
    def scores(self) -> tuple[ModelScore, ModelScore]:
        """How far the champion and the challenger are off."""
        return self._challenge.champion, self._challenge.challenger


def places_known(ledger: Ledger, trained_at: int) -> frozenset[Place]:
    """Where a version that was trained at this event had readings."""
    return frozenset(
        (nic_model, workload, entry.competitors)
        for nic_model, workload, entry in ledger.entries()
        if any(reading.event <= trained_at for reading in entry.readings)
    )


# The oracle of a canary: a retrained model is on trial, and an SLA counts as met only where both models say so.


class CanaryOracle(Oracle):
    """The lower of two predictions.

    An SLA may be relative to the throughput alone, of which each model has its own. What the challenger predicts
    therefore counts twice: as it is, and as the same share of the champion's throughput alone. Alone on a NIC, where
    no placement is safer, the champion's prediction counts.
    """

    def __init__(self, champion: CorrectedOracle, challenger: CorrectedOracle) -> None:
        super().__init__()
        self.champion, self.challenger = champion, challenger
        self._lower: dict[CoLocation, tuple[float, ...]] = {}
        self._stamp = self.revision

    @property
    def revision(self) -> int:
        """Changes with everything that either model learns."""
        return self.champion.revision + self.challenger.revision

    def changed_since(self, revision: int) -> Sequence[tuple[Workload, CoLocation]] | None:
        """As of `Oracle`: both models learn each reading."""
        learnt = -(-(self.revision - revision) // 2)
        of_both = [
            oracle.changed_since(max(oracle.revision - learnt, 0)) for oracle in (self.champion, self.challenger)
        ]
        return None if any(changed is None for changed in of_both) else of_both[0]

    def throughput(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        """As of `Oracle`: the lower prediction of each workload."""
        if self._stamp != self.revision or len(self._lower) > CACHED_ANSWERS:
            self._stamp = self.revision
            self._lower.clear()
        new = [co_location for co_location in dict.fromkeys(co_locations) if co_location not in self._lower]
        if new:
            self._lower.update(zip(new, self._query(new), strict=True))
        return [self._lower[co_location] for co_location in co_locations]

    def bottleneck(self, co_location: CoLocation, workload: Workload) -> str:
        """As the champion knows it."""
        return self.champion.bottleneck(co_location, workload)

    def _query(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        alone = [(workload,) for workload in dict.fromkeys(workload for each in co_locations for workload in each)]
        ratio = {
            workload: of_champion / of_challenger if of_challenger > 0 else 1.0
            for (workload,), (of_champion,), (of_challenger,) in zip(
                alone, self.champion.throughput(alone), self.challenger.throughput(alone), strict=True
            )
        }
        answers = (oracle.throughput(co_locations) for oracle in (self.champion, self.challenger))
        both = zip(co_locations, *answers, strict=True)
        return [
            own if len(one) == 1 else tuple(
                min(kpps, other, other * ratio[workload])
                for workload, kpps, other in zip(one, own, others, strict=True)
            )
            for one, own, others in both
        ]  # fmt: skip
