"""A bus that is simulated event by event: no transfer is interrupted, the smallest order goes first."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Arrivals = Sequence[Sequence[Fraction]]
"""Times at which each stream's batches arrive, in ascending order."""


def longest_waits(
    transfers: Sequence[Fraction], arrivals: Arrivals, busy_until: Fraction | None = None
) -> list[Fraction]:
    """The longest time that a batch of each stream waits for the bus.

    Parameters
    ----------
    transfers
        The time of a transfer of each stream, smallest order first.
    arrivals
        As many lists. A batch that arrives at the instant at which the bus becomes free takes part in the choice.
    busy_until
        End of a transfer that already began.
    """
    queues = [list(reversed(times)) for times in arrivals]
    longest = [Fraction(0)] * len(transfers)
    now = busy_until or Fraction(0)
    while waiting := [times[-1] for times in queues if times]:
        now = max(now, min(waiting))
        chosen = next(stream for stream, times in enumerate(queues) if times and times[-1] <= now)
        longest[chosen] = max(longest[chosen], now - queues[chosen].pop())
        now += transfers[chosen]
    return longest
