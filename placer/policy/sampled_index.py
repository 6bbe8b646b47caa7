"""The sampled index: the NICs of one kind where there are too many workloads to predict all co-locations in advance.

Then hardly two NICs are equal. A decision predicts, in one batch, a few NICs that are likely to fit: those that the
rule prefers by their free cores, and among them those whose tenants are furthest above their SLAs.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from placer.model.feasibility import margin
from placer.model.fleet import Nic, NicKind, Tenant
from placer.model.oracle import Oracle, lowest_by_workload
from placer.policy.rejection import Cause, Reason, Tally
from profiles import Workload

BATCHES = (4, 12)
"""NICs checked first, and those checked when none of them fits, before a new one is opened."""

LAST_RESORT = (64,) * 16
"""NICs checked, batch by batch, before an arrival is rejected."""

STEPS_PER_UNIT = 50
"""How finely NICs are sorted by the margin of their tenants above their SLAs: in steps of 2 %."""

STEPS = 20


class SampledNic:
    """A NIC in the index: its tenants in order of workload with their required throughputs (kpps), its free cores, and
    the margin of its tenants above their SLAs, in steps."""

    __slots__ = ("free", "needs", "nic", "step")

    def __init__(self, nic: Nic) -> None:
        self.nic = nic
        self.free = nic.kind.cores
        self.needs: list[tuple[Workload, float]] = []
        self.step = STEPS


class SampledIndex:
    """NICs of one kind by free cores and by the margin of their tenants above their SLAs.

    Parameters
    ----------
    kind
        The kind.
    oracle
        Predicts the throughputs.
    after
        The rule's weight of the free capacity after an arrival joined: from 0 up the fullest NICs are preferred, else
        the emptiest.
    """

    def __init__(self, kind: NicKind, oracle: Oracle, after: float) -> None:
        self.kind = kind
        self.oracle = oracle
        self.fullest_first = after >= 0
        self._nics: dict[int, SampledNic] = {}
        self._shelves: dict[tuple[int, int], dict[int, SampledNic]] = defaultdict(dict)

    def observe(self, tenant: Tenant) -> None:
        """Nothing changes: this index has no forecast."""

    def renew(self, *, at_once: bool = False) -> None:
        """Nothing changes: this index has no forecast."""

    def covers(self, tenant: Tenant) -> bool:
        """True: nothing is predicted in advance."""
        return True

    def enter(self, nic: Nic) -> None:
        """Add the NIC with all its tenants."""
        sampled = SampledNic(nic)
        for tenant in nic.tenants_by_id.values():
            self._add(sampled, tenant)
        self._shelve(sampled)

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that was placed on the NIC."""
        if nic.number not in self._nics:
            self.enter(nic)
            return
        sampled = self._taken_out(nic.number)
        self._add(sampled, tenant)
        co_location = tuple(workload for workload, _ in sampled.needs)
        above = _smallest_margin(sampled.needs, self.oracle.throughput([co_location])[0])
        sampled.step = int(np.clip(above * STEPS_PER_UNIT, 0, STEPS))
        self._shelve(sampled)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that left the NIC; the others have a larger margin than before."""
        sampled = self._taken_out(nic.number)
        sampled.needs.remove((tenant.workload, self._required(tenant)))
        sampled.free += self.kind.cores_of[tenant.workload.nf]
        sampled.step = max(sampled.step, STEPS // 2)
        if nic.tenants_by_id:
            self._shelve(sampled)

    def close(self, nic: Nic) -> None:
        """Remove the NIC: it takes no more arrivals."""
        if nic.number in self._nics:
            self._taken_out(nic.number)

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers among the few that are checked, with its score; None when none fits."""
        return self._best_of(tenant, BATCHES)

    def last_resort(self, tenant: Tenant) -> Nic | None:
        """A NIC on which every SLA is met, out of many more than `best` checks."""
        found = self._best_of(tenant, LAST_RESORT)
        return None if found is None else found[1]

    def opening_score(self, tenant: Tenant) -> float | None:
        """The score of a new NIC, above any other; None when the SLA of the tenant would not be met there."""
        if not self.kind.hosts(tenant.workload):
            return None
        solo = self.oracle.solo(tenant.workload)
        return 0.0 if tenant.sla.is_met(solo, solo) else None

    def tally(self, tenant: Tenant) -> Tally:
        """How many NICs have too few cores for the tenant; of the others only some were checked."""
        needed = self.kind.cores_of.get(tenant.workload.nf, self.kind.cores + 1)
        short = sum(len(shelf) for (free, _), shelf in self._shelves.items() if free < needed)
        return Tally(len(self._nics), short, None)

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why no NIC takes the tenant, by free cores; of those with enough, a part was checked."""
        needed = self.kind.cores_of.get(tenant.workload.nf)
        for free in range(self.kind.cores + 1):
            nics = sum(len(shelf) for (cores, _), shelf in self._shelves.items() if cores == free)
            if nics:
                short = Cause.NOT_HOSTED if needed is None else Cause.CORES if free < needed else None
                yield Reason(self.kind.model, (), nics, short or Cause.SAMPLED_SLA)

    def _best_of(self, tenant: Tenant, batches: Sequence[int]) -> tuple[float, Nic] | None:
        if not self.kind.hosts(tenant.workload):
            return None
        likely = iter(list(islice(self._likely(self.kind.cores_of[tenant.workload.nf]), sum(batches))))
        for size in batches:
            scored = self._scored(list(islice(likely, size)), tenant)
            if scored:
                score, number = min(scored)
                return score, self._nics[number].nic
        return None

    def _likely(self, cores: int) -> Iterator[SampledNic]:
        order = range(cores, self.kind.cores + 1) if self.fullest_first else range(self.kind.cores, cores - 1, -1)
        for free in order:
            for step in range(STEPS, -1, -1):
                yield from self._shelves.get((free, step), {}).values()

    def _scored(self, candidates: list[SampledNic], tenant: Tenant) -> list[tuple[float, int]]:
        """Scores below 0 of the NICs on which every SLA is met, with their numbers."""
        if not candidates:
            return []
        arriving = tenant.workload, self._required(tenant)
        needs = [sorted([*sampled.needs, arriving]) for sampled in candidates]
        co_locations = [tuple(workload for workload, _ in together) for together in needs]
        answers = self.oracle.throughput([(tenant.workload,), *co_locations])[1:]
        scored = []
        for sampled, together, answer in zip(candidates, needs, answers, strict=True):
            above = _smallest_margin(together, answer)
            if above < 0:
                self._check_later(sampled)
            else:
                left = sampled.free - self.kind.cores_of[tenant.workload.nf] + min(above, 0.99)
                share = left / (self.kind.cores + 1)
                scored.append((share - 1.0 if self.fullest_first else -share, sampled.nic.number))
        return scored

    def _check_later(self, sampled: SampledNic) -> None:
        """Check a NIC that did not fit later the next time."""
        self._taken_out(sampled.nic.number)
        sampled.step //= 2
        self._shelve(sampled)

    def _required(self, tenant: Tenant) -> float:
        return tenant.sla.required_kpps(self.oracle.solo(tenant.workload))

    def _add(self, sampled: SampledNic, tenant: Tenant) -> None:
        insort(sampled.needs, (tenant.workload, self._required(tenant)))
        sampled.free -= self.kind.cores_of[tenant.workload.nf]

    def _shelve(self, sampled: SampledNic) -> None:
        self._nics[sampled.nic.number] = sampled
        self._shelves[sampled.free, sampled.step][sampled.nic.number] = sampled

    def _taken_out(self, number: int) -> SampledNic:
        sampled = self._nics.pop(number)
        del self._shelves[sampled.free, sampled.step][number]
        return sampled


def _smallest_margin(needs: Sequence[tuple[Workload, float]], kpps: Sequence[float]) -> float:
    """The smallest margin of a tenant above what it requires; `kpps` is the throughput of each of `needs`."""
    lowest = lowest_by_workload(tuple(workload for workload, _ in needs), kpps)
    return min(margin(required, lowest[workload]) for workload, required in needs)
