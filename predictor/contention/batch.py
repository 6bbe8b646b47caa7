"""Companies of workloads as arrays: every distinct workload is looked at once, every company is a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiles import Workload

Array = NDArray[np.float64]
NOBODY = -1


@dataclass(frozen=True)
class CoLocations:
    """Companies of at most `members` workloads, one row each.

    Parameters
    ----------
    member
        Place of each workload among the distinct ones; -1 where there is none. Shape (companies, members).
    order
        Which of the company's workloads, as they were given, each member is. Shape (companies, members).
    sizes
        Workloads per company.
    """

    member: NDArray[np.intp]
    order: NDArray[np.intp]
    sizes: NDArray[np.intp]

    @property
    def seated(self) -> NDArray[np.bool_]:
        """Where there is a workload, shape (companies, members)."""
        there: NDArray[np.bool_] = self.member >= 0
        return there

    def in_given_order(self, values: Array) -> list[Array]:
        """Per company, the values of shape (companies, members, ...) in the order its workloads were given."""
        given = np.empty_like(values)
        given[np.arange(len(values))[:, None], self.order] = values
        return [row[:size] for row, size in zip(given, self.sizes.tolist(), strict=True)]


class Roster:
    """The distinct workloads seen so far."""

    def __init__(self, remember: Callable[[Sequence[Workload]], None]) -> None:
        self._places: dict[Workload, int] = {}
        self._keys: list[Workload] = []
        self._remember = remember

    def __len__(self) -> int:
        return len(self._keys)

    def places(self, workloads: Sequence[Workload]) -> NDArray[np.intp]:
        """The place of each workload, new ones remembered."""
        before = len(self._keys)
        by_identity: dict[int, int] = {}
        places = [self._place(workload, by_identity) for workload in workloads]
        if len(self._keys) > before:
            try:
                self._remember(self._keys[before:])
            except Exception:
                for workload in self._keys[before:]:
                    del self._places[workload]
                del self._keys[before:]
                raise
        return np.array(places, dtype=np.intp)

    def co_locations(self, co_locations: Sequence[Sequence[Workload]]) -> CoLocations:
        """The companies as arrays; members in one order whatever the order they came in, so that sums are the same."""
        flat = [workload for co_location in co_locations for workload in co_location]
        sizes = np.array([len(co_location) for co_location in co_locations], dtype=np.intp)
        places = self.places(flat)
        ranks = self._ranks(places)
        widest = int(sizes.max()) if len(sizes) else 0
        seated = np.arange(widest)[None, :] < sizes[:, None]
        rank = np.full((len(sizes), widest), np.iinfo(np.intp).max, dtype=np.intp)
        rank[seated] = ranks
        member = np.full((len(sizes), widest), NOBODY, dtype=np.intp)
        member[seated] = places
        order = np.argsort(rank, axis=1, kind="stable")
        return CoLocations(np.take_along_axis(member, order, axis=1), order, sizes)

    def _place(self, workload: Workload, by_identity: dict[int, int]) -> int:
        place = by_identity.get(id(workload))
        if place is None:
            place = self._places.get(workload, NOBODY)
            if place == NOBODY:
                place = self._places[workload] = len(self._keys)
                self._keys.append(workload)
            by_identity[id(workload)] = place
        return place

    def _ranks(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        distinct = np.unique(places)
        by_value = sorted(distinct.tolist(), key=lambda place: self._keys[place])
        rank = np.empty(len(self._keys), dtype=np.intp)
        rank[by_value] = np.arange(len(by_value))
        return rank[places]
