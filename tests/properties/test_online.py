"""The decisions of the engine hold before an auditor that knows only the log, for any events in any order."""

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from placer.fleet import events
from placer.fleet.engine import Engine
from placer.fleet.queued_fleet import WHEN_FULL
from placer.fleet.state.store import State
from placer.model.fleet import Fleet
from placer.model.groups import Constraints
from placer.model.nic import Service, Tenant
from placer.model.sla import Sla
from placer.policy.rules import RULES_BY_NAME
from placer.testing.strategies import ToyOracle, catalogue
from profiles import TrafficProfile, Workload
from tests.effort import examples
from tests.placer.fleet.audit import Auditor

DROPS = st.sampled_from([0.0, 0.03, 0.05, 0.08, 0.1, 0.2, 0.5])
SLAS = DROPS.map(lambda drop: Sla(max_drop=drop)) | st.sampled_from([60.0, 95.0, 380.0]).map(
    lambda kpps: Sla(min_kpps=kpps)
)
WORKLOADS = st.builds(
    lambda nf, flows: Workload(nf, TrafficProfile(flows, 1500)), st.sampled_from("abcd"), st.sampled_from([1e3, 2e3])
)
FLEETS = st.sampled_from([[(None, 1.0)], [(3, 1.0)], [(1, 0.0), (2, 1.0)], [(1, 2.0), (None, 1.0)]])
PLACES = st.lists(
    st.tuples(st.sampled_from(["", "", "p", "q"]), st.sampled_from(["", "r1", "r2"])), min_size=2, max_size=4
)
"""Pools and domains of kinds."""
GROUPS = st.sampled_from(["", "", "", "g", "h"])
LIMITS = st.sampled_from(["", "", "", "1 g", "2 g", "2 h"])
OWNERS = st.sampled_from(["", "", "alice", "bob"])
PRIORITIES = st.sampled_from([0, 0, 0, -1, 7])


class Online(RuleBasedStateMachine):
    """A fleet under random events, which is read back from its file now and then."""

    @initialize(
        kinds=FLEETS,
        rule=st.sampled_from(list(RULES_BY_NAME.values())),
        when_full=st.sampled_from(WHEN_FULL),
        most_patterns=st.sampled_from([4_000, 30, 1]),
    )
    def begin(self, kinds: list[tuple[int | None, float]], rule: object, when_full: str, most_patterns: int) -> None:
        self.kinds = catalogue(*kinds).kinds
        self.constrained = False
        self.start(rule, when_full, most_patterns)

    @initialize(dry_runs=st.sampled_from([False, False, True]))
    def choose(self, dry_runs: bool) -> None:
        self.dry_runs = dry_runs

    def start(self, rule: object, when_full: str, most_patterns: int) -> None:
        self.options = {"rule": rule, "when_full": when_full, "most_patterns": most_patterns}
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "state.db"
        self.state = State(self.path, self.kinds)
        self.engine = Engine(Fleet(self.kinds), self.oracles(), **self.options)  # type: ignore[arg-type]
        self.auditor = Auditor(self.kinds, self.oracles())
        self.arrivals = 0

    def oracles(self) -> list[ToyOracle]:
        return [ToyOracle() for _ in self.kinds]

    def handle(self, event: events.FleetEvent) -> events.Decision:
        """A dry run of the event has the decision that the event then has, and leaves no trace in the state."""
        if self.dry_runs:
            self.state.commit()
            before = self.path.read_bytes()
            expected = self.engine.handle(events.DryRun(event))
            self.state.record(events.DryRun(event), expected, self.engine.fleet)
            self.state.commit()
            assert isinstance(expected, events.ExpectedDecision) and self.path.read_bytes() == before
        decision = self.engine.handle(event)
        assert not self.dry_runs or expected.decision == decision
        self.state.record(event, decision, self.engine.fleet)
        fleet = self.engine.fleet
        kind_of = {nic.id: nic.kind.index for nic in (*fleet.all_nics(), *fleet.gone.values())}
        assert self.auditor.follow(event, decision, kind_of) == []
        return decision

    def present(self) -> list[str]:
        return sorted({*self.auditor.places, *self.auditor.waiting})

    def nics(self, *, closed: bool) -> list[str]:
        known = sorted(nic.id for nic in self.engine.fleet.all_nics())
        return [nic for nic in known if (nic in self.auditor.closed) is closed]

    @rule(
        workload=WORKLOADS, sla=SLAS, data=st.data(), priority=PRIORITIES, owner=OWNERS,
        way=st.sampled_from(["arrive", "preempt", "reserve"]),
    )  # fmt: skip
    def arrive(self, workload: Workload, sla: Sla, data: st.DataObject, priority: int, owner: str, way: str) -> None:
        self.arrivals += 1
        constraints = self.draw_constraints(data) if self.constrained else Constraints()
        tenant = Tenant(
            f"nf-{self.arrivals}", workload, sla, constraints=constraints, priority=priority, owner=owner,
            labels=(("made", f"{self.arrivals}"),) if owner else (),
        )  # fmt: skip
        if way == "reserve":
            self.handle(events.Reserve(replace(tenant, reserved_until=float(self.arrivals)), ttl_s=1.0))
        else:
            self.handle(events.Arrive(tenant, preempt=way == "preempt"))

    @precondition(lambda self: self.auditor.reserved)
    @rule(data=st.data(), other_owner=st.booleans())
    def take(self, data: st.DataObject, other_owner: bool) -> None:
        """An arrival takes the place that is reserved for it, unless it asks for something else."""
        chosen = self.auditor.tenants[data.draw(st.sampled_from(sorted(self.auditor.reserved)))]
        before, home = self.engine.events, self.auditor.places.get(chosen.id)
        wanted = replace(chosen, reserved_until=None, group="")
        if other_owner:
            with pytest.raises(events.Refused, match="owner"):
                self.engine.handle(events.Arrive(replace(wanted, owner="carol")))
            assert self.engine.events == before
        decision = self.handle(events.Arrive(wanted))
        assert isinstance(decision, events.TakenPlace) and (decision.nic, decision.moves) == (home, ())

    @precondition(lambda self: self.auditor.reserved)
    @rule(now=st.integers(1, 60))
    def end_reservations(self, now: int) -> None:
        """All that are due, and none twice."""
        due = self.engine.due_reservations(now)
        assert {*due} == {one for one in self.auditor.reserved if self.auditor.tenants[one].reserved_until <= now}
        for identity in due:
            assert self.handle(events.Expire(identity)).status == "expired"
            assert isinstance(self.engine.handle(events.Expire(identity)), events.Lookup)

    def draw_constraints(self, data: st.DataObject) -> Constraints:
        pools = sorted({kind.pool for kind in self.engine.fleet.all_kinds})
        given = {name: data.draw(GROUPS) for name in ("spread", "apart", "together")}
        given |= {name: data.draw(LIMITS) for name in ("most_per_nic", "most_per_domain")}
        given["exclusive"] = data.draw(OWNERS)
        asked = data.draw(st.sampled_from(["|".join(filter(None, pools)), *pools]))
        pool = asked or ("" if "" in pools else pools[0])
        return Constraints(tuple(sorted((name, value) for name, value in {**given, "pool": pool}.items() if value)))

    @rule(wanted=st.lists(st.tuples(WORKLOADS, SLAS), min_size=1, max_size=5), data=st.data())
    def arrive_together(self, wanted: list[tuple[Workload, Sla]], data: st.DataObject) -> None:
        """All are placed, or none; sent again, the group is where it is."""
        self.arrivals += 1
        group = f"group-{self.arrivals}"
        constraints = self.draw_constraints(data) if self.constrained else Constraints()
        members = (Tenant(f"{group}-{at}", *found, constraints=constraints) for at, found in enumerate(wanted))
        tenants = tuple(replace(tenant, group=group) for tenant in members)
        before = {nic.id: nic.tenants for nic in self.engine.fleet.nics.values()}
        decision = self.handle(events.ArriveTogether(group, tenants))
        assert len(decision.moves) == (len(tenants) if decision.status == "placed" else 0)
        assert decision.moves or before == {nic.id: nic.tenants for nic in self.engine.fleet.nics.values()}
        if decision.status != "rejected":
            again = self.engine.handle(events.ArriveTogether(group, tenants))
            places = tuple((tenant.id, self.auditor.places.get(tenant.id)) for tenant in tenants)
            assert isinstance(again, events.Lookup) and (again.status, again.placements) == (decision.status, places)

    @precondition(lambda self: self.auditor.reserved != {*self.present()})
    @rule(data=st.data())
    def arrive_again(self, data: st.DataObject) -> None:
        """The same arrival is answered with its placement, and nothing changes."""
        chosen = data.draw(st.sampled_from(sorted({*self.present()} - self.auditor.reserved)))
        decision = self.engine.handle(events.Arrive(replace(self.auditor.tenants[chosen], group="")))
        assert isinstance(decision, events.Lookup)
        assert decision == self.engine.handle(events.Where(chosen))
        assert (decision.nic, decision.moves) == (self.auditor.places.get(chosen), ())
        assert decision.status == ("queued" if chosen in self.auditor.waiting else "placed")

    @precondition(lambda self: self.present())
    @rule(data=st.data())
    def depart(self, data: st.DataObject) -> None:
        self.handle(events.Depart(data.draw(st.sampled_from(self.present()))))

    @precondition(lambda self: self.auditor.places)
    @rule(data=st.data(), flows=st.sampled_from([1e3, 2e3, 3e3]), sla=SLAS | st.none())
    def change(self, data: st.DataObject, flows: float, sla: Sla | None) -> None:
        chosen = data.draw(st.sampled_from(self.present()))
        workload = self.engine.workload_of(chosen)
        assert workload is not None
        self.handle(events.Change(chosen, Workload(workload.nf, TrafficProfile(flows, 1500)), sla))

    def services(self) -> dict[str, Service]:
        return {nic.id: nic.service for nic in self.engine.fleet.out_of_service.values()}

    @precondition(lambda self: self.nics(closed=False) or Service.CORDONED in self.services().values())
    @rule(data=st.data(), event=st.sampled_from([events.Fail, events.Drain, events.Cordon]))
    def withdraw(self, data: st.DataObject, event: type[events.Fail | events.Drain | events.Cordon]) -> None:
        cordoned = [nic for nic, service in self.services().items() if service is Service.CORDONED]
        self.handle(event(data.draw(st.sampled_from([*self.nics(closed=False), *cordoned]))))

    @precondition(lambda self: self.nics(closed=False))
    @rule(data=st.data())
    def drain_together(self, data: st.DataObject) -> None:
        """Each tenant moves once, never to a NIC of the window; one NIC after the other takes no fewer moves."""
        window = data.draw(st.lists(st.sampled_from(self.nics(closed=False)), min_size=1, max_size=3, unique=True))
        one_by_one = self.engine.copy()
        decision = self.handle(events.DrainTogether(tuple(window)))
        moved = [move.id for move in decision.moves if move.source in window]
        assert len({*moved}) == len(moved) and not {*window} & {move.target for move in decision.moves}
        assert {*decision.draining} == {*window} & {*self.auditor.places.values()}
        assert decision.status == ("draining" if decision.draining else "drained")
        found = [one_by_one.handle(events.Drain(nic)) for nic in window]
        if not decision.draining and all(one.status == "drained" for one in found):
            assert len(moved) <= sum(move.source in window for one in found for move in one.moves)

    @precondition(lambda self: self.nics(closed=True))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        nic = data.draw(st.sampled_from(self.nics(closed=True)))
        self.handle(events.Uncordon(nic) if self.services()[nic] is Service.CORDONED else events.Return(nic))

    def empty(self) -> list[str]:
        return sorted(nic.id for nic in self.engine.fleet.all_nics() if not nic.tenants_by_id)

    @precondition(lambda self: self.empty())
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """It is sent again after its answer was lost, too."""
        event = events.Leave(data.draw(st.sampled_from(self.empty())))
        assert self.handle(event).status == "gone"
        assert isinstance(self.engine.handle(event), events.Lookup)

    @rule(
        data=st.data(), number=st.integers(0, 2), place=st.sampled_from([("", ""), ("", "r1"), ("n", ""), ("p", "r2")])
    )
    def join(self, data: st.DataObject, number: int, place: tuple[str, str]) -> None:
        """A NIC joins, one that left joins again, or one that is idle joins elsewhere."""
        fleet = self.engine.fleet
        name = data.draw(st.sampled_from([f"rack-{number}", *sorted(fleet.gone)]))
        nic, place = fleet.find(name), place if self.constrained else ("", "")
        idle = nic is not None and not nic.tenants_by_id and nic.service is Service.UP
        if nic is None or (idle and (nic.kind.pool, nic.kind.domain) != place):
            known = nic or fleet.gone.get(name)
            self.handle(events.Join(name, self.kinds[0].model if known is None else known.kind.model, *place))

    @rule(budget=st.sampled_from([1, 3, 100]))
    def rebalance(self, budget: int) -> None:
        """Moves stay within the budget, each pays, the fleet improves, and a second run finds nothing to do.

        Tables that are being built are complete before: what they add would be found by the second run alone.
        """
        while self.engine.selector.rebuilding:
            self.engine.selector.advance()
        before = self.badness()
        moves = self.handle(events.Rebalance(budget)).moves
        paying = [move for move in moves if isinstance(move, events.RebalanceMove)]
        assert len(paying) <= budget
        assert all(move.gain > move.cost for move in paying)
        if len(moves) > len(paying):
            return  # tenants of the queue took what became free
        if paying:
            assert self.badness() < before
        if len(paying) < budget - 8 and self.options["most_patterns"] == 4_000:
            assert not self.handle(events.Rebalance(budget)).moves

    def badness(self) -> tuple[int, float]:
        """Tenants that are expected to violate their SLA, and the cost of the NICs in use."""
        nics = self.engine.fleet.nics.values()
        below = [one for nic in nics for one in self.auditor.violating(nic.kind.index, nic.tenants)]
        return len(below), sum(nic.kind.cost for nic in nics)

    @rule()
    def restart(self) -> None:
        before, opened, counts = self.services(), self.engine.fleet.opened, self.counts()
        queue = [*self.engine.waiting.values()]
        self.state.close()
        self.state = State(self.path, self.kinds)
        self.engine = Engine(self.state.fleet, self.oracles(), waiting=self.state.waiting, **self.options)  # type: ignore[arg-type]
        assert (self.services(), self.engine.fleet.opened, self.counts()) == (before, opened, counts)
        assert [*self.engine.waiting.values()] == queue

    def counts(self) -> dict[int | str, tuple[float, int]]:
        """How many NICs of each kind there are, and how many of them are idle."""
        fleet = self.engine.fleet
        found = {kind.key: (fleet.count_of(kind), fleet.idle(kind)) for kind in fleet.all_kinds}
        return {key: counts for key, counts in found.items() if any(counts)}

    @invariant()
    def fleet_is_as_logged(self) -> None:
        if not hasattr(self, "engine"):
            return
        here = {tenant.id: nic.id for nic in self.engine.fleet.nics.values() for tenant in nic.tenants}
        assert here == self.auditor.places
        assert set(self.engine.waiting) == self.auditor.waiting
        assert set(self.engine.fleet.out_of_service) == set(self.auditor.closed)
        assert set(self.engine.fleet.gone) == self.auditor.gone
        tenants = [*self.engine.fleet.all_tenants(), *self.engine.waiting.values()]
        assert {one.id for one in tenants if one.reserved_until is not None} == self.auditor.reserved
        assert set(self.engine.fleet.reservations) == self.auditor.reserved & set(here)
        owned = Counter(one.owner for one in self.engine.fleet.all_tenants() if one.owner)
        assert {owner: count for owner, (count, _) in self.engine.fleet.owned.items()} == owned

    def teardown(self) -> None:
        if hasattr(self, "state"):
            self.state.close()
            self.folder.cleanup()


class Constrained(Online):
    """A fleet whose instances have constraints, and whose NICs are in pools and domains."""

    @initialize(
        places=PLACES, count=st.sampled_from([1, 2, None]), rule=st.sampled_from(list(RULES_BY_NAME.values())),
        when_full=st.sampled_from(WHEN_FULL), most_patterns=st.sampled_from([4_000, 1]), family=st.booleans(),
    )  # fmt: skip
    def begin(  # type: ignore[override]
        self,
        places: list[tuple[str, str]],
        count: int | None,
        rule: object,
        when_full: str,
        most_patterns: int,
        family: bool,
    ) -> None:
        """In a family, kinds share their tables and indexes."""
        self.family = family
        (kind,) = catalogue((count, 1.0)).kinds
        self.kinds = tuple(
            replace(kind, index=at, pool=pool, domain=domain) for at, (pool, domain) in enumerate(places)
        )
        self.constrained = True
        self.start(rule, when_full, most_patterns)

    def oracles(self) -> list[ToyOracle]:
        return [ToyOracle()] * len(self.kinds) if self.family else super().oracles()


TestOnline = Online.TestCase
TestOnline.settings = settings(max_examples=examples(40), stateful_step_count=40)
TestConstrained = Constrained.TestCase
TestConstrained.settings = settings(max_examples=examples(40), stateful_step_count=40)
