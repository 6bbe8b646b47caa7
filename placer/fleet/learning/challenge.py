"""Champion and challenger: two models predict the same measurements, and the better one is found by betting.

    measurement -> how far each model is off -> difference -> bets that the challenger is better, and that it is worse

Errors of a model in one co-location stay, so each co-location counts once. A tenant counts a few times, and the
evidence that is asked for is raised by all that these could add: one that reports false readings promotes no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import log, pi
from statistics import fmean

from placer.fleet.learning.ledger import ProductionReading, competitors_of
from profiles import CoLocation, Workload

FALSE_PROMOTION_PROBABILITY = 0.01  # probability that any challenger of a lifetime is promoted although it is no better
LARGEST_COUNTED_ERROR = 0.15  # an error, of the logarithm, beyond which it counts no more
OF_A_TENANT = 3  # measurements of a tenant that count
CO_LOCATIONS_TO_REJECT = 1_000  # Co-locations after which a challenger that has not won is rejected


class ChallengeVerdict(StrEnum):
    """What became of a challenger."""

    OPEN = "canary"
    BETTER = "promoted"
    WORSE = "rejected"


@dataclass(slots=True)
class ModelScore:
    """How far a model is off in the measurements that count.

    `measured`: capacity readings. `off`: sum of relative errors.
    """

    measured: int = 0
    off: float = 0.0

    @property
    def mape_pct(self) -> float | None:
        """The mean error, percent; None where nothing was measured."""
        return 100.0 * self.off / self.measured if self.measured else None

    def add(self, reading: ProductionReading, predicted_kpps: float) -> None:
        if reading.is_capacity and reading.kpps > 0.0:
            self.measured += 1
            self.off += abs(predicted_kpps / reading.kpps - 1.0)


class Challenge:
    """Compares a challenger with the champion.

    `number`: the how manieth challenger of this lifetime, from 1: later ones need more evidence, so that all together
    are promoted wrongly with a probability of at most `FALSE_PROMOTION_PROBABILITY`. `champion`, `challenger`: how far
    both are off.
    """

    def __init__(self, number: int) -> None:
        self.needed = pi**2 * number**2 / (6.0 * FALSE_PROMOTION_PROBABILITY) * LARGEST_FACTOR**OF_A_TENANT
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
        if self._worse.e_value >= self.needed or len(self._places) >= CO_LOCATIONS_TO_REJECT:
            return ChallengeVerdict.WORSE
        return ChallengeVerdict.OPEN

    def add(self, reading: ProductionReading, champion_kpps: float, challenger_kpps: float) -> ChallengeVerdict:
        place = reading.nic_model, reading.workload, competitors_of(reading.co_location, reading.workload)
        counted = self._of_tenant.get(reading.tenant, 0)
        if self.verdict is not ChallengeVerdict.OPEN or place in self._places or counted >= OF_A_TENANT:
            return self.verdict
        self._places.add(place)
        self._of_tenant[reading.tenant] = counted + 1
        self.champion.add(reading, champion_kpps)
        self.challenger.add(reading, challenger_kpps)
        difference = (loss(reading, champion_kpps) - loss(reading, challenger_kpps)) / LARGEST_COUNTED_ERROR
        self._better.bet(difference)
        self._worse.bet(-difference)
        return self.verdict


def loss(reading: ProductionReading, predicted_kpps: float) -> float:
    """How far off a prediction is (logarithm), at most `LARGEST_COUNTED_ERROR`; 0 above a lower bound."""
    off = log(max(reading.kpps, 1e-9) / max(predicted_kpps, 1e-9))
    return min(abs(off) if reading.is_capacity else max(off, 0.0), LARGEST_COUNTED_ERROR)


# Betting against "no better": evidence that may be looked at after every measurement.
#
# A stake of 1 is bet on each difference of losses. If none is above 0 in expectation, given what came before, the
# wealth ever reaches 1 / alpha with a probability of at most alpha, however often one looks (J. Ville, 1939).
#
# References
# ----------
# I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal
# Statistical
# Society B 86, 2024. Assumption: differences lie in [-1, 1], and none is expected above 0, given all before it.


BET_PARTS = (0.1, 0.3, 0.6, 0.9)  # parts of the wealth that are bet; the stake is divided among them
LARGEST_FACTOR = 1.0 + max(BET_PARTS)  # by so many times one difference raises the wealth at most


class BettingTest:
    """The wealth of bets that differences are above 0."""

    def __init__(self) -> None:
        self._wealth = [1.0] * len(BET_PARTS)

    @property
    def e_value(self) -> float:
        """The wealth; large where differences are above 0."""
        return fmean(self._wealth)

    def bet(self, difference: float) -> None:
        """Bet on a difference, of which what lies beyond -1 and 1 does not count."""
        counted = min(max(difference, -1.0), 1.0)
        self._wealth = [one * (1.0 + bet * counted) for one, bet in zip(self._wealth, BET_PARTS, strict=True)]
