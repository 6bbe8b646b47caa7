"""Rules: which of the NICs that would keep every SLA takes the newcomer, and whether a new one is better.

Every rule has an outlook: who will come, and what each is worth to a NIC. What a NIC can then expect, by the companies
that it may become without breaking an SLA, is the worth of its room, in units of that of an empty NIC; rules differ in
the outlook and in what they make of the worth before and after the newcomer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placer.policy.forecast import Forecast, recent_arrivals_forecast, uniform_forecast
from placer.policy.patterns import Patterns
from profiles import InputError

Seen = Sequence[tuple[int, float]]
"""Newcomers of late: column of the workload, and the throughput (kpps) that each requires."""


@dataclass(frozen=True)
class Rule:
    """How rooms are compared; the lowest score takes the newcomer, among equals the NIC that was opened first.

    Parameters
    ----------
    name
        On the command line.
    before, after
        Weights in the score of what the room is worth without and with the newcomer.
    outlook
        Who will come, told by those of late; None while nothing can be foreseen, when all rooms are alike.
    toll
        What a new NIC costs beyond what it loses in worth; None opens one only when no other fits.
    """

    name: str
    before: float
    after: float
    forecast: Callable[[Patterns, Seen], Forecast | None]
    opening_cost: float | None = None


LOOK_AHEAD = Rule("look-ahead", 1.0, -1.0, recent_arrivals_forecast, opening_cost=0.1)
"""Where least is lost of what those to come are worth."""

FIRST_FIT = Rule("first-fit", 0.0, 0.0, uniform_forecast)
"""The NIC that was opened first."""

BEST_FIT = Rule("best-fit", 0.0, 1.0, uniform_forecast)
"""Where least slack is left: cores that could still be put to use without breaking an SLA."""

WORST_FIT = Rule("worst-fit", 0.0, -1.0, uniform_forecast)
"""Where most slack is left."""

RULES = {rule.name: rule for rule in (LOOK_AHEAD, BEST_FIT, FIRST_FIT, WORST_FIT)}
"""By name, the default first."""


def rule_of(name: str) -> Rule:
    """The rule of that name.

    Raises
    ------
    InputError
        When there is none.
    """
    if name not in RULES:
        raise InputError.of("--rule", f"'{name}' is not a rule", hint=f"it is one of {', '.join(RULES)}")
    return RULES[name]
