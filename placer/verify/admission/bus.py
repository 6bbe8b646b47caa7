"""How long a batch waits for the bus, by both models of arbitration.

`one-shot`: every NF transfers once, in order (Grus, section V-B). `sporadic`: batches recur, a transfer that has begun
is not interrupted, and the smallest order goes first.

References
----------
Davis, Burns, Bril, Lukkien: Controller Area Network (CAN) schedulability analysis: refuted, revisited and revised.
Real-Time Systems 35, 2007. https://doi.org/10.1007/s11241-007-9012-7 (section 3.2, without jitter).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

MOST_STEPS = 1_000_000
"""Of the search for the longest wait; only where the utilisation is next to 1 there are more."""


class Stream(NamedTuple):
    """Batches of an NF on the bus: the time of one transfer, and the time between two, us."""

    transfer: Fraction
    period: Fraction

    @property
    def utilisation(self) -> Fraction:
        """Share of the bus that they take."""
        return self.transfer / self.period


class TooManySteps(Exception):
    """The longest wait is not found within `MOST_STEPS`."""


def one_shot_wait(earlier: Sequence[Stream]) -> Fraction:
    """The sum of all earlier transfers, us."""
    return sum((one.transfer for one in earlier), start=Fraction(0))


def utilisation_of(streams: Sequence[Stream]) -> Fraction:
    """The share of the bus that streams take together."""
    return sum((one.utilisation for one in streams), start=Fraction(0))


def sporadic_wait(own: Stream, earlier: Sequence[Stream], later: Sequence[Stream]) -> Fraction:
    """The longest wait of a batch from its arrival to the begin of its transfer, us.

    All streams arrive together just after the longest later transfer began. Batch `q` of the own stream begins at the
    smallest `w = blocking + q * transfer + sum over earlier of (floor(w / period) + 1) * transfer`, and arrived at
    `q * period`. Batches are examined until the line above all of them falls below the longest wait found.

    Parameters
    ----------
    own, earlier, later
        The streams with this, smaller and larger orders; own and earlier leave the bus idle at times
        (`utilisation_of` is below 1).

    Raises
    ------
    TooManySteps
        When the utilisation is so near 1 that this takes too long.
    """
    blocking = max((one.transfer for one in later), default=Fraction(0))
    burst = blocking + one_shot_wait(earlier)
    idle = 1 - utilisation_of(earlier)
    begin, longest, steps, batch = burst, Fraction(0), 0, 0
    while batch == 0 or (burst + batch * own.transfer) / idle - batch * own.period > longest:
        while True:
            steps += 1
            if steps > MOST_STEPS:
                raise TooManySteps
            served = sum((begin // one.period + 1) * one.transfer for one in earlier)
            after = blocking + batch * own.transfer + served
            if after == begin:
                break
            begin = after
        longest = max(longest, begin - batch * own.period)
        batch += 1
        begin += own.transfer
    return longest
