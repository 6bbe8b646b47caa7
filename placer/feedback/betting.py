"""Betting against "no better": evidence that may be looked at after every measurement.

A stake of 1 is bet on each difference of losses. If none is above 0 in expectation, given what came before, the
wealth ever reaches 1 / alpha with a probability of at most alpha, however often one looks (J. Ville, 1939).

References
----------
I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal Statistical
Society B 86, 2024. Assumption: differences lie in [-1, 1], and none is expected above 0, given all before it.
"""

from __future__ import annotations

from statistics import fmean

BETS = (0.1, 0.3, 0.6, 0.9)
"""Parts of the wealth that are bet; the stake is divided among them."""

LARGEST = 1.0 + max(BETS)
"""By so many times one difference raises the wealth at most."""


class BettingTest:
    """The wealth of bets that differences are above 0."""

    def __init__(self) -> None:
        self._wealth = [1.0] * len(BETS)

    @property
    def e_value(self) -> float:
        """The wealth; large where differences are above 0."""
        return fmean(self._wealth)

    def bet(self, difference: float) -> None:
        """Bet on a difference, of which what lies beyond -1 and 1 does not count."""
        counted = min(max(difference, -1.0), 1.0)
        self._wealth = [one * (1.0 + bet * counted) for one, bet in zip(self._wealth, BETS, strict=True)]
