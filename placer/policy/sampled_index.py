"""The sampled index: the NICs of one kind where there are too many workloads to predict all co-locations in advance.

Then hardly two NICs are equal. What each NF loses beside each other one on average says what margin every NIC would
have left after an arrival. Of those that the rule prefers by this, the margins are estimated from the traffic of their
tenants. In the order of these estimates NICs are checked exactly, and the first on which every SLA is met takes the
arrival. What a check shows about a NIC that did not fit is remembered for the NF. Where the estimates of all margins
are surely enough, an arrival with a rate takes the NIC without a check.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placer.model.constraints import AllowedNics
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, lowest_by_workload
from placer.policy.interference import RATES, Interference, no_biases
from placer.policy.rejection import Cause, Reason, Tally
from placer.policy.rules import IndexWithoutTable, Rule
from placer.policy.sampled_kernels import (
    BY_NF,
    FREE,
    GBPS,
    NOBODY,
    add_checked,
    add_estimated,
    add_member,
    add_unchecked,
    check_arrival,
    estimate_margins,
    expect_change,
    preferred_nics,
    rank_nics,
    rank_roughly,
    remember_left,
    remove_tenant,
    replace_tenant,
    score_of,
    take_check,
    write_known,
)
from placer.policy.sampled_nic import Checked, SampledNic, SampledTenant, SamplingTrial, TriedChecks, margin_of
from predictor.contention.checks import CLOSE, MET, NO_CHECKS, ModelArrays
from predictor.contention.workload_table import NO_WORKLOAD
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

CHECKED_ONE_IN = 64  # of so many NICs whose margins are surely enough, one is checked all the same

SURELY_CARRIED = 1.0 - 1e-9  # the share of the line rate up to which rounding does not decide whether the port has it

REMEMBERED_CHECKS = 1_024
"""Checks of trials that are remembered: what is placed in one step of a question is placed again in the next."""

FIRST_SIZE = 16_384
"""NICs there is room for at first, so that no decision waits for a copy; they take memory when they are written."""


NicArrays = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]
"""What is known of NICs, as `sampled_kernels` describes it."""

NOBODY_SAMPLED = None, SampledTenant("", NO_WORKLOAD, (), NOBODY), 0


class SampledIndex(IndexWithoutTable):
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
        self._last: tuple[Tenant | None, SampledTenant, int] = NOBODY_SAMPLED
        self._tried = TriedChecks()
        self._checks = oracle.checks
        self._sure_nics = 0
        self._keep_rows()
        estimated = SAFE_SLACK, CHECKED_NICS, LEAST_ESTIMATED_SLACK
        limits = (SAFE_SLACK, COMPARED_NICS, -math.inf) if self._checks is None else estimated
        self._limits = *limits, LEAST_SLACK
        nfs, cores = len(self.interference.number_of), [cores for cores in kind.all_core_counts if cores > 0]
        width = kind.cores // min(cores, default=kind.cores) + 1
        self._learnt = self.interference.loss, *no_biases(nfs, width), np.zeros((nfs, 2))
        nics = np.zeros((BY_NF + 2 * nfs, FIRST_SIZE))
        nics[FREE] = -1.0
        self._arrays: NicArrays = (
            nics,
            np.zeros((FIRST_SIZE, 1 + width, 2), dtype=np.int64),
            np.zeros((FIRST_SIZE, width, 4)),
        )
        cores = [cores for cores in kind.cores_of.values() if 0 < cores <= kind.cores]
        self._mean_cores = sum(cores) / len(cores) if cores else 1.0
        self._mean_loss = float(self.interference.loss.mean())
        self._weights = self._weigh()

    def __setstate__(self, state: dict[str, object]) -> None:
        """Of a copy, which keeps rows of the same checks."""
        self.__dict__ |= state
        self._keep_rows()

    def _keep_rows(self) -> None:
        if self._checks is not None:
            self._checks.add_user(self)

    def observe(self, tenant: Tenant) -> None:
        """There is no forecast; workloads that have left make room, since none is being compared now."""
        if self._trial is None:
            self._checked = None
            if self._checks is not None:
                self._checks.release_rows()

    def rows_in_use(self) -> NDArray[np.int64]:
        """The rows of all tenants, as of `CoLocationChecks`, and of the one that was sampled last."""
        nics, members = self._arrays[0][:, : self._used], self._arrays[1][: self._used]
        sizes = np.where(nics[FREE] >= 0, members[:, 0, 1], 0)
        rows = members[:, 1:, 1][np.arange(members.shape[1] - 1) < sizes[:, None]]
        return np.append(rows, self._last[1].numbers[1])

    def follow(self, oracle: Oracle) -> None:
        """Ask this oracle from now on."""
        self.oracle, self._last = oracle, NOBODY_SAMPLED
        self._tried.clear()  # revisions of two oracles may be the same number

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
                for view, column in zip(self._views(sampled.place), columns, strict=True):
                    view[: len(column)] = column
        self._vacant, self._used = trial.vacant, trial.used

    def _note_before(self, number: int) -> None:
        """Keep how a NIC was before the first change in a trial."""
        if self._trial is None or number in self._trial.nics:
            return
        sampled = self._nics.get(number)
        self._trial.nics[number] = None if sampled is None else (
            sampled, sampled.tenants, [view.copy() for view in self._views(sampled.place)]
        )  # fmt: skip

    def _views(self, place: int) -> list[NDArray[Any]]:
        """All that the arrays hold of a place."""
        nics, members, tenants = self._arrays
        return [nics[:, place], members[place], tenants[place]]

    def enter(self, nic: Nic) -> None:
        """Add the NIC with all its tenants, whose margins are estimated."""
        self.kinds[nic.kind] = None
        self._note_before(nic.number)
        self._checked = None
        sampled = self._nics[nic.number] = SampledNic(nic, self._new_place())
        tenants = sorted(map(self._sample, nic.tenants_by_id.values()), key=lambda tenant: tenant.key)
        self._make_room(len(tenants))
        sampled.tenants, nics = tenants, self._arrays[0]
        nics[FREE, sampled.place], self._arrays[1][sampled.place, 0] = self.kind.cores, (nic.number, 0)
        for at, sampled_tenant in enumerate(tenants):
            add_member(*self._arrays, sampled.place, at, sampled_tenant.numbers)
        estimate_margins(*self._arrays, sampled.place, self._models, self._learnt, False)

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that was placed on the NIC; the margins of all are known by now."""
        self._note_before(nic.number)
        sampled = self._nics.get(nic.number)
        checked = None if sampled is None else self._check_of(sampled, tenant)
        self._checked = None
        if sampled is not None and checked is not None:
            arriving = checked.arriving
            sampled.tenants = sampled.with_tenant(arriving, checked.at)
            self._make_room(len(sampled.tenants))
            joining = sampled.place, checked.at, arriving.numbers
            if checked.margins is None:
                add_estimated(*self._arrays, *joining, checked.rough, self._learnt)
            else:
                add_checked(*self._arrays, *joining, checked.margins, checked.rough, self.interference.loss)
            return
        if sampled is None:
            self.enter(nic)
            sampled = self._nics[nic.number]
        elif all(tenant.id != present.id for present in sampled.tenants):
            arriving = self._sample(tenant)
            at = sampled.place_of(arriving)
            sampled.tenants = sampled.with_tenant(arriving, at)
            self._make_room(len(sampled.tenants))
            sure = add_unchecked(*self._arrays, sampled.place, at, arriving.numbers, self._models, self._learnt)
            if sure and self._goes_unchecked(arriving):
                return
        self._write_checked(sampled)

    def _write_checked(self, sampled: SampledNic) -> None:
        """Write down the margins of the tenants of a NIC as a check finds them."""
        required = [tenant.required for tenant in sampled.tenants]
        _, kpps = self.oracle.meets(sampled.co_location, required)
        if any(known != known for known in kpps):  # behind a violated SLA
            co_location = sampled.co_location
            lowest = lowest_by_workload(co_location, self.oracle.throughput([co_location])[0])
            kpps = [lowest[workload] for workload in co_location]
        write_known(*self._arrays, sampled.place, np.asarray(kpps), self._models, self._learnt)

    def load_kernels(self, nic: Nic, tenant: Tenant) -> None:
        """Load the compiled parts that only a long run of arrivals needs; what is known of the NIC is lost."""
        arriving, size = self._sample(tenant), len(self._nics[nic.number].tenants)
        self._make_room(size + 2)
        given = *self._arrays, self._nics[nic.number].place, 0, arriving.numbers
        add_estimated(*given, np.zeros(size + 1), self._learnt)
        add_unchecked(*given, self._models, self._learnt)
        expect_change(*given[1:4], 0, arriving.numbers, 0.0, self._models, self._learnt)
        replace_tenant(*given[:5], 0.0, *given[4:], self._models, self._learnt)
        self.close(nic)

    def expects(self, nic: Nic, before: Tenant, after: Tenant, headroom: float) -> bool | None:
        """Whether a NIC surely has the cores and the port, and every SLA is met, if a tenant changes to what it hosts,
        its own by so much more; None if only a check shows it."""
        sampled = self._nics.get(nic.number)
        if sampled is None:
            return None
        changed = self._sample(after)
        if not self._goes_unchecked(changed):
            return None
        at = sampled.place_by_id(before.id)
        present, (free, taken) = sampled.tenants[at], self._arrays[0][: GBPS + 1, sampled.place].tolist()
        gbps = taken - present.gbps + changed.gbps
        if free + present.numbers[2] < changed.numbers[2] or gbps > SURELY_CARRIED * self.kind.line_rate_gbps:
            return None
        more, numbers = math.log1p(headroom), changed.numbers
        found = expect_change(*self._arrays[1:], sampled.place, at, numbers, more, self._models, self._learnt)
        return None if found == CLOSE else found == MET

    def change(self, nic: Nic, before: Tenant, after: Tenant) -> bool:
        """As `left` and `joined`, in one step; False where only these do."""
        sampled = self._nics.get(nic.number)
        if sampled is None or self._trial is not None or len(sampled.tenants) < 2:
            return False
        self._checked = None
        leaving = sampled.tenants.pop(at := sampled.place_by_id(before.id))
        arriving = self._sample(after)
        joined_at = sampled.place_of(arriving)
        sampled.tenants.insert(joined_at, arriving)
        sure = replace_tenant(
            *self._arrays, sampled.place, at, leaving.numbers[2], joined_at, arriving.numbers, self._models,
            self._learnt,
        )  # fmt: skip
        if not (sure and self._goes_unchecked(arriving)):
            self._write_checked(sampled)
        return True

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that left the NIC; the others have an estimated larger margin than before."""
        self._note_before(nic.number)
        sampled, self._checked = self._nics[nic.number], None
        at = sampled.place_by_id(tenant.id)
        leaving = sampled.tenants[at]
        sampled.tenants = [*sampled.tenants[:at], *sampled.tenants[at + 1 :]]
        if not sampled.tenants:
            self._take_out(sampled)
            return
        remove_tenant(*self._arrays, sampled.place, at, leaving.numbers[2], self._models, self._learnt)

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
        return int(self._arrays[0][FREE, : self._used].max(initial=0))

    def last_resort(self, tenant: Tenant) -> Nic | None:
        """A NIC on which every SLA is met, out of many more than `best` checks."""
        if not self.kind.hosts(tenant.workload) or not self._nics:
            return None
        arriving = self._sample(tenant)
        places = self._preferred(arriving, LAST_RESORT, -math.inf)
        numbers = self._arrays[1][places, 0, 0].tolist()
        scored = self._score_all([self._nics[number] for number in numbers], arriving)
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
        free = self._arrays[0][FREE, : self._used]
        return Tally(len(self._nics), int(((free >= 0) & (free < needed)).sum()), None)

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why no NIC takes the tenant, by free cores; of those with enough, a part was checked."""
        needed = tenant.workload.cores or self.kind.cores_of.get(tenant.workload.nf)
        free_cores = self._arrays[0][FREE, : self._used]
        free_cores = free_cores[free_cores >= 0] if self._among is None else free_cores[self._among]
        for free, nics in zip(*np.unique(free_cores, return_counts=True), strict=True):
            short = Cause.NOT_HOSTED if needed is None else Cause.CORES if free < needed else None
            yield Reason(self.kind.model, (), int(nics), short or Cause.SAMPLED_SLA)

    def _found(self, tenant: Tenant, *, learns: bool) -> Iterator[tuple[float, Nic]]:
        """NICs that take the tenant, out of a few, with their scores; about the best first."""
        if not self.kind.hosts(tenant.workload) or not self._nics:
            return
        arriving, members = self._sample(tenant), self._arrays[1]
        places, order = np.empty(COMPARED_NICS, dtype=np.int64), np.empty(COMPARED_NICS, dtype=np.int64)
        rough = np.empty((COMPARED_NICS, members.shape[1]))
        given, sure = (self._models, self._learnt, self._weights), self._goes_unchecked(arriving)
        if self._among is None:
            checked, surplus, score = rank_nics(
                self._arrays, self._used, arriving.numbers, self.kind.line_rate_gbps, *given, self._limits, sure,
                learns, places, rough, order,
            )  # fmt: skip
        else:
            places = self._preferred(arriving, COMPARED_NICS, LEAST_SLACK)
            checked, surplus, score = rank_roughly(
                *self._arrays, places, arriving.numbers, *given, self._limits[:3], rough, order
            )
            if learns:
                remember_left(*self._arrays, places, arriving.numbers[0], rough)
        for at in order[:checked].tolist():
            sampled = self._nics[int(members[places[at], 0, 0])]
            if sure and surplus >= 0.0 and not self._is_due(learns):
                found = self._take_estimate(sampled, arriving, rough[at], score)
            else:
                found = self._check(sampled, arriving, rough[at], learns=learns)
            sure = False  # only the first surely fits
            if found is not None:
                yield found, sampled.nic

    def _goes_unchecked(self, arriving: SampledTenant) -> bool:
        """Whether a NIC on which all margins are surely enough takes the arrival without a check: only with a rate, as
        the SLA of any other leaves small margins."""
        return not arriving.workload.is_saturated and self._checks_itself

    def _is_due(self, learns: bool) -> bool:
        """Whether a NIC is checked although its margins are surely enough, so that errors stay known; asking finds what
        the next decision does."""
        number = self._sure_nics + 1
        if learns:
            self._sure_nics = number
        return number % CHECKED_ONE_IN == 0

    @property
    def _checks_itself(self) -> bool:
        """Whether the oracle now answers what compiled checks do."""
        return self._checks is not None and self.oracle.checks is self._checks and self.oracle.is_checked

    def _take_estimate(self, sampled: SampledNic, arriving: SampledTenant, rough: Floats, score: float) -> float | None:
        """As `_check`, where the estimated margins of all are surely enough."""
        at = sampled.place_of(arriving)
        if not self._has_port_with(sampled, arriving, at):
            return None
        self._keep(sampled, Checked(sampled.nic.number, at, arriving, None, rough))
        return self._of_kind(score)

    def _keep(self, sampled: SampledNic, checked: Checked) -> None:
        """Remember the last check; in a trial, all of them."""
        self._checked = checked
        if self._trial is not None:
            if len(self._tried) >= REMEMBERED_CHECKS:
                self._tried.clear()
            self._tried[self._as_tried(sampled, checked.arriving)] = checked

    def _preferred(self, arriving: SampledTenant, most: int, least_slack: float) -> NDArray[np.int64]:
        """The places that the rule prefers by what NFs lose on average."""
        places, line_rate = np.empty(most, dtype=np.int64), self.kind.line_rate_gbps
        (nics, members, _), used = self._arrays, self._used
        if self._among is not None:
            nics, members, used = nics[:, self._among], members[self._among], len(self._among)
        found = preferred_nics(nics, members, used, arriving.numbers, line_rate, least_slack, self._weights, places)
        return places[:found] if self._among is None else self._among[places[:found]]

    @property
    def _models(self) -> ModelArrays:
        """As kernels read what estimates throughputs roughly."""
        return NO_CHECKS if self._checks is None else self._checks.arrays

    def _check(self, sampled: SampledNic, arriving: SampledTenant, rough: Floats, *, learns: bool) -> float | None:
        """The score of the NIC with the arrival; None where an SLA would be violated.

        `rough`: rough logarithms of its tenants, and of the arrival behind them.
        """
        at = sampled.place_of(arriving)
        if not self._has_port_with(sampled, arriving, at):
            return None
        margins, verdict = np.empty(1 + len(sampled.tenants)), CLOSE
        if self._checks is not None and self._checks_itself:
            verdict, score, mean_loss = check_arrival(
                self._arrays, sampled.place, at, arriving.numbers, self._checks.arrays, self._checks.exponents, rough,
                margins, self._learnt, self._weights, RATES, learns,
            )  # fmt: skip
        met = verdict == MET
        if verdict == CLOSE:
            together = sampled.with_tenant(arriving, at)
            required = [tenant.required for tenant in together]
            met, kpps = self.oracle.meets(tuple([tenant.workload for tenant in together]), required)
            score, mean_loss = take_check(
                *self._arrays, sampled.place, at, arriving.numbers, np.asarray(kpps), rough, margins, self._learnt,
                self._weights, RATES, learns,
            )  # fmt: skip
        if mean_loss > 0.0:
            self._mean_loss = mean_loss
            self._weights = self._weigh()
        if not met:
            return None
        self._keep(sampled, Checked(sampled.nic.number, at, arriving, margins, rough))
        return self._of_kind(score)

    def _check_of(self, sampled: SampledNic, tenant: Tenant) -> Checked | None:
        """The last check, if it was of this tenant on this NIC; in a trial, also one of an earlier trial."""
        last, number = self._checked, sampled.nic.number
        if last is not None and (last.nic, last.arriving.id) == (number, tenant.id):
            return last if last.arriving.workload == tenant.workload else None
        if self._trial is None or not self._tried:
            return None
        arriving = self._sample(tenant)
        found = self._tried.get(self._as_tried(sampled, arriving))
        return None if found is None else found._replace(arriving=arriving)

    def _as_tried(self, sampled: SampledNic, arriving: SampledTenant) -> object:
        """All on which the margins of a check depend."""
        together = [(tenant.key, tenant.required) for tenant in (arriving, *sampled.tenants)]
        return sampled.nic.number, self.oracle.revision, tuple(together)

    def _has_port_with(self, sampled: SampledNic, arriving: SampledTenant, at: int) -> bool:
        """`_has_port_for` its tenants and an arrival at that place; it is summed up where rounding may decide."""
        line_rate = self.kind.line_rate_gbps
        if float(self._arrays[0][GBPS, sampled.place]) + arriving.gbps <= SURELY_CARRIED * line_rate:
            return True
        return arriving.gbps == 0.0 or self._has_port_for(sampled.with_tenant(arriving, at))

    def _has_port_for(self, tenants: Sequence[SampledTenant]) -> bool:
        """Whether the port carries the packets that are offered to all of these."""
        return math.fsum([tenant.gbps for tenant in tenants]) <= self.kind.line_rate_gbps

    def _score_all(self, candidates: Sequence[SampledNic], arriving: SampledTenant) -> dict[int, float]:
        """By number, the scores of the NICs on which every SLA is met; all are predicted at once."""
        together = [sampled.with_tenant(arriving, sampled.place_of(arriving)) for sampled in candidates]
        answers = self.oracle.throughput([tuple([tenant.workload for tenant in tenants]) for tenants in together])
        found = dict[int, float]()
        for sampled, tenants, kpps in zip(candidates, together, answers, strict=True):
            lowest = lowest_by_workload(tuple([tenant.workload for tenant in tenants]), kpps)
            met = all(lowest[tenant.workload] >= tenant.required for tenant in tenants)
            if met and self._has_port_for(tenants):
                least = min(margin_of(lowest[tenant.workload], tenant.required) for tenant in tenants)
                score = score_of(self._arrays[0], sampled.place, arriving.numbers[2], least, self._weights)
                found[sampled.nic.number] = self._of_kind(score)
        return found

    def _of_kind(self, score: float) -> float:
        """A score as it is compared with those of other kinds."""
        return score * self._mean_cores / self.kind.cores * self.kind.cost

    def _weigh(self) -> tuple[float, float, float, float]:
        """NFs per free core, NFs per margin, and the weights of their number before and after an arrival."""
        after = self.rule.after + (FULLER_WEIGHT if self.rule.forecasts else 0.0)
        return 1.0 / self._mean_cores, 1.0 / self._mean_loss, self.rule.before, after

    def _sample(self, tenant: Tenant) -> SampledTenant:
        """The tenant as it would be alone on the NIC; that of the last one is kept."""
        last, sampled, revision = self._last
        if last is tenant and revision == self.oracle.revision:
            return sampled
        workload, kind, solo = tenant.workload, self.kind, self.oracle.solo(tenant.workload)
        row = 0 if self._checks is None else self._checks.row(workload)
        required, nf = tenant.required_kpps(solo), self.interference.number_of[workload.nf]
        gbps = kind.gbps_of(workload) if kind.line_rate_gbps < math.inf else 0.0
        numbers = nf, row, float(kind.cores_for(workload)), required, margin_of(solo, required), gbps
        sampled = SampledTenant(tenant.id, workload, workload.sort_key, numbers)
        self._last = tenant, sampled, self.oracle.revision
        return sampled

    def _make_room(self, tenants: int) -> None:
        """Make room for so many tenants of a NIC: more than usual are only NFs that take no cores."""
        nics, members, of_tenants = self._arrays
        if (most := of_tenants.shape[1]) < tenants:
            more = max(most, tenants - most)
            members, of_tenants = (
                np.concatenate([array, np.zeros_like(array, shape=(len(array), more, *array.shape[2:]))], axis=1)
                for array in (members, of_tenants)
            )
            self._arrays = nics, members, of_tenants

    def _take_out(self, sampled: SampledNic) -> None:
        del self._nics[sampled.nic.number]
        self._arrays[0][FREE, sampled.place] = -1.0
        self._vacant.append(sampled.place)

    def _new_place(self) -> int:
        if self._vacant:
            return self._vacant.pop()
        nics, members, tenants = self._arrays
        if self._used == len(members):
            members, tenants = (np.concatenate([array, np.zeros_like(array)]) for array in (members, tenants))
            self._arrays = np.concatenate([nics, np.full_like(nics, -1.0)], axis=1), members, tenants
        self._used += 1
        return self._used - 1
