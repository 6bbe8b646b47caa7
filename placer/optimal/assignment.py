"""Assignment: from a solution of the pattern program to the tenants of every NIC."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.model.fleet import NicKind, Tenant
from placer.optimal.arrays import Ints
from placer.optimal.patterns import Patterns
from placer.optimal.tenant_groups import TenantGroup

Assignment = list[tuple[NicKind, tuple[Tenant, ...]]]
"""The NICs of a plan: the kind of each, and its tenants."""


def assign(
    times: Ints, left_out: Ints, patterns: Patterns, groups: Sequence[TenantGroup], kinds: Sequence[NicKind]
) -> tuple[Assignment, list[Tenant]]:
    """Tenants on NICs that carry each pattern the given number of times, and the tenants left out.

    Each slot of a group is good enough for the least demanding tenants up to its level. Slots of strict patterns are
    filled first, lowest level first, each with the most demanding tenant it can take; then those of loose patterns,
    the best slot with the most demanding tenant. NICs without tenants are not used.
    """
    pattern_of = np.repeat(np.arange(len(patterns)), times)
    carried: list[list[Tenant]] = [[] for _ in pattern_of]
    unplaced: list[Tenant] = []
    for i, group in enumerate(groups):
        placed = len(group.tenants) - int(left_out[i])
        unplaced.extend(group.tenants[placed:])
        nic_of_slot = np.repeat(np.arange(len(pattern_of)), patterns.slots[pattern_of, i])
        nic_of_tenant = _nics_of(nic_of_slot, pattern_of, patterns, i, placed)
        for tenant, nic in zip(group.tenants, nic_of_tenant.tolist(), strict=False):
            carried[nic].append(tenant)
    nics = [
        (kinds[patterns.kind[pattern]], tuple(tenants))
        for pattern, tenants in zip(pattern_of.tolist(), carried, strict=True)
        if tenants
    ]
    return nics, unplaced


def _nics_of(nic_of_slot: Ints, pattern_of: Ints, patterns: Patterns, group: int, placed: int) -> Ints:
    """The NIC of each of the `placed` least demanding tenants of a group, from the NIC of each of its slots."""
    level = np.minimum(patterns.levels[pattern_of[nic_of_slot], group], placed)
    strict = patterns.strict[pattern_of[nic_of_slot]]
    nic_of_tenant = np.full(placed, -1, dtype=np.int64)
    waiting: list[int] = []
    reached = 0
    for slot in np.flatnonzero(strict)[np.argsort(level[strict], kind="stable")].tolist():
        waiting.extend(range(reached, int(level[slot])))
        reached = int(level[slot])
        nic_of_tenant[waiting.pop()] = nic_of_slot[slot]
    hardest_first = np.flatnonzero(nic_of_tenant < 0)[::-1]
    best_first = np.flatnonzero(~strict)[np.argsort(-level[~strict], kind="stable")][: len(hardest_first)]
    if np.any(level[best_first] <= hardest_first):
        raise AssertionError("A slot of the plan is not good enough for its tenant.")
    nic_of_tenant[hardest_first] = nic_of_slot[best_first]
    return nic_of_tenant
