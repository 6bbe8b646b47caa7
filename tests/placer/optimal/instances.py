"""Small instances with simple oracles, and a checker of plans that is independent of all solvers."""

from collections.abc import Mapping, Sequence

import numpy as np

from placer.model.catalogue import Catalogue
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.sla import Sla
from placer.optimal import Optimum
from profiles import CoLocation, TrafficProfile, Workload

TRAFFIC = TrafficProfile(16000, 1500, 600)


def workload(nf: str) -> Workload:
    """The NF under the traffic that all tests use."""
    return Workload(nf, TRAFFIC)


def tenant(identity: str, nf: str, *, drop: float | None = None, kpps: float | None = None) -> Tenant:
    """A tenant with one of the two kinds of SLA."""
    return Tenant(identity, workload(nf), Sla(max_drop=drop, min_kpps=kpps))


class WithoutModels(Catalogue):
    """Kinds of NIC alone, with which an optimum begins with the online rules where instances have rates."""

    def __init__(self, kinds: Sequence[NicKind]) -> None:
        super().__init__(tuple(kinds), (), ())

    def predictors(self) -> list[str]:
        return []


class TableOracle(Oracle):
    """Throughputs from a table of co-locations, written as NF names in order; `alone` for NFs in all others."""

    def __init__(self, table: Mapping[str, Sequence[float]], alone: float = 100.0) -> None:
        super().__init__()
        self.table = table
        self.alone = alone

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [
            self.table.get(" ".join(workload.nf for workload in co_location), [self.alone] * len(co_location))
            for co_location in co_locations
        ]


class ErraticOracle(Oracle):
    """Coarse random throughputs from a seed and the co-location: a departure may well slow down the others."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [self._answer([workload.nf for workload in co_location]) for co_location in co_locations]

    def _answer(self, names: list[str]) -> list[float]:
        random = np.random.default_rng([self.seed, *" ".join(names).encode()])
        rates = {nf: float(random.integers(0, 6)) * 10.0 + 60.0 for nf in dict.fromkeys(names)}
        return [rates[nf] for nf in names]


class CrowdingOracle(Oracle):
    """Every NF slows down every other NF: a departure never slows down the others."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [self._answer([workload.nf for workload in co_location]) for co_location in co_locations]

    def _answer(self, names: list[str]) -> list[float]:
        return [
            100.0 - sum(self._taken(nf, other) for j, other in enumerate(names) if i != j) for i, nf in enumerate(names)
        ]

    def _taken(self, by: str, other: str) -> float:
        return float(np.random.default_rng([self.seed, *f"{by} {other}".encode()]).integers(0, 5)) * 5.0


def faults_of(
    optimum: Optimum, tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]
) -> list[str]:
    """Everything that is wrong with a plan, from tenants, kinds and oracles alone."""
    faults = []
    seen = [tenant.id for _, on_nic in optimum.nics for tenant in on_nic] + [tenant.id for tenant in optimum.unplaced]
    if sorted(seen) != sorted(tenant.id for tenant in tenants):
        faults.append("not every tenant is placed or left out exactly once")
    for kind in kinds:
        used = sum(nic is kind for nic, _ in optimum.nics)
        if kind.count is not None and used > kind.count:
            faults.append(f"{used} of {kind.count} {kind.model}")
    for kind, on_nic in optimum.nics:
        if not on_nic or sum(kind.cores_of[tenant.workload.nf] for tenant in on_nic) > kind.cores:
            faults.append("an empty NIC, or too many cores")
        co_location = tuple(sorted(tenant.workload for tenant in on_nic))
        rates = oracles[kind.index].throughput([co_location])[0]
        for tenant in on_nic:
            alone = oracles[kind.index].throughput([(tenant.workload,)])[0][0]
            slowest = min(rate for one, rate in zip(co_location, rates, strict=True) if one == tenant.workload)
            if not tenant.is_met(slowest, alone):
                faults.append(f"{tenant.id} gets {slowest}")
    if abs(optimum.cost - sum(kind.cost for kind, _ in optimum.nics)) > 1e-9:
        faults.append("the cost is not that of the NICs")
    if optimum.lower_bound > optimum.cost + 1e-9 or optimum.nics_lower_bound > len(optimum.nics):
        faults.append("the bound is above the plan")
    return faults
