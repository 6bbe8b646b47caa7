"""Champion and challenger: two models predict the same measurements, and the better one is found by betting.

    measurement -> how far each model is off -> difference -> bets that the challenger is better, and that it is worse

Errors of a model in one co-location stay, so each co-location counts once. A tenant counts a few times, and the
evidence that is asked for is raised by all that these could add: one that reports false readings promotes no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import log, pi

from placer.feedback.betting import LARGEST, BettingTest
from placer.feedback.reading import ProductionReading, competitors_of
from profiles import CoLocation, Workload

ALPHA = 0.01
"""Probability that any challenger of a lifetime is promoted although it is no better."""

FAR = 0.15
"""An error, of the logarithm, beyond which it counts no more."""

OF_A_TENANT = 3
"""Measurements of a tenant that count."""

HOPELESS = 1_000
"""Co-locations after which a challenger that has not won is rejected."""


class ChallengeVerdict(StrEnum):
    """What became of a challenger."""

    OPEN = "canary"
    BETTER = "promoted"
    WORSE = "rejected"


@dataclass(slots=True)
class ModelScore:
    """How far a model is off in the measurements that count.

    Parameters
    ----------
    measured
        Capacity readings.
    off
        Sum of relative errors.
    """

    measured: int = 0
    off: float = 0.0

    @property
    def mape_pct(self) -> float | None:
        """The mean error, percent; None where nothing was measured."""
        return 100.0 * self.off / self.measured if self.measured else None

    def add(self, reading: ProductionReading, predicted_kpps: float) -> None:
        """Count a reading."""
        if reading.is_capacity and reading.kpps > 0.0:
            self.measured += 1
            self.off += abs(predicted_kpps / reading.kpps - 1.0)


class Challenge:
    """Compares a challenger with the champion.

    Parameters
    ----------
    number
        The how manieth challenger of this lifetime, from 1: later ones need more evidence, so that all together are
        promoted wrongly with a probability of at most `ALPHA`.

    Attributes
    ----------
    champion, challenger
        How far both are off.
    """

    def __init__(self, number: int) -> None:
        self.needed = pi**2 * number**2 / (6.0 * ALPHA) * LARGEST**OF_A_TENANT
        self.champion, self.challenger = ModelScore(), ModelScore()
        self._better, self._worse = BettingTest(), BettingTest()
        self._places: set[tuple[str, Workload, CoLocation]] = set()
        self._of_tenant: dict[str, int] = {}

    @property
    def e_value(self) -> float:
        """Evidence that the challenger is better."""
        return self._better.e_value

    @property
    def verdict(self) -> ChallengeVerdict:
        """Whether the challenger is better, worse, or neither is known yet."""
        if self._better.e_value >= self.needed:
            return ChallengeVerdict.BETTER
        if self._worse.e_value >= self.needed or len(self._places) >= HOPELESS:
            return ChallengeVerdict.WORSE
        return ChallengeVerdict.OPEN

    def add(self, reading: ProductionReading, champion_kpps: float, challenger_kpps: float) -> ChallengeVerdict:
        """Compare what both predicted before anything of this reading was learnt; returns the verdict now."""
        place = reading.nic_model, reading.workload, competitors_of(reading.co_location, reading.workload)
        counted = self._of_tenant.get(reading.tenant, 0)
        if self.verdict is not ChallengeVerdict.OPEN or place in self._places or counted >= OF_A_TENANT:
            return self.verdict
        self._places.add(place)
        self._of_tenant[reading.tenant] = counted + 1
        self.champion.add(reading, champion_kpps)
        self.challenger.add(reading, challenger_kpps)
        difference = (loss(reading, champion_kpps) - loss(reading, challenger_kpps)) / FAR
        self._better.bet(difference)
        self._worse.bet(-difference)
        return self.verdict


def loss(reading: ProductionReading, predicted_kpps: float) -> float:
    """How far a prediction is off, of the logarithm, at most `FAR`; above a lower bound it is not known to be."""
    off = log(max(reading.kpps, 1e-9) / max(predicted_kpps, 1e-9))
    return min(abs(off) if reading.is_capacity else max(off, 0.0), FAR)
