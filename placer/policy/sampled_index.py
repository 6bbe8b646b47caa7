"""The sampled index: the NICs of one kind where there are too many workloads to predict all co-locations in advance.

Then hardly two NICs are equal. A rough estimate of interference says what margin every NIC would have left after an
arrival; the NICs that the rule prefers by this estimate are predicted in one batch, and the best of those that keep
every SLA takes the arrival. What a prediction shows about a NIC that did not fit is remembered for the NF.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from placer.model.fleet import Nic, NicKind, Tenant
from placer.model.oracle import Oracle, lowest_by_workload
from placer.policy.interference import Interference
from placer.policy.kernels import preferred_nics
from placer.policy.rejection import Cause, Reason, Tally
from placer.policy.rules import Rule
from profiles import Workload

BATCHES = (6, 18)
"""NICs checked first, and those checked when none of them fits, before a new one is opened."""

LAST_RESORT = 1_024
"""NICs checked before an arrival is rejected."""

LEARNED = 4
"""Predictions of a batch from which interference is learned."""

LEAST_SLACK = -0.1
"""Estimated margins below this are not worth a prediction, unless the arrival would be rejected."""

FULLER = 0.01
"""Weight by which NICs with less free capacity are preferred among those that lose equally much."""

NOBODY = 10.0
"""The margin of a NIC without tenants, in logarithms of throughput."""

FIRST_SIZE = 256


class SampledNic:
    """A NIC in the index: its place in the arrays, and the workload, the required throughput (kpps) and the margin (in
    logarithms) of each tenant by id."""

    __slots__ = ("nic", "place", "tenants")

    def __init__(self, nic: Nic, place: int) -> None:
        self.nic = nic
        self.place = place
        self.tenants: dict[str, tuple[Workload, float, float]] = {}


class SampledIndex:
    """NICs of one kind by free cores and by the estimated margins of their tenants above their SLAs.

    Parameters
    ----------
    kind
        The kind.
    oracle
        Predicts the throughputs.
    rule
        How NICs are compared. The value of free capacity is the number of NFs that still fit, by cores and by margin.
    """

    def __init__(self, kind: NicKind, oracle: Oracle, rule: Rule) -> None:
        self.kind = kind
        self.oracle = oracle
        self.rule = rule
        self.interference = Interference(kind)
        self._nics: dict[int, SampledNic] = {}
        self._vacant: list[int] = []
        self._used = 0
        self._number = np.full(FIRST_SIZE, -1, dtype=np.int64)
        self._free = np.zeros(FIRST_SIZE, dtype=np.int64)
        self._margin = np.zeros(FIRST_SIZE)
        nfs = len(self.interference.number_of)
        self._left = np.zeros((nfs, FIRST_SIZE))
        self._own = np.zeros((nfs, FIRST_SIZE))
        cores = [cores for cores in kind.cores_of.values() if 0 < cores <= kind.cores]
        self._mean_cores = sum(cores) / len(cores) if cores else 1.0

    def observe(self, tenant: Tenant) -> None:
        """Nothing changes: this index has no forecast."""

    def renew(self, *, at_once: bool = False) -> None:
        """Nothing changes: this index has no forecast."""

    def covers(self, tenant: Tenant) -> bool:
        """True: nothing is predicted in advance."""
        return True

    def close_with(self, arrivals: int) -> None:
        """Nothing changes: NICs are filled one after the other anyway."""

    def enter(self, nic: Nic) -> None:
        """Add the NIC with all its tenants, whose margins are estimated."""
        sampled = SampledNic(nic, self._new_place())
        self._nics[nic.number] = sampled
        nfs = [self._nf(tenant.workload) for tenant in nic.tenants_by_id.values()]
        for nf, tenant in zip(nfs, nic.tenants_by_id.values(), strict=True):
            lost = float(self.interference.loss[nf, nfs].sum() - self.interference.loss[nf, nf])
            required = self._required(tenant)
            sampled.tenants[tenant.id] = tenant.workload, required, self._margin_of(self._solo(tenant), required) - lost
        self._estimate(sampled)

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that was placed on the NIC; the margins of all are known by now."""
        sampled = self._nics.get(nic.number)
        if sampled is None:
            self.enter(nic)
            sampled = self._nics[nic.number]
        sampled.tenants[tenant.id] = tenant.workload, self._required(tenant), 0.0
        co_location = tuple(sorted(workload for workload, *_ in sampled.tenants.values()))
        lowest = lowest_by_workload(co_location, self.oracle.throughput([co_location])[0])
        for identity, (workload, required, _) in sampled.tenants.items():
            sampled.tenants[identity] = workload, required, self._margin_of(lowest[workload], required)
        self._estimate(sampled)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that left the NIC; the others have an estimated larger margin than before."""
        sampled = self._nics[nic.number]
        del sampled.tenants[tenant.id]
        if not sampled.tenants:
            self._take_out(sampled)
            return
        gone = self._nf(tenant.workload)
        for identity, (workload, required, margin) in sampled.tenants.items():
            gained = float(self.interference.loss[self._nf(workload), gone])
            alone = self._margin_of(self.oracle.solo(workload), required)
            sampled.tenants[identity] = workload, required, min(margin + gained, alone)
        self._estimate(sampled)

    def close(self, nic: Nic) -> None:
        """Remove the NIC: it takes no more arrivals."""
        if nic.number in self._nics:
            self._take_out(self._nics[nic.number])

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers among the few that are checked, with its score; None when none fits."""
        return self._best_of(tenant, BATCHES, LEAST_SLACK)

    def last_resort(self, tenant: Tenant) -> Nic | None:
        """A NIC on which every SLA is met, out of many more than `best` checks."""
        found = self._best_of(tenant, (LAST_RESORT,), -math.inf)
        return None if found is None else found[1]

    def opening_score(self, tenant: Tenant) -> float | None:
        """The score of a new NIC, above any other; None when the SLA of the tenant would not be met there."""
        if not self.kind.hosts(tenant.workload):
            return None
        solo = self._solo(tenant)
        return math.inf if tenant.sla.is_met(solo, solo) else None

    def tally(self, tenant: Tenant) -> Tally:
        """How many NICs have too few cores for the tenant; of the others only some were checked."""
        needed = self.kind.cores_of.get(tenant.workload.nf, self.kind.cores + 1)
        used = self._number[: self._used] >= 0
        return Tally(len(self._nics), int((self._free[: self._used][used] < needed).sum()), None)

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why no NIC takes the tenant, by free cores; of those with enough, a part was checked."""
        needed = self.kind.cores_of.get(tenant.workload.nf)
        used = self._number[: self._used] >= 0
        for free, nics in zip(*np.unique(self._free[: self._used][used], return_counts=True), strict=True):
            short = Cause.NOT_HOSTED if needed is None else Cause.CORES if free < needed else None
            yield Reason(self.kind.model, (), int(nics), short or Cause.SAMPLED_SLA)

    def _best_of(self, tenant: Tenant, batches: Sequence[int], least_slack: float) -> tuple[float, Nic] | None:
        if not self.kind.hosts(tenant.workload) or not self._nics:
            return None
        nf, drop = self._nf(tenant.workload), tenant.sla.max_drop
        # an accepted drop is a margin whatever the throughput alone, which is then asked for together with the NICs
        accepted = self._margin_of(1.0, 1.0 - drop) if drop is not None else self._alone(tenant)
        places = preferred_nics(
            self._number[: self._used], self._free, self._margin, self._left[nf], self._own[nf], accepted, least_slack,
            self.kind.cores_of[tenant.workload.nf], self._weights(), sum(batches),
        )  # fmt: skip
        first = 0
        for size in batches:
            scored = self._scored(places[first : first + size].tolist(), tenant)
            first += size
            if scored:
                score, number = min(scored)
                return score, self._nics[number].nic
        return None

    def _scored(self, places: Sequence[int], tenant: Tenant) -> list[tuple[float, int]]:
        """The scores of the NICs on which every SLA is met, with their numbers."""
        candidates = [self._nics[int(self._number[place])] for place in places]
        co_locations = [
            tuple(sorted((tenant.workload, *(workload for workload, *_ in sampled.tenants.values()))))
            for sampled in candidates
        ]
        nf, scored = self._nf(tenant.workload), []
        if not candidates:
            return []
        answers = self.oracle.throughput([*co_locations, (tenant.workload,)])[:-1]
        required = self._required(tenant)
        for co_location, answer in zip(co_locations[:LEARNED], answers, strict=False):
            logs = [
                math.log(max(kpps, 1e-9) / self.oracle.solo(one)) for one, kpps in zip(co_location, answer, strict=True)
            ]
            self.interference.learn([self._nf(workload) for workload in co_location], logs)
        for sampled, co_location, answer in zip(candidates, co_locations, answers, strict=True):
            lowest, place = lowest_by_workload(co_location, answer), sampled.place
            left = min(self._margin_of(lowest[workload], needed) for workload, needed, _ in sampled.tenants.values())
            own = self._margin_of(lowest[tenant.workload], required)
            self._left[nf, place] = left
            self._own[nf, place] = own - self._alone(tenant)
            kept = all(lowest[workload] >= needed for workload, needed, _ in sampled.tenants.values())
            if kept and lowest[tenant.workload] >= required:
                per_core, per_margin, before, after = self._weights()
                now = min(float(self._free[place]) * per_core, self._margin[place] * per_margin)
                free = float(self._free[place]) - self.kind.cores_of[tenant.workload.nf]
                then = min(free * per_core, min(left, own) * per_margin)
                share = (before * now + after * then) * self._mean_cores / self.kind.cores
                scored.append((share * self.kind.cost, sampled.nic.number))
        return scored

    def _weights(self) -> tuple[float, float, float, float]:
        """NFs per free core, NFs per margin, and the weights of their number before and after an arrival."""
        after = self.rule.after + (FULLER if self.rule.forecasts else 0.0)
        return 1.0 / self._mean_cores, 1.0 / float(self.interference.loss.mean()), self.rule.before, after

    def _nf(self, workload: Workload) -> int:
        return self.interference.number_of[workload.nf]

    def _solo(self, tenant: Tenant) -> float:
        return self.oracle.solo(tenant.workload)

    def _required(self, tenant: Tenant) -> float:
        return tenant.sla.required_kpps(self._solo(tenant))

    def _alone(self, tenant: Tenant) -> float:
        """The margin of the tenant alone on the NIC, in logarithms."""
        return self._margin_of(self._solo(tenant), self._required(tenant))

    def _margin_of(self, kpps: float, required: float) -> float:
        """How far a throughput is above the required one, in logarithms."""
        return math.log(max(kpps, 1e-9) / required) if required > 0 else NOBODY

    def _estimate(self, sampled: SampledNic) -> None:
        """Estimate the margins that an arrival of each NF would leave on the NIC."""
        loss, place = self.interference.loss, sampled.place
        nfs = [self._nf(workload) for workload, *_ in sampled.tenants.values()]
        margins = np.array([margin for *_, margin in sampled.tenants.values()])
        self._number[place] = sampled.nic.number
        self._free[place] = self.kind.cores - self.kind.cores_taken(w for w, *_ in sampled.tenants.values())
        self._margin[place] = margins.min(initial=NOBODY)
        self._left[:, place] = (margins[:, None] - loss[nfs]).min(axis=0, initial=NOBODY)
        self._own[:, place] = -loss[:, nfs].sum(axis=1)

    def _take_out(self, sampled: SampledNic) -> None:
        del self._nics[sampled.nic.number]
        self._number[sampled.place] = -1
        self._vacant.append(sampled.place)

    def _new_place(self) -> int:
        if self._vacant:
            return self._vacant.pop()
        if self._used == len(self._number):
            self._number = np.concatenate([self._number, np.full_like(self._number, -1)])
            self._free, self._margin = (np.concatenate([one, np.zeros_like(one)]) for one in (self._free, self._margin))
            self._left, self._own = (
                np.concatenate([one, np.zeros_like(one)], axis=1) for one in (self._left, self._own)
            )
        self._used += 1
        return self._used - 1
