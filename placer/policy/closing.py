"""The end of a trace of known length: when its last arrivals are priced, given the NICs that are open.

While many arrivals are to come, an open NIC will be filled, and what its free capacity is worth hardly depends on how
many there are. Towards the end it does: capacity for which no arrival is left is worth nothing. Then the pattern
program (`dual_simplex`) also has the open NICs, which may become any pattern that they can reach at no cost, and asks
for no more slots than arrivals that are expected. It is solved anew as arrivals come (Jasin and Kumar, "A re-solving
heuristic with bounded revenue loss for network revenue management", Mathematics of Operations Research 37, 2012; for
bin packing Banerjee and Freund, "Uniform loss algorithms for online stochastic decision-making with applications to bin
packing", 2020).

How many arrivals a trace has is known to those who have it; which ones come is not used.
"""

from __future__ import annotations

from collections.abc import Sequence

from placer.model.arrival import Arrival

CLOSING = 1_000
"""Arrivals before the end from which open NICs count."""

LAST = 120
"""Arrivals before the end from which prices change fast, and are computed more often and of more samples."""

MOST_MOVES = 20_000
"""Patterns that classes of open NICs can become, in all, above which open NICs are too many to count."""


def length_of(arrivals: Sequence[Arrival]) -> int | None:
    """How many arrivals a trace has; None where some leave, which makes room for others."""
    return None if any(arrival.departure is not None for arrival in arrivals) else len(arrivals)


def is_due(left: int) -> bool:
    """Whether prices are computed anew when so many arrivals are left."""
    return left % (8 if left > LAST else 4) == 0


def samples(left: int) -> int:
    """Of how many samples of the arrivals that are left prices are averaged."""
    return 4 if left > LAST else 10
