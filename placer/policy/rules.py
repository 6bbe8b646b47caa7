"""Rules: which NIC takes an arrival among those on which every SLA stays met, and when a new NIC is better.

The free capacity of a NIC is worth what it adds in the best co-location that the NIC can become without violating an
SLA. Rules differ in what an added instance is worth, and in how they weigh this value before and after the arrival.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placer.model.arrival import Arrival
from placer.model.nic import Nic, Tenant
from profiles import InputError


@dataclass(frozen=True)
class Rule:
    """How NICs are compared: the lowest score takes the arrival; among equals, the NIC that was opened first.

    `before`, `after`: weights in the score of the value of free capacity without and with the arrival. `forecasts`:
    whether an instance is worth the price of its slot to future arrivals, which are like the recent ones; all NICs are
    equal while there is too little to go by. Else it is worth the cores that it takes. `opening_cost`: what opening a
    NIC costs beyond the value that it loses, in units of NIC cost; None opens a NIC only when no NIC in use fits.
    """

    name: str
    before: float
    after: float
    forecasts: bool = False
    opening_cost: float | None = None


LOOK_AHEAD = Rule("look-ahead", 1.0, -1.0, forecasts=True, opening_cost=0.06)
"""The NIC that loses least capacity for expected arrivals."""

FIRST_FIT = Rule("first-fit", 0.0, 0.0)
BEST_FIT = Rule("best-fit", 0.0, 1.0)
"""The NIC with the least usable capacity left: cores that could still be used without violating an SLA."""

WORST_FIT = Rule("worst-fit", 0.0, -1.0)  # the NIC with the most usable capacity left
RULES_BY_NAME = {rule.name: rule for rule in (LOOK_AHEAD, BEST_FIT, FIRST_FIT, WORST_FIT)}  # by name, the default first


def rule_of(name: str) -> Rule:
    """The rule of that name. Raises InputError when there is none."""
    if name not in RULES_BY_NAME:
        raise InputError.of("--rule", f"'{name}' is not a rule", hint=f"it is one of {', '.join(RULES_BY_NAME)}")
    return RULES_BY_NAME[name]


# The end of a trace of known length: when its last arrivals are priced, given the NICs that are open.
#
# While many arrivals are to come, an open NIC will be filled, and what its free capacity is worth hardly depends on how
# many there are. Towards the end it does: capacity for which no arrival is left is worth nothing. Then the pattern
# program (`dual_simplex`) also has the open NICs, which may become any pattern that they can reach at no cost, and asks
# for no more slots than arrivals that are expected. It is solved anew as arrivals come (Jasin and Kumar, "A re-solving
# heuristic with bounded revenue loss for network revenue management", Mathematics of Operations Research 37, 2012; for
# bin packing Banerjee and Freund, "Uniform loss algorithms for online stochastic decision-making with applications to
# bin
# packing", 2020).
#
# How many arrivals a trace has is known to those who have it; which ones come is not used.


CLOSING_ARRIVALS = 1_000  # arrivals before the end from which open NICs count

LAST_ARRIVALS = 120
"""Arrivals before the end from which prices change fast, and are computed more often and of more samples."""

MOST_MOVES = 20_000
"""Patterns that classes of open NICs can become, in all, above which open NICs are too many to count."""


def length_of(arrivals: Sequence[Arrival]) -> int | None:
    """How many arrivals a trace has; None where some leave, which makes room for others."""
    return None if any(arrival.departure is not None for arrival in arrivals) else len(arrivals)


def is_due(left: int) -> bool:
    """Whether prices are computed anew when so many arrivals are left."""
    return left % (8 if left > LAST_ARRIVALS else 4) == 0


def samples(left: int) -> int:
    """Of how many samples of the arrivals that are left prices are averaged."""
    return 4 if left > LAST_ARRIVALS else 10


class IndexWithoutTable:
    """What an index answers that predicts nothing in advance and forecasts nothing. `_nics`: its NICs, by number."""

    _nics: Mapping[int, object]

    def has(self, nic: Nic) -> bool:
        return nic.number in self._nics

    def covers(self, tenant: Tenant) -> bool:
        """True: nothing is predicted in advance."""
        return True

    def holds(self, tenant: Tenant) -> bool:
        """True: nothing is predicted in advance."""
        return True

    @property
    def renewing(self) -> bool:
        """False: nothing is renewed."""
        return False

    def close_with(self, arrivals: int) -> bool:
        """False: nothing changes, NICs are filled one after the other anyway."""
        return False

    def observe(self, tenant: Tenant) -> None:
        """Nothing changes: there is no forecast."""

    def settle(self, *, at_once: bool = False) -> None:
        """Nothing changes: there is neither a forecast nor anything that is remembered."""

    renew = refresh = settle
