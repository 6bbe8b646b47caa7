"""Which workloads the tables of a selector hold, where an arrival with other traffic is compared by a stand-in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from placer.model.fleet import Tenant
from profiles import Workload

MOST_COLUMNS = 32
"""Workloads of a table at most."""

FEW_COLUMNS = 12
"""Up to so many workloads are in a table although they have come only once."""

RECURS_FROM = 4
"""Arrivals of a workload from which it recurs, and is worth a column of its own; it is looked at again whenever their
number has doubled."""

MOST_STAND_INS = 0.1
"""The largest share of recent arrivals that are compared by stand-ins: of more, NICs are sampled and predicted."""

RECENT_ARRIVALS = 64
"""Arrivals over which that share is averaged."""

COUNTED_WORKLOADS = 10_000
"""Workloads without a column whose arrivals are counted."""


class TableWorkloads:
    """Counts arrivals, and says when other workloads belong into the tables.

    `expected`: tenants like those that will come. `recent`: the latest arrivals, which others add to.
    """

    def __init__(self, expected: Sequence[Tenant], recent: Iterable[Tenant]) -> None:
        self._expected = expected
        self._recent = recent
        self._most = MOST_COLUMNS
        self._without_column = Counter[Workload]()
        self._stand_ins = 0.0

    @property
    def too_different(self) -> bool:
        """Whether too many recent arrivals had stand-ins."""
        return self._stand_ins > MOST_STAND_INS

    def count(self, workload: Workload, *, held: bool) -> None:
        """Count an arrival, whose workload a table holds or not."""
        self._stand_ins += (float(not held) - self._stand_ins) / RECENT_ARRIVALS
        if not held:
            if len(self._without_column) >= COUNTED_WORKLOADS:
                self._without_column.clear()
            self._without_column[workload] += 1

    def with_column_for(self, workload: Workload, columns: int) -> set[Workload] | None:
        """The workloads of the next tables, where this one without a column belongs into them; now they have so many
        columns."""
        seen = self._without_column[workload]
        recurs = seen >= RECURS_FROM and seen.bit_count() == 1
        if not recurs and len(self._without_column) + columns > FEW_COLUMNS:
            return None
        chosen = self.chosen()
        return self._begin_with(chosen) if workload in chosen else None

    def instead_of_sampling(self) -> set[Workload] | None:
        """The workloads of tables where hardly any recent arrival would need a stand-in."""
        recent = [tenant.workload for tenant in self._recent]
        few = MOST_STAND_INS * len(recent) / 2
        distinct = set(recent)
        # where nearly all differ, sorting them takes longer than any decision
        if len(distinct) - max(self._most, len({workload.nf for workload in distinct})) >= few:
            return None
        chosen = self.chosen()
        without = sum(workload not in chosen for workload in recent)
        return self._begin_with(chosen) if without < few else None

    def chosen(self) -> set[Workload]:
        """One workload of each NF, and those of recent arrivals that recur most; all where these are few."""
        counts = Counter(tenant.workload for tenant in (*self._expected, *self._recent))
        often = sorted(counts, key=lambda workload: (-counts[workload], workload))
        found = dict.fromkeys({workload.nf: workload for workload in reversed(often)}.values())
        nfs, few = len(found), len(counts) <= FEW_COLUMNS
        found |= dict.fromkeys(workload for workload in often if few or counts[workload] >= RECURS_FROM)
        return set(list(found)[: max(self._most, nfs)])

    def choose_fewer(self) -> bool:
        """Choose half as many from now on, since their co-locations are too many; False where none is left."""
        self._most //= 2
        return self._most > 0

    def _begin_with(self, chosen: set[Workload]) -> set[Workload]:
        self._without_column.clear()
        self._stand_ins = 0.0
        return chosen
