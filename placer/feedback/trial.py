"""The trial of a retrained model: each measurement is compared with what it and the champion predicted of it before."""

from __future__ import annotations

from collections.abc import Set

from placer.feedback.challenge import Challenge, ChallengeVerdict, ModelScore
from placer.feedback.ledger import Ledger
from placer.feedback.places import Place
from placer.feedback.reading import ProductionReading, competitors_of
from placer.feedback.versions import ModelVersion

TRIED = 5_000
"""Readings after which a trial without a verdict ends."""


class Trial:
    """A challenger on trial; after its promotion, the former champion.

    Parameters
    ----------
    number
        The how manieth of this lifetime, from 1.
    champion, challenger
        The versions. One of them was retrained.
    known
        Where that one was trained with readings: its error there is not one on what it does not know.
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
                self._count(reading)
            if verdict is not ChallengeVerdict.OPEN:
                return verdict
        return ChallengeVerdict.WORSE if self._readings >= TRIED else ChallengeVerdict.OPEN

    @property
    def e_value(self) -> float:
        """Evidence that the challenger is better."""
        return self._challenge.e_value

    @property
    def scores(self) -> tuple[ModelScore, ModelScore]:
        """How far the champion and the challenger are off."""
        return self._challenge.champion, self._challenge.challenger

    def _count(self, reading: ProductionReading) -> None:
        """Count whether the reading is inside the interval of the challenger."""
        version = self.challenger
        bounds = version.oracles[reading.nic_model].bounds(reading.co_location)
        low, high = bounds[reading.co_location.index(reading.workload)]
        drift = version.corrections.drift(reading.nic_model, reading.workload.nf, len(reading.co_location) == 1)
        if low is not None and high is not None:
            version.within += low * drift <= reading.kpps <= high * drift


def places_known(ledger: Ledger, trained_at: int) -> frozenset[Place]:
    """Where a version that was trained at this event had readings."""
    return frozenset(
        (nic_model, workload, entry.competitors)
        for nic_model, workload, entry in ledger.entries()
        if any(one.event <= trained_at for one in entry.readings)
    )
