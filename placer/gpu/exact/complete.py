"""Complete search, for few SLOs: all sets of one more SLO, and all ways to put their minibatches on SMs.

What is admitted stays admitted without one of the others: so if no set of some size is, none that is larger is. A set
or a partly placed one is left out as soon as the bus cannot serve it with everybody not yet placed at its best.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from placer.gpu.exact.batches import batches_in_time, fits, limits
from placer.gpu.exact.best_case import BestCases
from placer.gpu.exact.problem import Ints, Problem
from placer.gpu.exact.sm_layout import SmLayout, empty_layout, put, take


class CompleteSearch:
    """The search for a set of some size that can be admitted.

    Parameters
    ----------
    deadline
        On the monotonic clock, seconds.
    """

    def __init__(self, problem: Problem, cases: BestCases, deadline: float) -> None:
        self._p = problem
        self._cases = cases
        self._deadline = deadline
        self._layout = empty_layout(problem)
        count = len(problem.nf)
        self._executors, self._fewer = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self._kernel = np.zeros(count)
        self._low, self._high = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)

    def expired(self) -> bool:
        """Whether the time is over; what was not found until then is unknown."""
        return time.monotonic() > self._deadline

    def admits(self, size: int) -> SmLayout | None:
        """A layout that admits as many SLOs; None where there is none, or the time is over."""
        self._layout.chosen[:] = 0
        possible = np.flatnonzero(self._cases.size > 0)
        # Large batches first, as they fit least.
        possible = possible[np.argsort(-self._cases.batch[possible], kind="stable")]
        for members in self._sets(possible, 0, np.empty(0, dtype=np.int64), size):
            if self._places(members, 0):
                return self._layout
        return None

    def joins(self, layout: SmLayout, i: int) -> SmLayout | None:
        """The layout with one more SLO, where the others keep their SMs and executors; None where it does not fit, or
        the time is over. Batches and the order of transfers may change."""
        self._layout.chosen[:] = layout.chosen
        there = np.flatnonzero(layout.parts)
        self._executors[there] = [layout.part_executors[k, : layout.parts[k]].sum() for k in there]
        self._fewer[there] = 0
        return self._layout if self._cases.size[i] > 0 and self._places(np.append(there, i), len(there)) else None

    def _sets(self, possible: Ints, at: int, members: Ints, size: int) -> Iterator[Ints]:
        """Sets of the size that the bus serves with everybody at its best."""
        if len(members) == size:
            yield members
            return
        for k in range(at, len(possible) - (size - len(members)) + 1):
            more = np.append(members, possible[k])
            if fits(self._p, more, self._cases.kernel, self._cases.batch, self._cases.most) and not self.expired():
                yield from self._sets(possible, k + 1, more, size)

    def _places(self, members: Ints, at: int) -> bool:
        """Whether the members from `at` on can be placed beside those before; leaves them placed where they can."""
        if at == len(members):
            return self._batches(members)
        i = int(members[at])
        width = self._p.width
        for executors in range(-(-int(self._cases.batch[i]) // width), -(-int(self._cases.most[i]) // width) + 1):
            self._executors[i], self._fewer[i] = executors, executors - 1
            for split in self._splits(executors):
                for sm, part in split:
                    put(self._p, self._layout, i, sm, part)
                if self._bounded(members) and self._places(members, at + 1):
                    return True
                take(self._p, self._layout, i)
                if self.expired():
                    return False
        return False

    def _bounded(self, members: Ints) -> bool:
        """Whether the bus may still serve all members."""
        cases = self._cases
        return bool(
            limits(
                self._p, self._layout, members, self._executors, self._fewer, cases.batch, cases.most, cases.kernel,
                self._kernel, self._low, self._high,
            )
            and fits(self._p, members, self._kernel, self._low, self._high)
        )  # fmt: skip

    def _batches(self, members: Ints) -> bool:
        """Whether batches let the bus serve all members, who are placed; leaves them in the layout."""
        if not self._bounded(members):
            return False
        low, high = self._low.copy(), self._high.copy()
        batches = batches_in_time(self._p, members, self._kernel, low, high, self.expired)
        if batches is None:
            return False
        self._layout.wish[members] = batches[members]
        return True

    def _splits(self, executors: int) -> Iterator[list[tuple[int, int]]]:
        """Ways to put executors on SMs; of SMs with the same tenants, an earlier one gets no fewer than a later one."""
        layout = self._layout
        free = [self._p.slots - int(used) for used in layout.used]
        tenants = [
            sorted(zip(layout.tenant[sm, :there].tolist(), layout.tenant_executors[sm, :there].tolist(), strict=True))
            for sm, there in enumerate(layout.tenants.tolist())
        ]
        same = [
            next((before for before in range(sm - 1, -1, -1) if tenants[before] == tenants[sm]), -1)
            for sm in range(self._p.sms)
        ]
        yield from _parts(executors, 0, free, same, [])


def _parts(left: int, sm: int, free: list[int], same: list[int], before: list[int]) -> Iterator[list[tuple[int, int]]]:
    if left == 0:
        yield [(at, part) for at, part in enumerate(before) if part > 0]
        return
    if sm == len(free):
        return
    most = min(left, free[sm], before[same[sm]] if same[sm] >= 0 else left)
    for part in range(most, -1, -1):
        if left - part <= sum(free[sm + 1 :]):
            yield from _parts(left - part, sm + 1, free, same, [*before, part])
