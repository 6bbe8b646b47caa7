"""The sampled index: the NICs of one kind where there are too many workloads to predict all co-locations in advance.

Then hardly two NICs are equal. What each NF loses beside each other one on average says what margin every NIC would
have left after an arrival. Of those that the rule prefers by this, the margins are estimated from the traffic of their
tenants. In the order of these estimates NICs are checked exactly, and the first on which every SLA is met takes the
arrival. What a check shows about a NIC that did not fit is remembered for the NF.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placer.model.constraints import AllowedNics
from placer.model.fleet import Nic, NicKind, Tenant
from placer.model.oracle import Oracle, lowest_by_workload
from placer.policy.interference import Biases, Interference
from placer.policy.kernels import EMPTY_MARGIN, preferred_nics, rank_roughly, write_margins, write_members
from placer.policy.rejection import Cause, Reason, Tally
from placer.policy.rules import Rule
from profiles import CoLocation, Workload
from profiles.arrays import Floats

COMPARED_NICS = 24
"""NICs of which margins are estimated before a new one is opened."""

CHECKED_NICS = 6
"""NICs of these that are checked at most, where margins are estimated from traffic."""

LEAST_ESTIMATED_SLACK, SAFE_SLACK = -0.005, 0.002
"""NICs with a smaller margin, as estimated from traffic, are not checked, and those with a smaller one last."""

LAST_RESORT = 256
"""NICs checked before an arrival is rejected: some 20 ms of predictions."""

LEAST_SLACK = -0.1
"""Estimated margins below this are not worth a prediction, unless the arrival would be rejected."""

FULLER_WEIGHT = 0.01
"""Weight by which NICs with less free capacity are preferred among those that lose equally much."""

FIRST_SIZE = 16_384
"""NICs there is room for at first, so that no decision waits for a copy; they take memory when they are written."""

NOTHING = np.zeros(0)


def margin_of(kpps: float, required: float) -> float:
    """How far a throughput is above the required one, in logarithms."""
    return math.log(max(kpps, 1e-9) / required) if required > 0 else EMPTY_MARGIN


class SampledTenant(NamedTuple):
    """A tenant in the index: its workload, its throughput alone and the one that it requires (kpps).

    `key`: by which workloads are sorted. `nf`: by number. `row`: as of `CoLocationChecks`. `alone`: its margin when it
    is alone on the NIC, in logarithms.
    """

    id: str
    workload: Workload
    key: tuple[str | float, ...]
    nf: int
    cores: int
    row: int
    solo: float
    required: float
    alone: float


class SampledNic:
    """A NIC in the index: its place in the arrays, and its tenants, sorted by workload."""

    __slots__ = ("nic", "place", "tenants")

    def __init__(self, nic: Nic, place: int) -> None:
        self.nic = nic
        self.place = place
        self.tenants: list[SampledTenant] = []

    @property
    def co_location(self) -> CoLocation:
        return tuple([tenant.workload for tenant in self.tenants])

    def with_tenant(self, tenant: SampledTenant) -> tuple[list[SampledTenant], int]:
        """Its tenants and one more, sorted by workload, and where that is."""
        at = bisect([present.key for present in self.tenants], tenant.key)
        return [*self.tenants[:at], tenant, *self.tenants[at:]], at


class SamplingTrial(NamedTuple):
    """What `SampledIndex.end_trial` sets back: free places, and every NIC that was changed as it was before; None for
    one that was not there."""

    vacant: list[int]
    used: int
    nics: dict[int, tuple[SampledNic, list[SampledTenant], list[NDArray[Any]]] | None]


class Checked(NamedTuple):
    """The margins of tenants on a NIC with an arrival, which was checked there last, and their rough logarithms."""

    nic: int
    arrival: str
    tenants: list[SampledTenant]
    margins: Floats
    rough: Floats


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
        self._trial: SamplingTrial | None = None
        self._closed: list[Nic] = []
        self._among: NDArray[np.int64] | None = None
        self.kinds = {kind: None}
        self._checked: Checked | None = None
        self._checks = oracle.checks
        nfs, cores = len(self.interference.number_of), [cores for cores in kind.all_core_counts if cores > 0]
        width = kind.cores // min(cores, default=kind.cores) + 1
        self._biases = Biases(nfs, width)
        self._number = np.full(FIRST_SIZE, -1, dtype=np.int64)
        self._free = np.full(FIRST_SIZE, -1.0)
        self._gbps = np.zeros(FIRST_SIZE)
        self._margin = np.zeros(FIRST_SIZE)
        self._left = np.zeros((nfs, FIRST_SIZE))
        self._own = np.zeros((nfs, FIRST_SIZE))
        # per tenant: the row of its workload, its NF, and its margin less what is expected roughly
        self._size = np.zeros(FIRST_SIZE, dtype=np.int64)
        self._row = np.zeros((FIRST_SIZE, width), dtype=np.int64)
        self._nf_at = np.zeros((FIRST_SIZE, width), dtype=np.int64)
        self._offset = np.zeros((FIRST_SIZE, width))
        cores = [cores for cores in kind.cores_of.values() if 0 < cores <= kind.cores]
        self._mean_cores = sum(cores) / len(cores) if cores else 1.0
        self._mean_loss = float(self.interference.loss.mean())
        self._weights = self._weigh()

    def observe(self, tenant: Tenant) -> None:
        """There is no forecast; workloads that have left make room, since none is being compared now."""
        if self._checks is not None and self._trial is None:
            self._checked = None
            self._checks.release_rows()

    def rows_in_use(self) -> NDArray[np.int64]:
        """The rows of all tenants, as of `CoLocationChecks`."""
        width = self._row.shape[1]
        sizes = np.where(self._number[: self._used] >= 0, self._size[: self._used], 0)
        rows = self._row[: self._used][np.arange(width) < sizes[:, None]]
        # of NICs with more tenants than have room there
        crowded = [self._nics[int(number)] for number in self._number[: self._used][sizes == width]]
        return np.concatenate([rows, [tenant.row for nic in crowded for tenant in nic.tenants]]).astype(np.int64)

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
        self.oracle = oracle

    def refresh(self) -> None:
        """Nothing is remembered."""

    def has(self, nic: Nic) -> bool:
        return nic.number in self._nics

    def begin_trial(self) -> None:
        """NICs are changed from here on only to be changed back before `end_trial`."""
        self._trial, self._checked = SamplingTrial([*self._vacant], self._used, {}), None

    def end_trial(self) -> None:
        """Set back what was estimated; a NIC that is back has only the estimated margins of its departures."""
        trial, self._trial, self._checked = self._trial, None, None
        if trial is None:
            return
        for number, before in trial.nics.items():
            if before is None:
                if number in self._nics:
                    self._take_out(self._nics[number])
            else:
                sampled, tenants, columns = before
                sampled.tenants = tenants
                self._nics[number] = sampled
                for array, column in zip(self._columns(sampled.place), columns, strict=True):
                    array[...] = column
        self._vacant, self._used = trial.vacant, trial.used

    def _note_before(self, number: int) -> None:
        """Keep how a NIC was before the first change in a trial."""
        if self._trial is None or number in self._trial.nics:
            return
        sampled = self._nics.get(number)
        self._trial.nics[number] = None if sampled is None else (
            sampled, sampled.tenants, [column.copy() for column in self._columns(sampled.place)]
        )  # fmt: skip

    def _columns(self, place: int) -> list[NDArray[Any]]:
        """All that the arrays hold of a place, as views."""
        by_place = self._number, self._free, self._gbps, self._margin, self._size, self._row, self._nf_at, self._offset
        views: list[NDArray[Any]] = [array[place, ...] for array in by_place]
        return [*views, self._left[:, place], self._own[:, place]]

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
        self.kinds[nic.kind] = None
        self._note_before(nic.number)
        self._checked = None
        sampled = self._nics[nic.number] = SampledNic(nic, self._new_place())
        sampled.tenants = sorted(map(self._sample, nic.tenants_by_id.values()), key=lambda tenant: tenant.key)
        self._estimate(sampled)

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that was placed on the NIC; the margins of all are known by now."""
        self._note_before(nic.number)
        sampled, checked = self._nics.get(nic.number), self._checked
        self._checked = None
        if checked is not None and sampled is not None and (checked.nic, checked.arrival) == (nic.number, tenant.id):
            sampled.tenants = checked.tenants
            self._write(sampled, checked.margins, checked.rough)
            return
        if sampled is None:
            self.enter(nic)
            sampled = self._nics[nic.number]
        elif all(tenant.id != present.id for present in sampled.tenants):
            sampled.tenants, _ = sampled.with_tenant(self._sample(tenant))
        required = [tenant.required for tenant in sampled.tenants]
        _, kpps = self.oracle.meets(sampled.co_location, required)
        if any(known != known for known in kpps):  # behind a violated SLA
            co_location = sampled.co_location
            lowest = lowest_by_workload(co_location, self.oracle.throughput([co_location])[0])
            kpps = [lowest[workload] for workload in co_location]
        margins = [*map(margin_of, kpps, required)]
        self._write(sampled, np.array(margins), self._rough(sampled.tenants))

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that left the NIC; the others have an estimated larger margin than before."""
        self._note_before(nic.number)
        sampled, self._checked = self._nics[nic.number], None
        at = next(at for at, present in enumerate(sampled.tenants) if present.id == tenant.id)
        sampled.tenants = [*sampled.tenants[:at], *sampled.tenants[at + 1 :]]
        if not sampled.tenants:
            self._take_out(sampled)
            return
        offset = self._offset[sampled.place]
        offset[at : len(sampled.tenants)] = offset[at + 1 : len(sampled.tenants) + 1].copy()
        self._estimate(sampled, offset[: len(sampled.tenants)])

    def restrict(self, places: AllowedNics | None) -> None:
        """Close NICs that constraints bar; None takes them up again."""
        for nic in dict.fromkeys(self._closed):
            self.enter(nic)
        among = None if places is None else places.among
        self._closed = [nic for nic in (places.met if places else ()) if self.has(nic)]
        if places is not None and among is None and len(self.kinds) > 1:
            self._closed += [
                nic for nic in (sampled.nic for sampled in self._nics.values()) if nic.kind not in places.kinds
            ]
        for nic in dict.fromkeys(self._closed):
            self.close(nic)
        self._among = None
        if places is not None and among is not None:
            known = [self._nics[nic.number].place for nic in among if nic.kind in places.kinds and self.has(nic)]
            self._among = np.array(sorted(known), dtype=np.int64)

    def close(self, nic: Nic) -> None:
        """Remove the NIC: it takes no more arrivals."""
        if nic.number in self._nics:
            self._note_before(nic.number)
            self._take_out(self._nics[nic.number])

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers among the few that are checked, with its score; None when none fits."""
        return next(self._found(tenant, learns=self._trial is None), None)

    def rank(self, tenant: Tenant, most: int) -> list[tuple[float, Nic]]:
        """Scores and NICs that take the tenant, of the few that are checked; nothing is learnt by asking."""
        return [*islice(self._found(tenant, learns=False), most)]

    def scores_on(self, tenant: Tenant, nics: Sequence[Nic]) -> list[float]:
        """By the rule, as predicted; nothing is learnt by asking."""
        known = [self._nics[nic.number] for nic in nics if nic.number in self._nics]
        scored = self._score_all(known, self._sample(tenant)) if known else {}
        return [scored.get(nic.number, math.inf) for nic in nics]

    def most_free(self) -> int:
        """The most cores that are free on one NIC; 0 without a NIC."""
        return int(self._free[: self._used].max(initial=0))

    def last_resort(self, tenant: Tenant) -> Nic | None:
        """A NIC on which every SLA is met, out of many more than `best` checks."""
        if not self.kind.hosts(tenant.workload) or not self._nics:
            return None
        arriving = self._sample(tenant)
        places = self._preferred(arriving, LAST_RESORT, -math.inf)
        scored = self._score_all([self._nics[int(self._number[place])] for place in places], arriving)
        best = min(((score, number) for number, score in scored.items()), default=None)
        return None if best is None else self._nics[best[1]].nic

    def opening_score(self, tenant: Tenant) -> float | None:
        """The score of a new NIC, above any other; None when the SLA of the tenant would not be met there."""
        if not self.kind.hosts(tenant.workload):
            return None
        solo = self.oracle.solo(tenant.workload)
        return math.inf if tenant.is_met(solo, solo) else None

    def tally(self, tenant: Tenant) -> Tally:
        """How many NICs have too few cores for the tenant; of the others only some were checked."""
        needed = tenant.workload.cores or self.kind.cores_of.get(tenant.workload.nf, self.kind.cores + 1)
        used = self._number[: self._used] >= 0
        return Tally(len(self._nics), int((self._free[: self._used][used] < needed).sum()), None)

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why no NIC takes the tenant, by free cores; of those with enough, a part was checked."""
        needed = tenant.workload.cores or self.kind.cores_of.get(tenant.workload.nf)
        free_cores = self._free[: self._used][self._number[: self._used] >= 0]
        if self._among is not None:
            free_cores = self._free[self._among]
        for free, nics in zip(*np.unique(free_cores, return_counts=True), strict=True):
            short = Cause.NOT_HOSTED if needed is None else Cause.CORES if free < needed else None
            yield Reason(self.kind.model, (), int(nics), short or Cause.SAMPLED_SLA)

    def _found(self, tenant: Tenant, *, learns: bool) -> Iterator[tuple[float, Nic]]:
        """NICs that take the tenant, out of a few, with their scores; about the best first."""
        if not self.kind.hosts(tenant.workload) or not self._nics:
            return
        arriving = self._sample(tenant)
        places = self._preferred(arriving, COMPARED_NICS, LEAST_SLACK)
        if not len(places):
            return
        rough, slack = self._rough_with(arriving, places), np.empty(len(places))
        order = np.empty(len(places), dtype=np.int64)
        rank_roughly(
            places, (self._size, self._offset), arriving.alone, rough,
            (self._number, self._free, self._margin), float(arriving.cores), self._weights,
            SAFE_SLACK, slack, order,
            (self._left[arriving.nf], self._own[arriving.nf]) if learns else (NOTHING, NOTHING),
        )  # fmt: skip
        if self._checks is not None:
            order = order[:CHECKED_NICS]
            order = order[slack[order] >= LEAST_ESTIMATED_SLACK]
        for at in order.tolist():
            sampled = self._nics[int(self._number[places[at]])]
            found = self._check(sampled, arriving, rough[at], learns=learns)
            if found is not None:
                yield found, sampled.nic

    def _preferred(self, arriving: SampledTenant, most: int, least_slack: float) -> NDArray[np.int64]:
        """The places that the rule prefers by what NFs lose on average."""
        line_rate = self.kind.line_rate_gbps
        gbps = self.kind.gbps_of(arriving.workload) if line_rate < math.inf else 0.0
        places, by_nf = np.empty(most, dtype=np.int64), (self._left[arriving.nf], self._own[arriving.nf])
        arrays: list[NDArray[Any]] = [self._number[: self._used], self._free, self._gbps, self._margin, *by_nf]
        if self._among is not None:
            arrays = [array[self._among] for array in arrays]
        number, free, taken, margin, left, own = arrays
        found = preferred_nics(
            number, free, (taken, gbps, line_rate), margin, left, own,
            arriving.alone, least_slack, float(arriving.cores), self._weights, places,
        )  # fmt: skip
        return places[:found] if self._among is None else self._among[places[:found]]

    def _rough_with(self, arriving: SampledTenant, places: NDArray[np.int64]) -> Floats:
        """Rough logarithms of the tenants of some places, and of the arrival behind them."""
        nfs, rows = (np.zeros((len(places), self._row.shape[1] + 1), dtype=np.int64) for _ in range(2))
        together = np.empty(len(places), dtype=np.int64)
        write_members(places, self._nf_at, self._row, self._size, (arriving.nf, arriving.row), nfs, rows, together)
        return self._rough_logarithms(nfs, rows, together)

    def _rough(self, tenants: Sequence[SampledTenant]) -> Floats:
        """Rough logarithms of tenants that share a NIC."""
        nfs, rows = (
            np.array([numbers]) for numbers in zip(*((tenant.nf, tenant.row) for tenant in tenants), strict=True)
        )
        return self._rough_logarithms(nfs, rows, np.array([len(tenants)])).ravel()

    def _rough_logarithms(self, nfs: NDArray[np.int64], rows: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
        checks = self._checks
        raw = self.interference.rough_logarithms(nfs, sizes) if checks is None else checks.rough_logarithms(rows, sizes)
        return self._biases.add(nfs, sizes, raw)

    def _check(self, sampled: SampledNic, arriving: SampledTenant, rough: Floats, *, learns: bool) -> float | None:
        """The score of the NIC with the arrival; None where an SLA would be violated.

        `rough`: rough logarithms of its tenants, and of the arrival behind them.
        """
        together, at = sampled.with_tenant(arriving)
        if not self.kind.has_port_for(tenant.workload for tenant in together):
            return None
        required = [tenant.required for tenant in together]
        met, kpps = self.oracle.meets(tuple([tenant.workload for tenant in together]), required)
        place, nf, last = sampled.place, arriving.nf, len(together) - 1
        margins = [*map(margin_of, kpps, required)]
        own, left = margins[at], EMPTY_MARGIN
        for other, margin in enumerate(margins):
            if other != at and margin < left:  # behind a violated SLA they are not known
                left = margin
        rough[at : last + 1] = [rough[last], *rough[at:last]]
        checked = Checked(sampled.nic.number, arriving.id, together, np.array(margins), rough)
        if learns:
            self._left[nf, place] = left
            if own == own:
                self._own[nf, place] = own - arriving.alone
            self._learn(checked, place, at)
        if not met:
            return None
        self._checked = checked
        return self._score(place, arriving.cores, min(left, own))

    def _score_all(self, candidates: Sequence[SampledNic], arriving: SampledTenant) -> dict[int, float]:
        """By number, the scores of the NICs on which every SLA is met; all are predicted at once."""
        together = [sampled.with_tenant(arriving)[0] for sampled in candidates]
        answers = self.oracle.throughput([tuple([tenant.workload for tenant in tenants]) for tenants in together])
        found = dict[int, float]()
        for sampled, tenants, kpps in zip(candidates, together, answers, strict=True):
            lowest = lowest_by_workload(tuple([tenant.workload for tenant in tenants]), kpps)
            met = all(lowest[tenant.workload] >= tenant.required for tenant in tenants)
            if met and self.kind.has_port_for(tenant.workload for tenant in tenants):
                least = min(margin_of(lowest[tenant.workload], tenant.required) for tenant in tenants)
                found[sampled.nic.number] = self._score(sampled.place, arriving.cores, least)
        return found

    def _learn(self, checked: Checked, place: int, at: int) -> None:
        """Correct the estimates by the margins of a co-location, as far as they are known; the arrival is at `at`."""
        size = len(checked.tenants)
        if size > self._row.shape[1]:
            return
        nfs, alone = [tenant.nf for tenant in checked.tenants], [tenant.alone for tenant in checked.tenants]
        margins = checked.margins, np.array(alone), checked.rough, self._offset[place]
        self._mean_loss = self.interference.learn_all(self._biases, np.array(nfs), at, margins)
        self._weights = self._weigh()

    def _score(self, place: int, cores: int, margin: float) -> float:
        """What the rule makes of a NIC on which all margins would be at least `margin` after that many more cores."""
        per_core, per_margin, before, after = self._weights
        free = float(self._free[place])
        now = min(free * per_core, float(self._margin[place]) * per_margin)
        then = min((free - cores) * per_core, margin * per_margin)
        return (before * now + after * then) * self._mean_cores / self.kind.cores * self.kind.cost

    def _weigh(self) -> tuple[float, float, float, float]:
        """NFs per free core, NFs per margin, and the weights of their number before and after an arrival."""
        after = self.rule.after + (FULLER_WEIGHT if self.rule.forecasts else 0.0)
        return 1.0 / self._mean_cores, 1.0 / self._mean_loss, self.rule.before, after

    def _sample(self, tenant: Tenant) -> SampledTenant:
        """The tenant as it would be alone on the NIC."""
        workload, solo = tenant.workload, self.oracle.solo(tenant.workload)
        row = 0 if self._checks is None else self._checks.row(workload, self)
        required = tenant.required_kpps(solo)
        return SampledTenant(
            tenant.id, workload, workload.sort_key, self.interference.number_of[workload.nf],
            self.kind.cores_for(workload), row, solo, required, margin_of(solo, required),
        )  # fmt: skip

    def _estimate(self, sampled: SampledNic, offset: Floats | None = None) -> None:
        """Estimate the margins of the tenants; `offset`: their margins less what is expected roughly, where known."""
        alone = np.array([tenant.alone for tenant in sampled.tenants])
        rough = self._rough(sampled.tenants)
        self._write(sampled, np.minimum((alone if offset is None else offset) + rough, alone), rough)

    def _write(self, sampled: SampledNic, margins: Floats, rough: Floats) -> None:
        """Write the tenants with their margins, and estimate the margins that an arrival of each NF would leave."""
        place, tenants = sampled.place, sampled.tenants
        self._number[place] = sampled.nic.number
        self._free[place] = self.kind.cores - sum([tenant.cores for tenant in tenants])
        if self.kind.line_rate_gbps < math.inf:
            self._gbps[place] = sum([self.kind.gbps_of(tenant.workload) for tenant in tenants])
        self._margin[place] = write_margins(
            self.interference.loss, np.array([(tenant.nf, tenant.row) for tenant in tenants]),
            margins, rough, place, self._left, self._own,
            (self._size, self._nf_at, self._row, self._offset),
        )  # fmt: skip

    def _take_out(self, sampled: SampledNic) -> None:
        del self._nics[sampled.nic.number]
        self._number[sampled.place] = self._free[sampled.place] = -1
        self._vacant.append(sampled.place)

    def _new_place(self) -> int:
        if self._vacant:
            return self._vacant.pop()
        if self._used == len(self._number):
            for name in ("_number", "_free", "_gbps", "_margin", "_size", "_row", "_nf_at", "_offset"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.full_like(array, -1)]))
            self._left, self._own = (
                np.concatenate([array, np.zeros_like(array)], axis=1) for array in (self._left, self._own)
            )
        self._used += 1
        return self._used - 1
