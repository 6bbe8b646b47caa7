"""Ejection search: empties a NIC by moving its tenants to others, and tenants that block them further on.

The tenants of one NIC are the pool. One of them is put on a NIC that can take one more. Otherwise it replaces a tenant,
which joins the pool: of those that can be replaced, the one that was seldom hard to place so far. When the pool is
empty, one NIC is saved. In between, other tenants swap NICs at random, so that the search does not repeat itself. Every
co-location is checked before it is formed.

References
----------
Y. Nagata, O. Bräysy. A powerful route minimization heuristic for the vehicle routing problem with time windows.
Operations Research Letters 37(5), 2009. https://doi.org/10.1016/j.orl.2009.04.006
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from placer.model.feasibility import feasible
from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal.incumbent import Incumbent, NicAssignment

BATCH = 64
"""Co-locations of one query, those first that eject the tenants easiest to place."""

SWAPS = 16
"""Pairs of NICs that may swap tenants after an ejection."""

Tenants = tuple[Tenant, ...]

Move = tuple[int, Tenant | None]
"""The number of a NIC, and the tenant that is ejected from it, None for no ejection."""


class EjectionSearch:
    """Empties one NIC after another, and counts how often each tenant is hard to place.

    Parameters
    ----------
    kinds
        The kinds of NIC in the fleet.
    oracles
        By kind, the throughputs in a co-location; repeated queries cost nothing.
    chance
        Source of randomness.
    """

    def __init__(self, kinds: Sequence[NicKind], oracles: Sequence[Oracle], chance: random.Random) -> None:
        self.kinds = kinds
        self.oracles = oracles
        self.chance = chance
        self.difficulty: Counter[str] = Counter()

    def with_one_nic_fewer(self, incumbent: Incumbent, *, steps: int, deadline: float) -> Incumbent | None:
        """The incumbent with one NIC fewer or one more tenant placed; None where `steps` are not enough."""
        nics = list(incumbent.nics)
        waiting = list(incumbent.unplaced)
        if waiting and (not nics or self.chance.random() < 0.5):
            pool = [waiting.pop(self.chance.randrange(len(waiting)))]
        elif nics:
            pool = list(nics.pop(self._emptiest(nics))[1])
        else:
            return None
        for _ in range(steps):
            if not pool:
                return Incumbent(tuple(nics), tuple(waiting))
            if time.monotonic() >= deadline:
                return None
            tenant = pool.pop()
            move = self._move(tenant, nics)
            if move is None:
                return None
            number, ejected = move
            kind, on_nic = nics[number]
            nics[number] = kind, (*(one for one in on_nic if one is not ejected), tenant)
            if ejected is not None:
                pool.append(ejected)
                self._swap_at_random(nics)
        return None

    def _emptiest(self, nics: Sequence[NicAssignment]) -> int:
        """The NIC with the fewest tenants, of equal ones the most expensive."""
        return min(
            range(len(nics)), key=lambda i: (len(nics[i][1]), -self.kinds[nics[i][0]].cost, self.chance.random())
        )

    def _move(self, tenant: Tenant, nics: Sequence[NicAssignment]) -> Move | None:
        """A NIC for the tenant, and the tenant it replaces there, if any; None if no NIC can take it."""
        if found := self._feasible(tenant, [(number, None) for number in range(len(nics))], nics):
            return self.chance.choice(found)
        self.difficulty[tenant.id] += 1
        ejections: list[Move] = [
            (number, other)
            for number, (_, on_nic) in enumerate(nics)
            for other in on_nic
            if (other.workload, other.sla) != (tenant.workload, tenant.sla)
        ]
        self.chance.shuffle(ejections)
        ejections.sort(key=self._difficulty)
        for first in range(0, len(ejections), BATCH):
            if found := self._feasible(tenant, ejections[first : first + BATCH], nics):
                return min(found, key=self._difficulty)
        return None

    def _feasible(self, tenant: Tenant, moves: Sequence[Move], nics: Sequence[NicAssignment]) -> list[Move]:
        """The moves after which the NIC meets every SLA."""
        able: list[Move] = []
        for kind, oracle in zip(self.kinds, self.oracles, strict=True):
            on_kind = [(number, ejected) for number, ejected in moves if nics[number][0] == kind.index]
            groups = [(*(one for one in nics[number][1] if one is not out), tenant) for number, out in on_kind]
            able += [move for move, fits in zip(on_kind, feasible(kind, oracle, groups), strict=True) if fits]
        return able

    def _swap_at_random(self, nics: list[NicAssignment]) -> None:
        """Swap tenants of NICs of one kind at random where both NICs still meet every SLA."""
        for kind, oracle in zip(self.kinds, self.oracles, strict=True):
            numbers = [number for number, (used, _) in enumerate(nics) if used == kind.index]
            self.chance.shuffle(numbers)
            pairs = list(zip(numbers[::2], numbers[1::2], strict=False))[:SWAPS]
            swapped = [self._swapped(nics[one][1], nics[other][1]) for one, other in pairs]
            able = feasible(kind, oracle, [group for both in swapped for group in both])
            for at, (pair, groups) in enumerate(zip(pairs, swapped, strict=True)):
                if all(able[2 * at : 2 * at + 2]):
                    for number, group in zip(pair, groups, strict=True):
                        nics[number] = kind.index, group

    def _swapped(self, one: Tenants, other: Tenants) -> tuple[Tenants, Tenants]:
        first, second = self.chance.randrange(len(one)), self.chance.randrange(len(other))
        return (
            (*one[:first], *one[first + 1 :], other[second]),
            (*other[:second], *other[second + 1 :], one[first]),
        )

    def _difficulty(self, move: Move) -> int:
        return 0 if move[1] is None else self.difficulty[move[1].id]
