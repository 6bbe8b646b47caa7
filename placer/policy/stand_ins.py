"""Stand-ins: workloads of a table that others are compared by, so that traffic may differ from instance to instance.

A table of co-locations holds a few workloads, and traffic is continuous. An arrival with other traffic than those is
compared as the nearest workload of the same NF. Wherever a stand-in takes part, the NIC that is found is predicted with
the workloads themselves before it is used (`ClassIndex`): a stand-in decides which NICs are tried, and in which order,
not whether an SLA is met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placer.model.nic_kind import NicKind
from profiles import Workload

KEPT_STAND_INS = 100_000


class StandIns:
    """The columns of a table that workloads are compared by.

    `kind`, `workloads`: of the table.
    """

    def __init__(self, kind: NicKind, workloads: Sequence[Workload]) -> None:
        self._kind = kind
        self._workloads = workloads
        self._known: dict[Workload, int | None] = {}

    def column(self, workload: Workload) -> int | None:
        """The column of the nearest workload that takes as many cores; None where no such workload is in the table."""
        if workload not in self._known:
            if len(self._known) >= KEPT_STAND_INS:
                self._known.clear()
            self._known[workload] = self._nearest(workload)
        return self._known[workload]

    def _nearest(self, workload: Workload) -> int | None:
        if not self._kind.hosts(workload):
            return None
        cores, like = self._kind.cores_for, workload.traffic.as_dict()
        found = [
            (other.nf != workload.nf, _distance(like, other.traffic.as_dict()), column)
            for column, other in enumerate(self._workloads)
            if cores(other) == cores(workload)
        ]
        return min(found)[2] if found else None


def _distance(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    """How far two traffic profiles are apart: the sum of the relative differences of their attributes."""
    larger = {name: max(value, right[name]) for name, value in left.items()}
    return sum(abs(left[name] - right[name]) / most for name, most in larger.items() if most)
