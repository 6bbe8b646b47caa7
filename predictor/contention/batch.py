"""Co-locations as arrays: one row per co-location, one column per member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from profiles import Workload

Array = NDArray[np.float64]
EMPTY = -1


@dataclass(frozen=True)
class CoLocationBatch:
    """Co-locations of at most `members` workloads, one row each.

    Parameters
    ----------
    member
        Number of each workload in the `WorkloadIndex`; -1 where there is none. Shape (co-locations, members).
    order
        Position of each member in its co-location as it was given. Shape (co-locations, members).
    sizes
        Workloads per co-location.
    """

    member: NDArray[np.intp]
    order: NDArray[np.intp]
    sizes: NDArray[np.intp]

    @cached_property
    def occupied(self) -> NDArray[np.bool_]:
        """Where there is a workload, shape (co-locations, members)."""
        occupied: NDArray[np.bool_] = self.member >= 0
        return occupied

    @cached_property
    def contended(self) -> NDArray[np.bool_]:
        """Where there is a workload that has competitors, shape (co-locations, members)."""
        contended: NDArray[np.bool_] = self.occupied & (self.sizes[:, None] > 1)
        return contended

    def in_given_order(self, values: Array) -> list[Array]:
        """Per co-location, its values of shape (co-locations, members, ...) in the order its workloads were given."""
        given = np.empty_like(values)
        given[np.arange(len(values))[:, None], self.order] = values
        return [row[:size] for row, size in zip(given, self.sizes.tolist(), strict=True)]


class WorkloadIndex:
    """Numbers distinct workloads in the order in which they first occur.

    Parameters
    ----------
    add
        Called with the workloads that get the next numbers; when it raises, they get none.
    """

    def __init__(self, add: Callable[[Sequence[Workload]], None]) -> None:
        self._numbers: dict[Workload, int] = {}
        self._workloads: list[Workload] = []
        self._keys: list[tuple[str | float, ...]] = []
        self._add = add

    def __len__(self) -> int:
        return len(self._workloads)

    def numbers(self, workloads: Sequence[Workload]) -> NDArray[np.intp]:
        """The number of each workload; new ones are added."""
        before = len(self._workloads)
        by_identity: dict[int, int] = {}
        numbers = [self._number(workload, by_identity) for workload in workloads]
        if len(self._workloads) > before:
            try:
                self._add(self._workloads[before:])
            except Exception:
                for workload in self._workloads[before:]:
                    del self._numbers[workload]
                del self._workloads[before:], self._keys[before:]
                raise
        return np.array(numbers, dtype=np.intp)

    def batch(self, co_locations: Sequence[Sequence[Workload]]) -> CoLocationBatch:
        """The co-locations as arrays.

        Members are sorted, whatever order they were given in, so that sums over them are the same to the last bit.
        """
        flat = [workload for co_location in co_locations for workload in co_location]
        numbers, keys = self.numbers(flat).tolist(), self._keys
        sizes = [len(co_location) for co_location in co_locations]
        widest = max(sizes, default=0)
        members: list[list[int]] = []
        orders: list[list[int]] = []
        start = 0
        for size in sizes:
            of_these = numbers[start : start + size]
            order = sorted(range(size), key=[keys[number] for number in of_these].__getitem__)
            members.append([*(of_these[at] for at in order), *[EMPTY] * (widest - size)])
            orders.append([*order, *range(size, widest)])
            start += size
        shape = (len(sizes), widest)
        member, order_of_all = (np.array(rows, dtype=np.intp).reshape(shape) for rows in (members, orders))
        return CoLocationBatch(member, order_of_all, np.array(sizes, dtype=np.intp))

    def _number(self, workload: Workload, by_identity: dict[int, int]) -> int:
        number = by_identity.get(id(workload))
        if number is None:
            number = self._numbers.get(workload, EMPTY)
            if number == EMPTY:
                number = self._numbers[workload] = len(self._workloads)
                self._workloads.append(workload)
                self._keys.append((workload.nf, *workload.traffic.as_tuple()))
            by_identity[id(workload)] = number
        return number
