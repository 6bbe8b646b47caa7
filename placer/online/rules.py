"""Rules: which of the NICs that would keep every SLA takes the newcomer, and whether a new one is better.

Every rule puts a price on the slots that are still to be filled. What a NIC can still earn, by the best company that it
may become without breaking an SLA, is the worth of its room; rules differ in the prices and in what they make of the
worth before and after the newcomer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from placer.online.outlook import slot_prices
from placer.online.patterns import Floats, Patterns
from profiles import InputError

Seen = Sequence[tuple[int, float]]
"""Newcomers of late: column of the workload, and the drop (fraction) that each bears."""

Prices = Callable[[Patterns, Seen], Floats | None]


def _free(patterns: Patterns, seen: Seen) -> Floats:
    return np.zeros(patterns.kpps.shape)


def _cores(patterns: Patterns, seen: Seen) -> Floats:
    """A slot is priced at the share of a NIC's cores that it puts to use."""
    cores = [patterns.kind.cores_of[workload.nf] for workload in patterns.workloads]
    return np.tile(np.array(cores) / patterns.kind.cores, (len(patterns.kpps), 1))


@dataclass(frozen=True)
class Rule:
    """How rooms are compared; the lowest score takes the newcomer, among equals the NIC that was opened first.

    Parameters
    ----------
    name
        On the command line.
    before, after
        Weights in the score of what the room is worth without and with the newcomer, in NICs.
    prices
        Of every slot, shape (patterns, workloads); None while nothing is foreseen, which counts as free.
    toll
        What a new NIC costs beyond what it loses in worth; None opens one only when no other fits.
    """

    name: str
    before: float
    after: float
    prices: Prices
    toll: float | None = None

    @property
    def foresees(self) -> bool:
        """Whether the prices depend on who came of late."""
        return self.prices is slot_prices


LOOK_AHEAD = Rule("look-ahead", 1.0, -1.0, slot_prices, toll=0.05)
"""Where least is lost of what those to come could have used, as the outlook tells."""

FIRST_FIT = Rule("first-fit", 0.0, 0.0, _free)
"""The NIC that was opened first."""

BEST_FIT = Rule("best-fit", 0.0, 1.0, _cores)
"""Where least slack is left: cores that could still be put to use without breaking an SLA."""

WORST_FIT = Rule("worst-fit", 0.0, -1.0, _cores)
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
