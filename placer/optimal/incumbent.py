"""Drafts: plans that break no SLA and may be improved, and the first of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from placer.model.feasibility import feasible
from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal.program import exact_cost

TRIED = 32
"""Tenants among whom the first plan looks for one more to put on a NIC."""

House = tuple[int, tuple[Tenant, ...]]
"""A NIC in use: the number of its kind, and its tenants."""


@dataclass(frozen=True, eq=False)
class Incumbent:
    """A plan that breaks no SLA, and may be improved."""

    houses: tuple[House, ...]
    unplaced: tuple[Tenant, ...]

    def cost(self, kinds: Sequence[NicKind]) -> Fraction:
        """What its NICs cost."""
        return sum((exact_cost(kinds[kind]) for kind, _ in self.houses), start=Fraction(0))


def first_incumbent(
    tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle], deadline: float
) -> Incumbent:
    """NICs filled one after the other, cheapest kind first, each with whom it can take of the next `TRIED` waiting.

    When time is over, nobody shares any more.
    """
    waiting = list(tenants)
    houses: list[House] = []
    for number in sorted(range(len(kinds)), key=lambda number: (kinds[number].cost, number)):
        kind, oracle = kinds[number], oracles[number]
        skipped: list[Tenant] = []
        used = 0
        while waiting and used != kind.count:
            housed: list[Tenant] = []
            while joiner := next(_joiners(housed, waiting, kind, oracle), None):
                housed.append(joiner)
                waiting.remove(joiner)
                if time.monotonic() >= deadline:
                    break
            if housed:
                houses.append((number, tuple(housed)))
                used += 1
            else:
                skipped += waiting[:TRIED]
                waiting = waiting[TRIED:]
        waiting = skipped + waiting
    return Incumbent(tuple(houses), tuple(waiting))


def _joiners(housed: Sequence[Tenant], waiting: Sequence[Tenant], kind: NicKind, oracle: Oracle) -> Iterator[Tenant]:
    """Those first in line who can join the tenants of a NIC."""
    line = waiting[:TRIED]
    able = feasible(kind, oracle, [(*housed, tenant) for tenant in line])
    return (tenant for tenant, fits in zip(line, able, strict=True) if fits)
