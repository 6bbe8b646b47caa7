"""NFs of which a core carries 100 kpps alone, and less beside what others carry; on NICs with a slow port."""

from collections.abc import Sequence

from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from profiles import CoLocation, Workload

DEFAULT_CORES = {"a": 2, "b": 1}
CORE_COUNTS = {"a": (1, 2, 4), "b": (1, 2)}
KPPS_PER_CORE = 100.0
LOST_PER_KPPS = 0.0005
PORT_GBPS = 7.0


class LoadedOracle(Oracle):
    """The capacity of each workload beside what the others carry of their rates."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [[_capacity(one, at) for at in range(len(one))] for one in co_locations]


def _capacity(co_location: CoLocation, at: int) -> float:
    others = sum(min(one.rate_kpps, _alone(one)) for other, one in enumerate(co_location) if other != at)
    return _alone(co_location[at]) * max(1.0 - LOST_PER_KPPS * others, 0.01)


def _alone(workload: Workload) -> float:
    return KPPS_PER_CORE * (workload.cores or DEFAULT_CORES[workload.nf])


def loaded_kind(index: int = 0, count: int | None = None, cores: int = 8) -> NicKind:
    """NICs of so many cores, whose port carries some 575 kpps of packets of 1,500 bytes."""
    return NicKind(
        index, f"loaded-{index}", cores, DEFAULT_CORES, count, core_counts=CORE_COUNTS, line_rate_gbps=PORT_GBPS
    )
