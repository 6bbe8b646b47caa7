"""Rules: which NIC takes an arrival among those on which every SLA stays met, and when a new NIC is better.

A rule forecasts arrivals and their value. The free capacity of a NIC is worth the value that the NIC can expect from
them without violating an SLA. Rules differ in the forecast, and in how they weigh this value before and after the
arrival joins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placer.policy.forecast import recent_arrivals_forecast, uniform_forecast
from placer.policy.kernels import Forecast
from placer.policy.pattern_table import PatternTable
from profiles import InputError

Recent = Sequence[tuple[int, float]]
"""Recent arrivals: the column of the workload, and the throughput (kpps) that each requires."""


@dataclass(frozen=True)
class Rule:
    """How NICs are compared: the lowest score takes the arrival; among equals, the NIC that was opened first.

    Parameters
    ----------
    name
        On the command line.
    before, after
        Weights in the score of the value of free capacity without and with the arrival.
    forecast
        The arrivals to expect, from the recent ones; None while there is too little to go by, then all NICs are equal.
    opening_cost
        What opening a NIC costs beyond the value that it loses, in units of NIC cost; None opens a NIC only when no
        NIC in use fits.
    """

    name: str
    before: float
    after: float
    forecast: Callable[[PatternTable, Recent], Forecast | None]
    opening_cost: float | None = None


LOOK_AHEAD = Rule("look-ahead", 1.0, -1.0, recent_arrivals_forecast, opening_cost=0.1)
"""The NIC that loses least capacity for expected arrivals."""

FIRST_FIT = Rule("first-fit", 0.0, 0.0, uniform_forecast)
"""The NIC that was opened first."""

BEST_FIT = Rule("best-fit", 0.0, 1.0, uniform_forecast)
"""The NIC with the least usable capacity left: cores that could still be used without violating an SLA."""

WORST_FIT = Rule("worst-fit", 0.0, -1.0, uniform_forecast)
"""The NIC with the most usable capacity left."""

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
