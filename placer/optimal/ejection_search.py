"""EjectionSearch a NIC: its tenants go to others, and who is in their way goes on.

The tenants of one NIC are the pool. One of them is put on a NIC that can take one more, or else takes the place of
somebody there, who joins the pool: of all who could be ejected the one that was least often hard to place. When the
pool is empty, the NIC is saved. In between, others swap places, so that the search does not go in circles. Every
company is asked before anybody is put into it.

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
"""Companies asked at once, those that eject the easiest first."""

SWAPS = 16
"""Pairs of NICs that may swap tenants after an ejection."""

Tenants = tuple[Tenant, ...]

Move = tuple[int, Tenant | None]
"""The number of a NIC, and who is ejected from it, if somebody is."""


class EjectionSearch:
    """Empties one NIC after another, and learns who is hard to place.

    Parameters
    ----------
    kinds
        The NICs that can be had.
    oracles
        By kind, the throughput in company; remembers its answers.
    chance
        Decides among equals.
    """

    def __init__(self, kinds: Sequence[NicKind], oracles: Sequence[Oracle], chance: random.Random) -> None:
        self.kinds = kinds
        self.oracles = oracles
        self.chance = chance
        self.difficulty: Counter[str] = Counter()

    def with_one_nic_less(self, incumbent: Incumbent, *, steps: int, deadline: float) -> Incumbent | None:
        """The draft with one NIC fewer or one more tenant placed; None where that was not done in so many steps."""
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
        """The NIC with the fewest tenants, of those the dearest."""
        return min(
            range(len(nics)), key=lambda i: (len(nics[i][1]), -self.kinds[nics[i][0]].cost, self.chance.random())
        )

    def _move(self, tenant: Tenant, nics: Sequence[NicAssignment]) -> Move | None:
        """Where the tenant goes, and who leaves for it; None if there is no place even so."""
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
        """The moves after which every SLA on the NIC is kept."""
        able: list[Move] = []
        for kind, oracle in zip(self.kinds, self.oracles, strict=True):
            on_kind = [(number, ejected) for number, ejected in moves if nics[number][0] == kind.index]
            groups = [(*(one for one in nics[number][1] if one is not out), tenant) for number, out in on_kind]
            able += [move for move, fits in zip(on_kind, feasible(kind, oracle, groups), strict=True) if fits]
        return able

    def _swap_at_random(self, nics: list[NicAssignment]) -> None:
        """Lets tenants of NICs of one kind swap places at random where both NICs keep every SLA."""
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
        mine, yours = self.chance.randrange(len(one)), self.chance.randrange(len(other))
        return (
            (*one[:mine], *one[mine + 1 :], other[yours]),
            (*other[:yours], *other[yours + 1 :], one[mine]),
        )

    def _difficulty(self, move: Move) -> int:
        return 0 if move[1] is None else self.difficulty[move[1].id]
