"""The online engine: arrivals, departures, changes and failures in any order, each decided at once.

It holds the fleet, a selector that picks NICs, and the queue of waiting tenants. A tenant is moved only where it must
be: when its NIC fails or is drained, or when a change makes a tenant of the NIC violate its SLA.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from placer.fleet.cores import CoresChoices, least_lasting, shortage, shown_cores, stay, stay_at_risk
from placer.fleet.events import (
    Arrive,
    ArriveTogether,
    Change,
    Cordon,
    Decision,
    Depart,
    Drain,
    DryRun,
    ExpectedDecision,
    Fail,
    FleetEvent,
    Join,
    JudgedInstance,
    Learned,
    Leave,
    Lookup,
    Measure,
    MeasuredInstance,
    Move,
    Rebalance,
    Refused,
    Return,
    Uncordon,
    Where,
)
from placer.fleet.learning.learning import DRIFT, STATUSES, Feedback
from placer.fleet.learning.ledger import SATURATED_OFFER, ProductionReading
from placer.fleet.nic_versions import NicVersions
from placer.fleet.rebalance import Rebalancer, Repairer
from placer.model.constraints import conflict_on, pool_fault
from placer.model.feasibility import below_sla, feasible, fits, keeps_slas, misfit
from placer.model.fleet import NUMBERED_NIC_ID, Fleet, Nic, NicKind, Service, Tenant, numbers_nics
from placer.model.groups import Constraints
from placer.model.oracle import Oracle, PredictorOracle
from placer.model.pools import FleetJournal
from placer.policy.pattern_table import MOST_PATTERNS
from placer.policy.preemption import Preemption, find_victims
from placer.policy.rejection import Cause, Reason
from placer.policy.rules import LOOK_AHEAD, Rule
from placer.policy.selector import Selector
from profiles import Workload

REBUILT_AFTER, REBUILT_GROWTH = 256, 0.1
"""Indexes are built anew after so many more readings, and at least this share more: what comes later changes less."""

MOST_TRIED = 16
"""Tenants of the queue that no NIC takes although one has the cores, after which an event tries no more, so that none
takes long."""

MOST_SEARCHED = 256
"""Tenants of a fleet that says, without being asked, who would have to go so that an arrival fits."""

REJECT, QUEUE = WHEN_FULL = ("reject", "queue")  # what happens to an arrival that fits on no NIC


class Engine:
    """Decides on the events of a fleet.

    `when_full`: one of `WHEN_FULL`. `waiting`: the queue, in the order in which tenants joined it; it also has the
    tenants of failed NICs that fit nowhere, whatever `when_full` is. `most_patterns`: largest number of co-locations
    that are predicted in advance. `expected`: tenants like those that will come, so that no arrival waits for
    predictions of usual co-locations. `feedback`: learns from measurements; without it they are refused. `events`: the
    number of the last event. `repairs`: most instances that a measurement may move because they were below their SLA.
    """

    def __init__(
        self,
        fleet: Fleet,
        oracles: Sequence[Oracle],
        rule: Rule = LOOK_AHEAD,
        *,
        when_full: str = REJECT,
        waiting: Iterable[Tenant] = (),
        most_patterns: int = MOST_PATTERNS,
        expected: Sequence[Tenant] = (),
        feedback: Feedback | None = None,
        events: int = 0,
        repairs: int = 0,
    ) -> None:
        self.feedback = feedback
        self.events = events
        self.fleet = fleet
        self.oracles = oracles
        self.when_full = when_full
        self.selector = Selector(fleet, oracles, rule, most_patterns=most_patterns, expected=expected, stand_ins=True)
        self.waiting = {tenant.id: tenant for tenant in waiting}
        self._next_tried: str | None = None
        self._cores_choices = CoresChoices(fleet.kinds, oracles)
        self.versions = NicVersions(events)
        self._readings = 0 if feedback is None else feedback.capacities
        self._repairer = Repairer(fleet, self.selector, repairs) if repairs else None

    def copy(self) -> Engine:
        """An engine that decides as this one would, and has the same oracles and tables, which only remember answers.

        It learns nothing. A rebuild of tables that is under way stands still in it.
        """
        memo: dict[int, Any] = {id(oracle): oracle for oracle in self.oracles}
        memo |= {id(self.fleet.journal): None, id(self.fleet.pool): self.fleet.pool}
        made = copy.copy(self)
        made.fleet, made.selector = copy.deepcopy((self.fleet, self.selector), memo)
        made.waiting = self.waiting.copy()
        made.versions = NicVersions(self.events)
        made.feedback = made._repairer = None
        return made

    def handle(self, event: FleetEvent) -> Decision:
        """Decide on the event, and change the fleet accordingly.

        Raises Refused when the event cannot happen; nothing was changed.
        """
        decision = _DECIDERS[type(event)](self, event)
        if not isinstance(decision, Lookup):
            self._count(event, decision)
        return decision

    def try_rebalance(self, event: Rebalance) -> Decision | None:
        """As `handle`, where a move pays; else nothing has happened, and there is no decision."""
        decision = self._rebalance(event)
        if not decision.moves:
            return None
        self._count(event, decision)
        return decision

    def _count(self, event: FleetEvent, decision: Decision) -> None:
        self.events += 1
        self.versions.note(self.events, event, decision, self.fleet)
        self.selector.advance()

    def workload_of(self, tenant_id: str) -> Workload | None:
        """What an instance on a NIC or in the queue was to run, with its cores where they were given; None for an
        unknown one."""
        tenant = self._find(tenant_id)
        return None if tenant is None else tenant.asked.workload

    def miss(self, nic_id: str) -> str:
        """What messages say of a NIC that is not in the fleet."""
        return f"'{nic_id}' {'has left the fleet' if nic_id in self.fleet.gone else 'was never in use'}"

    def choices(self, tenant: Tenant) -> list[Tenant]:
        """The instance on each number of cores that it may be given, in the order of `order_choices`."""
        return self._cores_choices.of(tenant)

    def follow_models(self) -> bool:
        """Decide by the models that feedback has come to; returns whether they are others than before."""
        if self.feedback is None or self.feedback.deciders is self.oracles:
            return False
        self.oracles = self.feedback.deciders
        self._cores_choices = CoresChoices(self.fleet.kinds, self.oracles)
        self.selector.rebuild(self.oracles)
        return True

    def follow_readings(self, *, drifted: bool) -> None:
        """Let decisions follow what feedback has learnt; `drifted` if an NF was found to have changed."""
        readings = 0 if self.feedback is None else self.feedback.capacities
        grown = readings - self._readings >= max(REBUILT_AFTER, REBUILT_GROWTH * self._readings)
        anew = self.follow_models()
        if not anew and (drifted or (grown and not self.selector.rebuilding)):
            self.selector.rebuild()
            anew = True
        if anew:
            self._readings = readings
        self.selector.refresh()

    def _arrive(self, event: Arrive) -> Decision:
        tenant = event.tenant
        before = self._find(tenant.id)
        if before is not None:
            if _alone(before.asked) == tenant.asked:  # sent again, because the answer was lost
                return self._where(Where(tenant.id))
            if before.constraints != tenant.constraints:
                raise Refused(f"'{tenant.id}' already exists with other constraints; send a depart first")
            if before.priority != tenant.priority:
                raise Refused(f"'{tenant.id}' already exists with priority {before.priority}; send a depart first")
            raise Refused(f"'{tenant.id}' already exists with another NF, traffic or SLA; send a change")
        self._refuse_unknown(tenant)
        if event.nic is not None and event.kind is not None:
            return self._take_over(tenant, event.nic, event.kind)
        if event.nic is not None:
            return self._arrive_on(tenant, event.nic)
        choices = self.choices(tenant)
        self.selector.observe(choices[0])
        nic = self._place(choices)
        if nic is not None:
            return self._placed(tenant.id, nic)
        is_searched = event.preempt or self.fleet.tenants <= MOST_SEARCHED
        found = find_victims(self.fleet, self.oracles, choices) if is_searched else None
        if found is not None and event.preempt:
            return self._preempt(found)
        reasons = tuple(self.selector.reasons(choices[0]))
        if found is not None:
            here, nics = ((), 0) if found.nic is None else (self.fleet.nics[found.nic].co_location, 1)
            reasons = Reason(found.kind.model, here, nics, Cause.PRIORITY, found.ids), *reasons
        if self.when_full == REJECT:
            return Decision("rejected", reasons=reasons)
        self.waiting[tenant.id] = tenant
        return Decision("queued", reasons=reasons)

    def _arrive_together(self, event: ArriveTogether) -> Decision:
        known = {tenant.id: self._find(tenant.id) for tenant in event.tenants}
        as_asked = {tenant.id: _alone(tenant) for tenant in event.tenants}
        if all(before and _alone(before.asked) == as_asked[identity] for identity, before in known.items()):
            homes = {identity: self.fleet.nic_of(identity) for identity in known}  # sent again: the answer was lost
            places = tuple((identity, None if home is None else home.id) for identity, home in homes.items())
            return Lookup("placed" if all(homes.values()) else "queued", placements=places)
        if exist := [identity for identity, before in known.items() if before is not None]:
            raise Refused(f"of the group '{event.id}' already exist: {_name(exist)}")
        for tenant in event.tenants:
            self._refuse_unknown(tenant)
        for tenant in event.tenants:
            self.selector.observe(self.choices(tenant)[0])
        moves, reasons = self._place_all(event.tenants)
        if moves:
            return Decision("placed", tuple(moves), placements=tuple((move.id, move.target) for move in moves))
        if self.when_full == REJECT:
            return Decision("rejected", reasons=reasons)
        self.waiting |= {tenant.id: tenant for tenant in event.tenants}
        return Decision("queued", reasons=reasons)

    def _place_all(self, tenants: Sequence[Tenant]) -> tuple[list[Move], tuple[Reason, ...]]:
        """Place all of a group, or none, and then say why the first that fits nowhere does not."""
        before, departures = self.fleet.journal, self.selector.departures
        journal = self.fleet.journal = FleetJournal() if before is None else before
        moves, reasons, mark = list[Move](), tuple[Reason, ...](), len(journal)
        for tenant in tenants:
            choices = self.choices(_alone(tenant))
            nic = self._place(choices)
            if nic is None:
                reasons = tuple(self.selector.reasons(choices[0]))
                break
            moves.append(Move(tenant.id, None, nic.id, cores=self._cores(tenant.id)))
        self.fleet.journal = None
        if len(moves) < len(tenants):
            journal.take_back(mark)
            self.selector.departures = departures
            moves = []
        self.fleet.journal = before
        return moves, reasons

    def _preempt(self, found: Preemption) -> Decision:
        """Place an arrival where tenants of lower priority leave; these move where they fit, or else are queued."""
        leaving = []
        for identity in found.ids:
            home = self.fleet.nic_of(identity)
            assert home is not None
            leaving.append((home.tenants_by_id[identity], home))
            self.fleet.remove(identity)
        nic = None if found.nic is None else self.fleet.nics.find(found.nic) or self.fleet.open(found.kind, found.nic)
        arrived = self._placed(found.tenant.id, self._put(found.tenant, nic or found.kind))
        moves = []
        for tenant, home in reversed(leaving):  # the highest priority first
            target = self._place(self.choices(tenant))
            if target is None:
                self.waiting[tenant.id] = tenant
            if target is None or target.id != home.id:
                moves.append(Move(tenant.id, home.id, target.id if target else None))
        moves = _with_placed(moves, self._place_waiting())
        queued = tuple(move.id for move in moves if move.target is None)
        return replace(arrived, moves=(*arrived.moves, *moves), queued=queued)

    def _arrive_on(self, tenant: Tenant, nic_id: str) -> Decision:
        """Place an arrival on the NIC that it names, or refuse it."""
        nic = self.fleet.find(nic_id)
        if nic is None:
            raise Refused(f"'{nic_id}' is not a NIC of this fleet")
        if conflict := conflict_on(self.fleet, tenant, nic.kind, nic):
            raise Refused(f"{nic_id}: {conflict}")
        choices = self.choices(tenant)
        reasons = [misfit(nic, self.oracles[nic.kind.index], choice) for choice in choices]
        if None not in reasons:
            raise Refused(f"{nic_id}: {least_lasting(reasons)}")
        self.selector.observe(choices[0])
        chosen = choices[reasons.index(None)]
        home = self._put(chosen, nic if nic.tenants_by_id else self.fleet.open(nic.kind, nic.id))
        return self._placed(tenant.id, home)

    def _take_over(self, tenant: Tenant, nic_id: str, number: int) -> Decision:
        """Place an instance where a plan or a cluster has it, whatever the SLAs; only cores and counts are kept."""
        nic = self.fleet.find(nic_id)
        shut = nic or self.fleet.gone.get(nic_id)
        if shut is not None and shut.service not in (Service.UP, Service.CORDONED):
            raise Refused(f"{nic_id}: the NIC is {shut.service.value}")
        kinds = self.fleet.available() if nic is None else [nic.kind]
        kind = next((kind for kind in kinds if kind.index == number), None)
        if kind is None:
            raise Refused(f"there is no '{nic_id}' of kind {number}")
        if not kind.hosts(tenant.workload):
            raise Refused(f"{nic_id}: {tenant.workload.nf} does not run on a {kind.model}")
        present = () if nic is None else nic.tenants
        workloads = [tenant.workload for tenant in present]
        choices = [choice for choice in self.choices(tenant) if kind.hosts(choice.workload)]
        fitting = [choice for choice in choices if fits(kind, [*workloads, choice.workload])]
        if not fitting:
            few = shortage(kind, [*workloads, (choices or [tenant])[0].workload])
            raise Refused(f"{nic_id}: {'too few free cores' if few == 'cores' else 'the port is too slow'}")
        self.selector.observe(tenant)
        met = [True]
        if len(fitting) > 1:
            met = feasible(kind, self.oracles[kind.index], [[*present, choice] for choice in fitting])
        most = max(fitting, key=lambda choice: kind.cores_for(choice.workload))
        chosen = fitting[met.index(True)] if True in met else most
        if nic is not None and nic.service is Service.CORDONED and not nic.tenants_by_id:
            home = self.fleet.reuse(nic)
        else:
            home = nic if nic is not None and nic.tenants_by_id else self.fleet.open(kind, nic_id)
        return self._placed(tenant.id, self._put(chosen, home))

    def _join(self, event: Join) -> Decision:
        if not any(kind.model == event.nic_model for kind in self.fleet.kinds):
            known = ", ".join(dict.fromkeys(kind.model for kind in self.fleet.kinds))
            raise Refused(f"'{event.nic_model}' is not a NIC model of this fleet; it is one of {known}")
        nic, gone = self.fleet.find(event.nic), self.fleet.gone.get(event.nic)
        if nic is not None and nic.kind.model != event.nic_model:
            raise Refused(f"'{event.nic}' is a {nic.kind.model}")
        if gone is not None and gone.kind.model != event.nic_model:
            raise Refused(f"'{event.nic}' left as a {gone.kind.model}: choose another name")
        index = next((known.kind.index for known in (nic, gone) if known), None)
        kind = self.fleet.kind_in(event.nic_model, event.pool, event.domain, index)
        if nic is not None and (event.pool, event.domain) == (nic.kind.pool, nic.kind.domain):
            return Lookup("joined")  # sent again, because the answer was lost
        if gone is not None:
            self.fleet.join_again(gone)
            if gone.kind is not kind:
                self.fleet.assign(gone, kind)
        elif nic is not None:
            busy = nic.id in self.fleet.nics or nic.id in self.fleet.out_of_service
            if busy or not nic.has_name or nic.id in nic.kind.names:
                place = f"pool '{nic.kind.pool}' and domain '{nic.kind.domain}'"
                raise Refused(f"'{event.nic}' is in {place}, which only an idle NIC that has joined can change")
            self.fleet.assign(nic, kind)
        if gone is not None or nic is not None:
            return Decision("joined", tuple(self._place_waiting()))
        if NUMBERED_NIC_ID.fullmatch(event.nic) and numbers_nics(self.fleet.kinds):
            raise Refused(f"'{event.nic}' is a name that new NICs get: choose another")
        self.fleet.join(kind, event.nic)
        return Decision("joined", tuple(self._place_waiting()))

    def _leave(self, event: Leave) -> Decision:
        if event.nic in self.fleet.gone:  # sent again, because the answer was lost
            return Lookup("gone")
        nic = self.fleet.find(event.nic)
        if nic is None:
            raise Refused(f"'{event.nic}' was never in use")
        if nic.tenants_by_id:
            raise Refused(f"'{event.nic}' has tenants: {_name([*nic.tenants_by_id])}; drain it before")
        self.fleet.leave(nic)
        return Decision("gone")

    def _depart(self, event: Depart) -> Decision:
        if self.waiting.pop(event.id, None) is not None:
            return Decision("left")
        if self.fleet.nic_of(event.id) is None:
            raise Refused(f"'{event.id}' is not placed or queued")
        nic = self.fleet.remove(event.id)
        if self._repairer is not None:
            self._repairer.forget(event.id)
        return Decision("left", (Move(event.id, nic.id, None), *self._place_waiting()))

    def _change(self, event: Change) -> Decision:
        before = self._find(event.id)
        if before is None:
            raise Refused(f"'{event.id}' is not placed or queued")
        asked = before.asked
        after = replace(asked, workload=event.workload or asked.workload, sla=event.sla or asked.sla)
        self._refuse_unknown(after, is_new=False)
        if after.sla.min_kpps is not None and after.sla.min_kpps > after.workload.rate_kpps:
            rate, least = after.workload.rate_kpps, after.sla.min_kpps
            raise Refused(
                f"'{event.id}' has an SLA of {least:g} kpps, above the rate of {rate:g} kpps: give another SLA"
            )
        if event.id in self.waiting:
            self.waiting[event.id] = after
            moves = tuple(self._place_waiting())
            return Decision("placed" if event.id not in self.waiting else "queued", moves, cores=self._cores(event.id))
        home = self.fleet.nic_of(event.id)
        assert home is not None
        choices = self.choices(after)
        staying = stay(home, self.oracles[home.kind.index], before, after, choices)
        if staying is not None:
            self.fleet.remove(after.id)
            self.fleet.put_back(staying, home)
            as_before = home.kind.cores_for(before.workload) == home.kind.cores_for(staying.workload)
            moves = tuple(self._place_waiting())
            return Decision("kept" if as_before else "resized", moves, cores=self._cores(event.id))
        self.fleet.remove(event.id)
        nic = self._place(choices)
        if nic is not None:
            moves = (Move(event.id, home.id, nic.id), *self._place_waiting())
            return Decision("moved", moves, cores=self._cores(event.id))
        staying = stay_at_risk(home, before, after, choices)
        if staying is None:
            workloads = [*(tenant.workload for tenant in home.tenants), after.workload]
            self.fleet.put_back(before, home)
            few = "few cores" if shortage(home.kind, workloads) == "cores" else "low a line rate"
            raise Refused(f"'{after.workload.nf}' has too {few} on {home.id}, and fits on no other NIC")
        home = self.fleet.put_back(staying, home)
        violating = below_sla(self.oracles[home.kind.index], home.tenants)
        at_risk = tuple(tenant.id for tenant in violating)
        return Decision("at-risk", at_risk=at_risk, cores=self._cores(event.id))

    def _fail(self, event: Fail) -> Decision:
        nic = self._serving_nic(event.nic)
        self.fleet.withdraw(nic, Service.FAILED)
        moves = []
        for group in self._moved_at_once(nic):
            home = self._place_of_all(group) if len(group) > 1 else None
            for tenant in group:
                self.fleet.remove(tenant.id)
            for tenant in group:
                if home is None:
                    target = self._place(self.choices(tenant))
                else:
                    target = home = self._put(tenant, home)
                if target is None:
                    self.waiting[tenant.id] = tenant
                moves.append(Move(tenant.id, nic.id, target.id if target else None))
        moves = _with_placed(moves, self._freed_by(moves))
        return Decision("failed", tuple(moves), queued=tuple(move.id for move in moves if move.target is None))

    def _drain(self, event: Drain) -> Decision:
        nic = self._serving_nic(event.nic)
        self.fleet.withdraw(nic, Service.DRAINING)
        moves = []
        for group in self._moved_at_once(nic):
            choice = self._place_of_all(group) if len(group) > 1 else self.selector.choose(group[0])
            if choice is None:
                continue
            for tenant in group:
                self.fleet.remove(tenant.id)
                choice = self._put(tenant, choice)
                moves.append(Move(tenant.id, nic.id, choice.id))
        moves += self._freed_by(moves)
        return Decision("draining" if nic.tenants_by_id else "drained", tuple(moves))

    def _cordon(self, event: Cordon) -> Decision:
        nic = self._serving_nic(event.nic)
        if nic.service is Service.DRAINING:
            raise Refused(f"'{event.nic}' is draining, and takes no arrivals already")
        if nic.service is Service.CORDONED:  # sent again, because the answer was lost
            return Lookup("cordoned")
        self.fleet.withdraw(nic, Service.CORDONED)
        return Decision("cordoned")

    def _uncordon(self, event: Uncordon) -> Decision:
        nic = self._serving_nic(event.nic)
        if nic.service is Service.DRAINING:
            raise Refused(f"'{event.nic}' is draining: send a return")
        if nic.service is Service.UP:  # sent again, because the answer was lost
            return Lookup("up")
        self.fleet.restore(nic)
        return Decision("up", tuple(self._place_waiting()))

    def _return(self, event: Return) -> Decision:
        nic = self.fleet.out_of_service.get(event.nic)
        if nic is None:
            raise Refused(f"'{event.nic}' is not out of service")
        if nic.service is Service.CORDONED:
            raise Refused(f"'{event.nic}' is cordoned: send an uncordon")
        self.fleet.restore(nic)
        return Decision("returned", tuple(self._place_waiting()))

    def _rebalance(self, event: Rebalance) -> Decision:
        moves = Rebalancer(self.fleet, self.oracles, self.selector).moves(event)
        return Decision("rebalanced" if moves else "as-it-was", (*moves, *(self._place_waiting() if moves else ())))

    def _measure(self, event: Measure) -> Decision:
        if self.feedback is None:
            raise Refused("measurements are not learnt here")
        decision = learn(event, self.fleet, self.feedback, self.events + 1)
        self.follow_readings(drifted=decision.status == DRIFT)
        if self._repairer is None:
            return decision
        moves = self._repairer.moves(self.fleet.nics[event.nic], decision.instances, self.events + 1)
        return replace(decision, moves=(*moves, *(self._place_waiting() if moves else ())))

    def _where(self, event: Where) -> Lookup:
        nic = self.fleet.nic_of(event.id)
        if nic is not None:
            return Lookup("placed", found_on=nic.id, cores=self._cores(event.id))
        return Lookup("queued" if event.id in self.waiting else "unknown")

    def _dry_run(self, event: DryRun) -> ExpectedDecision:
        decision = self.copy().handle(event.event)
        return ExpectedDecision(decision.status, decision=decision)

    def _placed(self, identity: str, nic: Nic) -> Decision:
        """The decision on an arrival that is on a NIC now."""
        cores = shown_cores(nic.tenants_by_id[identity], nic.kind)
        return Decision("placed", (Move(identity, None, nic.id),), cores=cores)

    def _cores(self, identity: str) -> int | None:
        """As of `Decision`."""
        nic = self.fleet.nic_of(identity)
        return None if nic is None else shown_cores(nic.tenants_by_id[identity], nic.kind)

    def _refuse_unknown(self, tenant: Tenant, *, is_new: bool = True) -> None:
        """Raise Refused where no NIC hosts what an instance is to run, or its load or cores cannot be predicted.

        Of a new one, pools without a NIC are refused; those of one that is there may have lost their NICs meanwhile.
        """
        for kind in self.fleet.kinds:
            if kind.hosts(tenant.workload):
                break
        else:
            raise Refused(f"no NIC hosts '{tenant.workload.nf}'")
        known = not is_new or tenant.constraints.of("pool") in self.fleet.pools
        if not known and (fault := pool_fault(tenant, self.fleet.all_kinds)):
            raise Refused("; ".join(fault))
        if not tenant.workload.is_plain:
            predictors = [one.predictor for one in self.oracles if isinstance(one, PredictorOracle)]
            if not all(predictor.supports_loads for predictor in predictors):
                raise Refused("the predictor knows neither offered loads nor numbers of cores: leave them out")

    def _place(self, choices: Sequence[Tenant]) -> Nic | None:
        """Place an instance with the first of its choices of cores with which a NIC in use takes it, else a new one."""
        opening: tuple[Tenant, NicKind] | None = None
        for choice in choices:
            place = self.selector.choose(choice)
            if isinstance(place, Nic):
                return self._put(choice, place)
            if place is not None and opening is None:
                opening = choice, place
        return None if opening is None else self._put(*opening)

    def _put(self, tenant: Tenant, choice: Nic | NicKind) -> Nic:
        nic = self.fleet.open(choice) if isinstance(choice, NicKind) else choice
        self.fleet.place(tenant, nic)
        return nic

    def _place_waiting(self) -> list[Move]:
        """Place what fits of the queue, by priority, then first come first; a tenant that fits nowhere does not block
        the others.

        At most `MOST_TRIED` with enough cores that fit nowhere are tried; the next event goes on with the one behind,
        once it has tried half as many of higher priority.
        """
        if not self.waiting:
            return []
        moves, tried, has_cores = list[Move](), set[str](), self.selector.has_cores()
        failed_drop: dict[tuple[Workload, Constraints], float] = {}
        queue = sorted(self.waiting.values(), key=lambda tenant: -tenant.priority)
        first = next((at for at, tenant in enumerate(queue) if tenant.id == self._next_tried), 0)
        higher = sum(tenant.priority > queue[first].priority for tenant in queue[:first])
        self._next_tried = None
        groups: dict[str, list[Tenant]] = {}
        for waiting in self.waiting.values():
            if waiting.group:
                groups.setdefault(waiting.group, []).append(waiting)
        for at, tenant in enumerate((*queue[:higher], *queue[first:], *queue[:first])):
            done = tenant.id in tried or tenant.id not in self.waiting or (tenant.group and tenant.group not in groups)
            if done or (at < higher and len(tried) == MOST_TRIED // 2):
                continue
            drop, choices = tenant.sla.max_drop, self.choices(tenant)
            has_room = any(has_cores(choice.workload) for choice in choices)
            alike = tenant.workload, tenant.constraints
            if not has_room or (drop is not None and drop <= failed_drop.get(alike, -1.0)):
                continue
            if len(tried) == MOST_TRIED:
                self._next_tried = tenant.id
                break
            if tenant.group:
                placed = self._place_all(groups.pop(tenant.group))[0]
                moves += placed
                for move in placed:
                    del self.waiting[move.id]
                tried |= set[str]() if placed else {tenant.id}
                has_cores = self.selector.has_cores()
                continue
            nic = self._place(choices)
            if nic is not None:
                del self.waiting[tenant.id]
                moves.append(Move(tenant.id, None, nic.id, cores=self._cores(tenant.id)))
                has_cores = self.selector.has_cores()
            else:
                tried.add(tenant.id)
                if drop is not None:
                    failed_drop[alike] = drop
        return moves

    def _moved_at_once(self, nic: Nic) -> list[list[Tenant]]:
        """The tenants of a NIC, those that must be on one NIC together."""
        groups: dict[str, list[Tenant]] = {}
        for tenant in nic.tenants:
            groups.setdefault(tenant.constraints.of("together") or f"\0{tenant.id}", []).append(tenant)
        return [*groups.values()]

    def _place_of_all(self, group: Sequence[Tenant]) -> Nic | NicKind | None:
        """The first of the NICs that are best for one of these tenants, or a new one, that takes all of them."""
        value = group[0].constraints.of("together")
        if len(self.fleet.groups.members("together", value)) > len(group):
            return None
        movable = [replace(tenant, constraints=tenant.constraints.without("together")) for tenant in group]
        first, known = movable[0], self.selector.has_predicted(movable[0])
        ranked = [place for _, place in self.selector.rank(first, MOST_TRIED)] if known else []
        for place in (*ranked, *self.fleet.available()):
            nic, kind = (place, place.kind) if isinstance(place, Nic) else (None, place)
            present = () if nic is None else nic.tenants
            barred = any(conflict_on(self.fleet, tenant, kind, nic) for tenant in movable)
            if not barred and keeps_slas(kind, self.oracles[kind.index], [*present, *movable]):
                return place
        return None

    def _freed_by(self, moves: Iterable[Move]) -> list[Move]:
        """Place what waits, where tenants have left NICs or domains that others are kept off."""
        left = (self._find(move.id) for move in moves)
        return self._place_waiting() if any(tenant and tenant.constraints.values for tenant in left) else []

    def _find(self, tenant_id: str) -> Tenant | None:
        """The tenant on a NIC or in the queue; None for an unknown one."""
        nic = self.fleet.nic_of(tenant_id)
        return nic.tenants_by_id[tenant_id] if nic is not None else self.waiting.get(tenant_id)

    def _serving_nic(self, nic_id: str) -> Nic:
        nic = self.fleet.find(nic_id)
        if nic is None:
            raise Refused(self.miss(nic_id))
        if nic.service is Service.FAILED:
            raise Refused(f"'{nic_id}' failed before")
        return nic


def _alone(tenant: Tenant) -> Tenant:
    """The instance as it is once it is placed, whatever its group."""
    return replace(tenant, group="") if tenant.group else tenant


def _with_placed(moves: Sequence[Move], placed: Sequence[Move]) -> list[Move]:
    """Moves off NICs, then those of instances of the queue; one that left a NIC for the queue and was placed after all
    moved there at once."""
    left = {move.id: move.source for move in moves if move.target is None}
    back = {move.id for move in placed if move.id in left}
    return [move for move in moves if move.id not in back] + [
        replace(move, source=left[move.id]) if move.id in back else move for move in placed
    ]


_DECIDERS: dict[type, Callable[..., Decision]] = {
    Arrive: Engine._arrive,
    ArriveTogether: Engine._arrive_together,
    Depart: Engine._depart,
    Change: Engine._change,
    Fail: Engine._fail,
    Drain: Engine._drain,
    Cordon: Engine._cordon,
    Uncordon: Engine._uncordon,
    Join: Engine._join,
    Leave: Engine._leave,
    Return: Engine._return,
    Rebalance: Engine._rebalance,
    Measure: Engine._measure,
    Where: Engine._where,
    DryRun: Engine._dry_run,
}


# Measurements of production: what the engine makes of them.


MAX_NAMED_INSTANCES = 5


def learn(event: Measure, fleet: Fleet, feedback: Feedback, number: int) -> Learned:
    """Compare readings with what was predicted, then learn them; `number` is that of the event.

    Raises Refused where the readings are not of instances on that NIC, or nothing can be learnt of it.
    """
    nic = _nic(event, fleet, feedback)
    begun = feedback.begin(number)
    oracle = feedback.oracles[nic.kind.model]
    expected = dict(zip(nic.co_location, feedback.expect(nic.kind.model, nic.co_location), strict=True))
    judged, readings = [], []
    for instance in event.instances:
        tenant = nic.tenants_by_id[instance.id]
        values = instance.throughput_kpps, instance.offered_kpps, number
        reading = ProductionReading(nic.kind.model, nic.co_location, tenant.workload, tenant.id, *values)
        below = reading.is_below(tenant.required_kpps(oracle.solo(tenant.workload)))
        found = expected[tenant.workload]
        judged.append(JudgedInstance(instance.id, found.kpps, found.low_kpps, found.high_kpps, below))
        readings.append(replace(reading, below_sla=below is True))
    status = max(begun, feedback.learn(readings), key=STATUSES.index)
    return Learned(
        status, model=feedback.model, instances=tuple(judged), readings=tuple(readings), rows=feedback.take_rows()
    )


def _nic(event: Measure, fleet: Fleet, feedback: Feedback) -> Nic:
    """The NIC of the readings, which are checked."""
    nic = fleet.nics.get(event.nic)
    if nic is None:
        raise Refused(f"'{event.nic}' has no tenants")
    if nic.kind.model not in feedback.oracles:
        raise Refused(f"nothing is learnt of a {nic.kind.model}: its predictions are not those of a predictor")
    ids = [instance.id for instance in event.instances]
    if twice := sorted({identity for identity in ids if ids.count(identity) > 1}):
        raise Refused(f"measured twice in one event: {_name(twice)}")
    if absent := [identity for identity in ids if identity not in nic.tenants_by_id]:
        raise Refused(f"not on {event.nic}: {_name(absent)}")
    if more := [instance.id for instance in event.instances if _impossible(instance)]:
        raise Refused(f"throughput_kpps is above offered_kpps: {_name(more)}")
    return nic


def _impossible(one: MeasuredInstance) -> bool:
    return one.offered_kpps is not None and one.throughput_kpps > SATURATED_OFFER * one.offered_kpps


def _name(ids: list[str]) -> str:
    shown = ", ".join(f"'{identity}'" for identity in ids[:MAX_NAMED_INSTANCES])
    return shown + (f" and {len(ids) - MAX_NAMED_INSTANCES} more" if len(ids) > MAX_NAMED_INSTANCES else "")
