"""The online engine: arrivals, departures, changes and failures in any order, each decided at once.

It holds the fleet, a selector that picks NICs, and the queue of waiting tenants. A tenant is moved only where it must
be: when its NIC fails or is drained, or when a change makes a tenant of the NIC violate its SLA.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from placer.fleet.arriving import place_arrival, place_group, reserve_place
from placer.fleet.cores import CoresChoices, shortage, stay, stay_at_risk
from placer.fleet.events import (
    Arrive,
    ArriveTogether,
    Change,
    Cordon,
    Decision,
    Depart,
    Drain,
    DrainTogether,
    DryRun,
    ExpectedDecision,
    Expire,
    Fail,
    FleetEvent,
    Join,
    Leave,
    Lookup,
    Measure,
    Move,
    Rebalance,
    Refused,
    Reserve,
    Return,
    Uncordon,
    Where,
)
from placer.fleet.learning.learning import DRIFT
from placer.fleet.measuring import learn
from placer.fleet.nic_events import cordon, drain, drain_together, fail, join, leave, return_nic, uncordon
from placer.fleet.nic_versions import NicVersions
from placer.fleet.queued_fleet import QueuedFleet
from placer.fleet.rebalance import Rebalancer
from placer.model.feasibility import below_sla
from profiles import Workload

REBUILT_AFTER, REBUILT_GROWTH = 256, 0.1
"""Indexes are built anew after so many more readings, and at least this share more: what comes later changes less."""


class Engine(QueuedFleet):
    """Decides on the events of a fleet."""

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
        tenant = self.find_tenant(tenant_id)
        return None if tenant is None else tenant.asked_workload

    def follow_models(self) -> bool:
        """Decide by the models that feedback has come to; returns whether they are others than before."""
        if self.feedback is None or self.feedback.deciders is self.oracles:
            return False
        self.oracles = self.feedback.deciders
        self._cores_choices = CoresChoices(self.fleet.kinds, self.oracles, self._neighbours)
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

    def _depart(self, event: Depart) -> Decision:
        if self.waiting.pop(event.id, None) is not None:
            return Decision("left")
        if self.fleet.nic_of(event.id) is None:
            raise Refused(f"'{event.id}' is not placed or queued")
        nic = self.fleet.remove(event.id)
        if self._repairer is not None:
            self._repairer.forget(event.id)
        return Decision("left", (Move(event.id, nic.id, None), *self.place_waiting()))

    def _expire(self, event: Expire) -> Decision:
        tenant = self.find_tenant(event.id)
        if tenant is None or tenant.reserved_until is None:  # it arrived, or another agent has noticed the time, too
            return Lookup("unknown")
        return replace(self._depart(Depart(event.id)), status="expired")

    def _change(self, event: Change) -> Decision:
        before = self.find_tenant(event.id)
        if before is None:
            raise Refused(f"'{event.id}' is not placed or queued")
        after = before.running(event.workload or before.asked_workload, event.sla or before.sla, free_cores=False)
        self.refuse_unknown(after, is_new=False)
        if after.sla.min_kpps is not None and after.sla.min_kpps > after.workload.rate_kpps:
            rate, least = after.workload.rate_kpps, after.sla.min_kpps
            raise Refused(
                f"'{event.id}' has an SLA of {least:g} kpps, above the rate of {rate:g} kpps: give another SLA"
            )
        if event.id in self.waiting:
            # with the cores of its former NIC, as without the change
            self.waiting[event.id] = after if event.workload is not None else replace(before, sla=after.sla)
            moves = tuple(self.place_waiting())
            return Decision(
                "placed" if event.id not in self.waiting else "queued", moves, cores=self.cores_of(event.id)
            )
        home = self.fleet.nic_of(event.id)
        assert home is not None
        choices = self.choices(after)
        staying = stay(home, self.oracles[home.kind.index], before, after, choices, self.selector.expects)
        if staying is not None:
            self.fleet.change(staying)
            as_before = home.kind.cores_for(before.workload) == home.kind.cores_for(staying.workload)
            moves = tuple(self.place_waiting())
            return Decision("kept" if as_before else "resized", moves, cores=self.cores_of(event.id))
        in_order = tuple(home.tenants_by_id)
        self.fleet.remove(event.id)
        nic = self.place(choices)
        if nic is not None:
            moves = (Move(event.id, home.id, nic.id), *self.place_waiting())
            return Decision("moved", moves, cores=self.cores_of(event.id))
        staying = stay_at_risk(home, before, after, choices)
        if staying is None:
            workloads = [*(tenant.workload for tenant in home.tenants), after.workload]
            self.fleet.put_back(before, home).keep_order(in_order)
            few = "few cores" if shortage(home.kind, workloads) == "cores" else "low a line rate"
            raise Refused(f"'{after.workload.nf}' has too {few} on {home.id}, and fits on no other NIC")
        home = self.fleet.put_back(staying, home)
        violating = below_sla(self.oracles[home.kind.index], home.tenants)
        at_risk = tuple(tenant.id for tenant in violating)
        return Decision("at-risk", at_risk=at_risk, cores=self.cores_of(event.id))

    def _rebalance(self, event: Rebalance) -> Decision:
        moves = Rebalancer(self.fleet, self.oracles, self.selector).moves(event)
        return Decision("rebalanced" if moves else "as-it-was", (*moves, *(self.place_waiting() if moves else ())))

    def _measure(self, event: Measure) -> Decision:
        if self.feedback is None:
            raise Refused("measurements are not learnt here")
        decision = learn(event, self.fleet, self.feedback, self.events + 1)
        self.follow_readings(drifted=decision.status == DRIFT)
        if self._repairer is None:
            return decision
        moves = self._repairer.moves(self.fleet.nics[event.nic], decision.instances, self.events + 1)
        return replace(decision, moves=(*moves, *(self.place_waiting() if moves else ())))

    def _where(self, event: Where) -> Lookup:
        return self.find_place(event.id)

    def _dry_run(self, event: DryRun) -> ExpectedDecision:
        decision = self.copy().handle(event.event)
        return ExpectedDecision(decision.status, decision=decision)


_DECIDERS: dict[type, Callable[..., Decision]] = {
    Arrive: place_arrival,
    ArriveTogether: place_group,
    Reserve: reserve_place,
    Expire: Engine._expire,
    Depart: Engine._depart,
    Change: Engine._change,
    Fail: fail,
    Drain: drain,
    DrainTogether: drain_together,
    Cordon: cordon,
    Uncordon: uncordon,
    Join: join,
    Leave: leave,
    Return: return_nic,
    Rebalance: Engine._rebalance,
    Measure: Engine._measure,
    Where: Engine._where,
    DryRun: Engine._dry_run,
}
