"""A NIC of four cores with two NFs, in which every price can be computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

from placer.model.fleet import NicKind
from placer.model.oracle import Oracle
from placer.policy.pattern_table import PatternTable
from profiles import CoLocation, TrafficProfile, Workload

BIG, SMALL = (Workload(nf, TrafficProfile(1, 64)) for nf in ("big", "small"))
KIND = NicKind(0, "toy", 4, {"big": 3, "small": 1})


class SmallSlowsSmall(Oracle):
    """No contention, except that small NFs lose 20 % where they share a NIC."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [
            [80.0 if w == SMALL and co_location.count(SMALL) > 1 else 100.0 for w in co_location]
            for co_location in co_locations
        ]


TABLE = PatternTable(KIND, [BIG, SMALL], SmallSlowsSmall())
