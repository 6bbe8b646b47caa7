"""The sampled index: the NICs of one kind where there are too many workloads to predict all co-locations in advance.

Then hardly two NICs are equal. A rough estimate of interference says what margin every NIC would have left after an
arrival; the NICs that the rule prefers by this estimate are predicted in one batch, and the best of those that keep
every SLA takes the arrival. What a prediction shows about a NIC that did not fit is remembered for the NF.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placer.model.fleet import Nic, NicKind, Tenant
from placer.model.oracle import Oracle, lowest_by_workload
from placer.policy.kernels import learn_losses, preferred_nics, write_margins
from placer.policy.rejection import Cause, Reason, Tally
from placer.policy.rules import Rule
from profiles import CoLocation, Workload
from profiles.arrays import Floats

NICS_PER_BATCH = (6, 18)
"""NICs checked first, and those checked when none of them fits, before a new one is opened."""

LAST_RESORT = 256
"""NICs checked before an arrival is rejected: some 20 ms of predictions."""

LEARNED_PREDICTIONS = 4
"""Predictions of a batch from which interference is learned."""

LEAST_SLACK = -0.1
"""Estimated margins below this are not worth a prediction, unless the arrival would be rejected."""

FULLER_WEIGHT = 0.01
"""Weight by which NICs with less free capacity are preferred among those that lose equally much."""

EMPTY_MARGIN = 10.0
"""The margin of a NIC without tenants, in logarithms of throughput."""

FIRST_SIZE = 256

KEPT_SOLO = 100_000
"""Workloads whose throughput alone is remembered until the oracle answers otherwise."""


def margin_of(kpps: float, required: float) -> float:
    """How far a throughput is above the required one, in logarithms."""
    return math.log(max(kpps, 1e-9) / required) if required > 0 else EMPTY_MARGIN


class SampledTenant(NamedTuple):
    """A tenant in the index: its throughput alone, the one that it requires (kpps), and its margin in logarithms."""

    workload: Workload
    solo: float
    required: float
    margin: float


class SampledNic:
    """A NIC in the index: its place in the arrays, its tenants by id, and their co-location."""

    __slots__ = ("co_location", "nic", "place", "tenants")

    def __init__(self, nic: Nic, place: int) -> None:
        self.nic = nic
        self.place = place
        self.tenants: dict[str, SampledTenant] = {}
        self.co_location: CoLocation = ()

    def copy_from(self, other: SampledNic) -> None:
        """Take over the tenants of another."""
        self.tenants, self.co_location = dict(other.tenants), other.co_location

    def co_location_with(self, workload: Workload) -> CoLocation:
        at = bisect(self.co_location, workload)
        return (*self.co_location[:at], workload, *self.co_location[at:])

    def lowest_margin(self, lowest: Mapping[Workload, float]) -> float:
        """The smallest margin of its tenants at these throughputs (kpps) by workload."""
        return min(margin_of(lowest[tenant.workload], tenant.required) for tenant in self.tenants.values())


class SamplingTrial(NamedTuple):
    """What `SampledIndex.end_trial` sets back: free places, and every NIC that was changed as it was before; None for
    one that was not there."""

    vacant: list[int]
    used: int
    nics: dict[int, tuple[SampledNic, SampledNic, tuple[int, float, float], tuple[Floats, Floats]] | None]


class SampledIndex:
    """NICs of one kind by free cores and by the estimated margins of their tenants above their SLAs.

    `rule`: how NICs are compared. The value of free capacity is the number of NFs that still fit, by cores and by
    margin.
    """

    def __init__(self, kind: NicKind, oracle: Oracle, rule: Rule) -> None:
        self.kind = kind
        self.oracle = oracle
        self.rule = rule
        self.interference = Interference(kind)
        self._nics: dict[int, SampledNic] = {}
        self._vacant: list[int] = []
        self._used = 0
        self._solo_of: tuple[int, dict[Workload, float]] | None = None
        self._trial: SamplingTrial | None = None
        self._number = np.full(FIRST_SIZE, -1, dtype=np.int64)
        self._free = np.full(FIRST_SIZE, -1.0)
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

    @property
    def renewing(self) -> bool:
        """False: nothing is renewed."""
        return False

    def settle(self) -> None:
        """Nothing changes."""

    def follow(self, oracle: Oracle) -> None:
        """Ask this oracle from now on."""
        self.oracle, self._solo_of = oracle, None

    def refresh(self) -> None:
        """Nothing is remembered."""

    def has(self, nic: Nic) -> bool:
        return nic.number in self._nics

    def begin_trial(self) -> None:
        """NICs are changed from here on only to be changed back before `end_trial`."""
        self._trial = SamplingTrial([*self._vacant], self._used, {})

    def end_trial(self) -> None:
        """Set back what was estimated; a NIC that is back has only the estimated margins of its departures."""
        trial, self._trial = self._trial, None
        if trial is None:
            return
        for number, before in trial.nics.items():
            if before is None:
                if number in self._nics:
                    self._take_out(self._nics[number])
            else:
                sampled, place = before[0], before[0].place
                self._nics[number] = sampled
                sampled.copy_from(before[1])
                self._number[place], self._free[place], self._margin[place] = before[2]
                self._left[:, place], self._own[:, place] = before[3]
        self._vacant, self._used = trial.vacant, trial.used

    def _note_before(self, number: int) -> None:
        """Keep how a NIC was before the first change in a trial."""
        if self._trial is None or number in self._trial.nics:
            return
        sampled = self._nics.get(number)
        if sampled is None:
            self._trial.nics[number] = None
            return
        place, copied = sampled.place, SampledNic(sampled.nic, sampled.place)
        copied.copy_from(sampled)
        row = int(self._number[place]), float(self._free[place]), float(self._margin[place])
        columns = self._left[:, place].copy(), self._own[:, place].copy()
        self._trial.nics[number] = sampled, copied, row, columns

    def covers(self, tenant: Tenant) -> bool:
        """True: nothing is predicted in advance."""
        return True

    def holds(self, tenant: Tenant) -> bool:
        """True: nothing is predicted in advance."""
        return True

    def close_with(self, arrivals: int) -> bool:
        """False: nothing changes, NICs are filled one after the other anyway."""
        return False

    def enter(self, nic: Nic) -> None:
        """Add the NIC with all its tenants, whose margins are estimated."""
        self._note_before(nic.number)
        sampled = SampledNic(nic, self._new_place())
        self._nics[nic.number] = sampled
        nfs = [self._nf(tenant.workload) for tenant in nic.tenants_by_id.values()]
        for nf, tenant in zip(nfs, nic.tenants_by_id.values(), strict=True):
            lost = float(self.interference.loss[nf, nfs].sum() - self.interference.loss[nf, nf])
            entered = self._sample(tenant)
            sampled.tenants[tenant.id] = entered._replace(margin=entered.margin - lost)
        sampled.co_location = nic.co_location
        self._estimate(sampled)

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that was placed on the NIC; the margins of all are known by now."""
        self._note_before(nic.number)
        sampled = self._nics.get(nic.number)
        if sampled is None:
            self.enter(nic)
            sampled = self._nics[nic.number]
        if tenant.id not in sampled.tenants:
            sampled.tenants[tenant.id] = self._sample(tenant)
            sampled.co_location = sampled.co_location_with(tenant.workload)
        lowest = lowest_by_workload(sampled.co_location, self.oracle.throughput([sampled.co_location])[0])
        for identity, one in sampled.tenants.items():
            sampled.tenants[identity] = one._replace(margin=margin_of(lowest[one.workload], one.required))
        self._estimate(sampled)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that left the NIC; the others have an estimated larger margin than before."""
        self._note_before(nic.number)
        sampled = self._nics[nic.number]
        del sampled.tenants[tenant.id]
        if not sampled.tenants:
            self._take_out(sampled)
            return
        gone = self._nf(tenant.workload)
        for identity, one in sampled.tenants.items():
            gained = float(self.interference.loss[self._nf(one.workload), gone])
            alone = margin_of(one.solo, one.required)
            sampled.tenants[identity] = one._replace(margin=min(one.margin + gained, alone))
        sampled.co_location = tuple(sorted(tenant.workload for tenant in sampled.tenants.values()))
        self._estimate(sampled)

    def close(self, nic: Nic) -> None:
        """Remove the NIC: it takes no more arrivals."""
        if nic.number in self._nics:
            self._note_before(nic.number)
            self._take_out(self._nics[nic.number])

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers among the few that are checked, with its score; None when none fits."""
        return next(iter(self._scored(tenant, NICS_PER_BATCH, LEAST_SLACK)), None)

    def rank(self, tenant: Tenant, most: int) -> list[tuple[float, Nic]]:
        """Scores and NICs that take the tenant, of the few that are checked; nothing is learnt by asking."""
        return self._scored(tenant, NICS_PER_BATCH, LEAST_SLACK, most, learns=False)

    def scores_on(self, tenant: Tenant, nics: Sequence[Nic]) -> list[float]:
        """By the rule, as predicted; nothing is learnt by asking."""
        places = [self._nics[nic.number].place for nic in nics if nic.number in self._nics]
        scored = {number: score for score, number in self._score_places(places, tenant, learns=False)}
        return [scored.get(nic.number, math.inf) for nic in nics]

    def most_free(self) -> int:
        """The most cores that are free on one NIC; 0 without a NIC."""
        return int(self._free[: self._used].max(initial=0))

    def last_resort(self, tenant: Tenant) -> Nic | None:
        """A NIC on which every SLA is met, out of many more than `best` checks."""
        found = self._scored(tenant, (LAST_RESORT,), -math.inf)
        return found[0][1] if found else None

    def opening_score(self, tenant: Tenant) -> float | None:
        """The score of a new NIC, above any other; None when the SLA of the tenant would not be met there."""
        if not self.kind.hosts(tenant.workload):
            return None
        solo = self._solo(tenant)
        return math.inf if tenant.is_met(solo, solo) else None

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

    def _scored(
        self, tenant: Tenant, batches: Sequence[int], least_slack: float, most: int = 1, *, learns: bool = True
    ) -> list[tuple[float, Nic]]:
        """At most so many NICs that take the tenant, with their scores, the best of the first batch first."""
        if not self.kind.hosts(tenant.workload) or not self._nics:
            return []
        nf, drop = self._nf(tenant.workload), tenant.sla.max_drop
        # an accepted drop is a margin whatever the throughput alone, which is then asked for together with the NICs
        accepted = margin_of(1.0, 1.0 - drop) if drop is not None else self._sample(tenant).margin
        places = preferred_nics(
            self._number[: self._used], self._free, self._margin, self._left[nf], self._own[nf], accepted, least_slack,
            float(self.kind.cores_for(tenant.workload)), self._weights(), sum(batches),
        )  # fmt: skip
        first, found = 0, list[tuple[float, Nic]]()
        for size in batches:
            scored = sorted(self._score_places(places[first : first + size].tolist(), tenant, learns=learns))
            first += size
            found += [(score, self._nics[number].nic) for score, number in scored]
            if len(found) >= most:
                break
        return found[:most]

    def _score_places(self, places: Sequence[int], tenant: Tenant, *, learns: bool) -> list[tuple[float, int]]:
        """The scores of the NICs on which every SLA is met, with their numbers."""
        if not places:
            return []
        candidates = [self._nics[int(self._number[place])] for place in places]
        co_locations = [sampled.co_location_with(tenant.workload) for sampled in candidates]
        # the throughput alone of the arrival is asked for together with the NICs
        answers = self.oracle.throughput([*co_locations, (tenant.workload,)])[:-1]
        arriving, nf = self._sample(tenant), self._nf(tenant.workload)
        learnt = candidates[:LEARNED_PREDICTIONS] if learns else ()
        for sampled, co_location, answer in zip(learnt, co_locations, answers, strict=False):
            self._learn([*sampled.tenants.values(), arriving], co_location, answer)
        scored, weights = [], self._weights()
        for sampled, co_location, answer in zip(candidates, co_locations, answers, strict=True):
            lowest, place = lowest_by_workload(co_location, answer), sampled.place
            left, own = sampled.lowest_margin(lowest), margin_of(lowest[tenant.workload], arriving.required)
            if learns:
                self._left[nf, place], self._own[nf, place] = left, own - arriving.margin
            if lowest[tenant.workload] >= arriving.required and all(
                lowest[tenant.workload] >= tenant.required for tenant in sampled.tenants.values()
            ):
                scored.append((self._score(place, tenant.workload, min(left, own), weights), sampled.nic.number))
        return scored

    def _learn(self, tenants: Sequence[SampledTenant], co_location: CoLocation, answer: Sequence[float]) -> None:
        """Correct the estimate of interference by the throughputs (kpps) of a co-location of these tenants.

        Nothing is learned where one misses the latency that it is promised: its throughput counts as 0.
        """
        if any(kpps == 0 and one.latency_us < math.inf for one, kpps in zip(co_location, answer, strict=True)):
            return
        solo = {tenant.workload: tenant.solo for tenant in tenants}
        logs = [math.log(max(kpps, 1e-9) / solo[one]) for one, kpps in zip(co_location, answer, strict=True)]
        self.interference.learn([self._nf(workload) for workload in co_location], logs)

    def _score(self, place: int, arriving: Workload, margin: float, weights: tuple[float, ...]) -> float:
        """What the rule makes of a NIC on which all margins would be at least `margin`."""
        per_core, per_margin, before, after = weights
        free = float(self._free[place])
        now = min(free * per_core, float(self._margin[place]) * per_margin)
        then = min((free - self.kind.cores_for(arriving)) * per_core, margin * per_margin)
        return (before * now + after * then) * self._mean_cores / self.kind.cores * self.kind.cost

    def _weights(self) -> tuple[float, float, float, float]:
        """NFs per free core, NFs per margin, and the weights of their number before and after an arrival."""
        after = self.rule.after + (FULLER_WEIGHT if self.rule.forecasts else 0.0)
        return 1.0 / self._mean_cores, 1.0 / float(self.interference.loss.mean()), self.rule.before, after

    def _nf(self, workload: Workload) -> int:
        return self.interference.number_of[workload.nf]

    def _solo(self, tenant: Tenant) -> float:
        if self._solo_of is None or self._solo_of[0] != self.oracle.revision or len(self._solo_of[1]) > KEPT_SOLO:
            self._solo_of = self.oracle.revision, {}
        found = self._solo_of[1].get(tenant.workload)
        if found is None:
            found = self._solo_of[1][tenant.workload] = self.oracle.solo(tenant.workload)
        return found

    def _sample(self, tenant: Tenant) -> SampledTenant:
        """The tenant as it would be alone on the NIC."""
        solo = self._solo(tenant)
        required = tenant.required_kpps(solo)
        return SampledTenant(tenant.workload, solo, required, margin_of(solo, required))

    def _estimate(self, sampled: SampledNic) -> None:
        """Estimate the margins that an arrival of each NF would leave on the NIC."""
        place, tenants = sampled.place, sampled.tenants.values()
        margins = [tenant.margin for tenant in tenants]
        self._number[place] = sampled.nic.number
        self._free[place] = self.kind.cores - self.kind.cores_taken(sampled.co_location)
        self._margin[place] = min(margins, default=EMPTY_MARGIN)
        self._left[:, place], self._own[:, place] = EMPTY_MARGIN, 0.0
        nfs = np.array([self._nf(tenant.workload) for tenant in tenants], dtype=np.int64)
        write_margins(self.interference.loss, nfs, np.array(margins), self._left[:, place], self._own[:, place])

    def _take_out(self, sampled: SampledNic) -> None:
        del self._nics[sampled.nic.number]
        self._number[sampled.place] = self._free[sampled.place] = -1
        self._vacant.append(sampled.place)

    def _new_place(self) -> int:
        if self._vacant:
            return self._vacant.pop()
        if self._used == len(self._number):
            self._number, self._free = (
                np.concatenate([array, np.full_like(array, -1)]) for array in (self._number, self._free)
            )
            self._margin = np.concatenate([self._margin, np.zeros_like(self._margin)])
            self._left, self._own = (
                np.concatenate([array, np.zeros_like(array)], axis=1) for array in (self._left, self._own)
            )
        self._used += 1
        return self._used - 1


# A rough estimate of interference between NFs, learned from predictions, to decide which NICs are worth checking.
#
# The logarithm of an NF's throughput share is taken to fall by a constant for every neighbour, per pair of NFs and
# whatever their traffic. The constants follow the answers of the oracle by normalised least mean squares (Widrow and
# Hoff, "Adaptive switching circuits", IRE WESCON 1960). They only rank NICs: no tenant is placed without a prediction.


FIRST_LOSS = 0.05
"""Loss per neighbour before anything is known, in logarithms of throughput."""

LEARNING_RATE = 0.1
"""Share of an error that is corrected at once."""

LEAST_LOSS = 1e-3


class Interference:
    """What each NF loses next to each other one, in logarithms of throughput.

    `loss`: loss of the NF in the row per neighbour in the column.
    """

    def __init__(self, kind: NicKind) -> None:
        self.number_of = {nf: number for number, nf in enumerate(sorted(kind.cores_of))}
        self.loss: Floats = np.full((len(self.number_of), len(self.number_of)), FIRST_LOSS)

    def learn(self, nfs: Sequence[int], logs: Sequence[float]) -> None:
        """Correct the losses by the logarithm of the throughput share of each NF of one co-location."""
        learn_losses(self.loss, np.array(nfs), np.array(logs), LEARNING_RATE, LEAST_LOSS)
