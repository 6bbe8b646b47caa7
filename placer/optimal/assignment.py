"""From a solution of the pattern program to the tenants of every NIC."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.model.fleet import NicKind, Tenant
from placer.optimal.demand import Demand, Ints
from placer.optimal.patterns import Patterns

Assignment = list[tuple[NicKind, tuple[Tenant, ...]]]
"""The NICs of a plan: the kind of each, and who runs on it."""


def assign(
    times: Ints, left_out: Ints, patterns: Patterns, demands: Sequence[Demand], kinds: Sequence[NicKind]
) -> tuple[Assignment, list[Tenant]]:
    """Tenants on NICs that carry each pattern the given number of times, and the tenants left out.

    Slots of one demand are nested: each is good enough for the easiest tenants up to its level. Slots of strict
    patterns go first, lowest level first, and each takes the hardest tenant it can; then those of loose patterns, best
    slot to hardest tenant. NICs that nobody was put on are not used.
    """
    pattern_of = np.repeat(np.arange(len(patterns)), times)
    homes: list[list[Tenant]] = [[] for _ in pattern_of]
    unplaced: list[Tenant] = []
    for i, demand in enumerate(demands):
        placed = len(demand.tenants) - int(left_out[i])
        unplaced.extend(demand.tenants[placed:])
        nic = np.repeat(np.arange(len(pattern_of)), patterns.slots[pattern_of, i])
        for tenant, home in zip(demand.tenants, _homes(nic, pattern_of, patterns, i, placed).tolist(), strict=False):
            homes[home].append(tenant)
    nics = [(kinds[patterns.kind[p]], tuple(home)) for p, home in zip(pattern_of.tolist(), homes, strict=True) if home]
    return nics, unplaced


def _homes(nic: Ints, pattern_of: Ints, patterns: Patterns, demand: int, placed: int) -> Ints:
    """The NIC of each of the `placed` easiest tenants, where `nic` lists the NIC of every slot of their demand."""
    level = np.minimum(patterns.levels[pattern_of[nic], demand], placed)
    strict = patterns.strict[pattern_of[nic]]
    home = np.full(placed, -1, dtype=np.int64)
    waiting: list[int] = []
    reached = 0
    for slot in np.flatnonzero(strict)[np.argsort(level[strict], kind="stable")].tolist():
        waiting.extend(range(reached, int(level[slot])))
        reached = int(level[slot])
        home[waiting.pop()] = nic[slot]
    hardest_first = np.flatnonzero(home < 0)[::-1]
    best_first = np.flatnonzero(~strict)[np.argsort(-level[~strict], kind="stable")][: len(hardest_first)]
    if np.any(level[best_first] <= hardest_first):
        raise AssertionError("A slot of the plan is not good enough for its tenant.")
    home[hardest_first] = nic[best_first]
    return home
