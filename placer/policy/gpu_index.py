"""The index of GPUs: so many NFs share one that not all co-locations can be asked for in advance.

What each workload takes alone says roughly how full a GPU is. The GPUs that the rule prefers by that are asked one
after the other, of those with equal tenants one, and the first that admits the arrival beside its tenants takes it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from placer.model.constraints import AllowedNics
from placer.model.gpu_oracle import GpuOracle
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, co_location_of
from placer.policy.rejection import Cause, Reason, Tally
from placer.policy.rules import IndexWithoutTable, Rule
from profiles import CoLocation

MAX_ASKED_GPUS = 24
LAST_RESORT = 1_024  # different GPUs that are asked before an arrival is rejected
FULLER_WEIGHT = 0.01  # weight by which fuller GPUs are preferred where the rule has no preference


class GpuIndex(IndexWithoutTable):
    """The GPUs of one kind in use, by how full they are.

    `rule`: how GPUs are compared. Free capacity is what is left of the scarcest resource.
    """

    def __init__(self, kind: NicKind, oracle: GpuOracle, rule: Rule) -> None:
        self.kind = kind
        self.oracle = oracle
        self.rule = rule
        self._nics: dict[int, Nic] = {}
        self._taken: dict[int, dict[str, float]] = {}
        self._closed: list[Nic] = []
        self.kinds = {kind: None}

    def follow(self, oracle: Oracle) -> None:
        """Nothing changes: what an admission test says is not learnt."""

    def begin_trial(self) -> None:
        """Nothing is remembered."""

    def end_trial(self) -> None:
        """Nothing is forgotten."""

    def enter(self, nic: Nic) -> None:
        """Add the GPU with all its tenants."""
        self.kinds[nic.kind] = None
        self._nics[nic.number] = nic
        taken = self._taken[nic.number] = {}
        for tenant in nic.tenants_by_id.values():
            for name, share in self.oracle.shares(tenant.workload).items():
                taken[name] = taken.get(name, 0.0) + share

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        self.enter(nic)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        if nic.tenants_by_id:
            self.enter(nic)
        else:
            self.close(nic)

    def restrict(self, places: AllowedNics | None) -> None:
        """Close NICs that constraints bar; None takes them up again."""
        for nic in dict.fromkeys(self._closed):
            self.enter(nic)
        self._closed = [nic for nic in (places.barred if places else ()) if self.has(nic)]
        if places is not None and len(self.kinds) > 1:
            self._closed += [nic for nic in self._nics.values() if nic.kind not in places.kinds]
        for nic in dict.fromkeys(self._closed):
            self.close(nic)

    def close(self, nic: Nic) -> None:
        """Remove the GPU: it takes no more arrivals."""
        self._nics.pop(nic.number, None)
        self._taken.pop(nic.number, None)

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The GPU that the rule prefers among the few that are asked, with its score; None when none admits it."""
        return next(self._admitting(tenant, MAX_ASKED_GPUS), None)

    def rank(self, tenant: Tenant, most: int) -> list[tuple[float, Nic]]:
        """GPUs that admit the tenant, of the few that are asked, with their scores; of those with equal tenants one."""
        return [*islice(self._admitting(tenant, MAX_ASKED_GPUS), most)]

    def scores_on(self, tenant: Tenant, nics: Sequence[Nic]) -> list[float]:
        """By the rule, whether they admit the tenant or not."""
        arriving = self.oracle.shares(tenant.workload)
        known = (self._taken.get(nic.number) for nic in nics)
        return [math.inf if taken is None else self._score(taken, arriving) for taken in known]

    def most_free(self) -> int:
        """All: the admission test says what fits."""
        return self.kind.cores

    def last_resort(self, tenant: Tenant) -> Nic | None:
        """A GPU that admits the tenant, out of many more than `best` asks."""
        return next((nic for _, nic in self._admitting(tenant, LAST_RESORT)), None)

    def opening_score(self, tenant: Tenant) -> float | None:
        """The score of a new GPU, above any other; None when the tenant would not be admitted there."""
        return math.inf if self._keeps(tenant, (tenant.workload,)) else None

    def tally(self, tenant: Tenant) -> Tally:
        """How many GPUs have no worker left; of the others only some were asked."""
        return Tally(len(self._nics), sum(map(self._is_full, self._nics.values())), None)

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why no GPU takes the tenant: no worker left, or rejected where it was asked."""
        for cause, nics in Counter(map(self._cause_on, self._nics.values())).items():
            known = cause if tenant.workload.nf in self.kind.cores_of else Cause.NOT_HOSTED
            yield Reason(self.kind.model, (), nics, known)

    def _cause_on(self, nic: Nic) -> Cause:
        return Cause.CORES if self._is_full(nic) else Cause.SAMPLED_SLA

    def _is_full(self, nic: Nic) -> bool:
        return len(nic.tenants_by_id) >= self.kind.cores

    def _admitting(self, tenant: Tenant, most: int) -> Iterator[tuple[float, Nic]]:
        """GPUs that admit the tenant, with their scores, the best first; at most so many are asked."""
        if not self.kind.hosts(tenant.workload):
            return
        arriving = self.oracle.shares(tenant.workload)
        scored = sorted(
            (self._score(taken, arriving), number)
            for number, taken in self._taken.items()
            if not self._is_full(self._nics[number])
        )
        asked: set[CoLocation] = set()
        for score, number in scored:
            nic = self._nics[number]
            joined = co_location_of((*(member.workload for member in nic.tenants_by_id.values()), tenant.workload))
            if joined in asked:
                continue
            asked.add(joined)
            if self._keeps(tenant, joined):
                yield score, nic
            if len(asked) == most:
                return

    def _keeps(self, tenant: Tenant, co_location: CoLocation) -> bool:
        """Whether all of the co-location are admitted, and the tenant has the throughput of its SLA."""
        if not self.kind.hosts(tenant.workload) or min(self.oracle.throughput([co_location])[0]) == 0:
            return False
        solo = self.oracle.solo(tenant.workload)
        return tenant.is_met(self.oracle.by_workload(co_location)[tenant.workload], solo)

    def _score(self, taken: Mapping[str, float], arriving: Mapping[str, float]) -> float:
        """What the rule makes of a GPU whose resources are taken to these shares."""
        now = 1.0 - max(taken.values(), default=0.0)
        then = 1.0 - max(taken.get(name, 0.0) + share for name, share in arriving.items())
        after = self.rule.after + (FULLER_WEIGHT if self.rule.forecasts else 0.0)
        return (self.rule.before * now + after * then) * self.kind.cost
