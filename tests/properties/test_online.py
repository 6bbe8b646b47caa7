"""Whatever happens in whatever order, the engine's answers hold before an auditor that knows only the log."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from placer.model.fleet import Fleet, Tenant
from placer.model.sla import Sla
from placer.online.engine import WHEN_FULL, Engine
from placer.online.events import Answer, Arrive, Change, Depart, Drain, Event, Fail, Rebalance, Return, Step
from placer.online.store import State
from placer.policy.rules import RULES
from profiles import TrafficProfile, Workload
from tests.placer.online.audit import Auditor
from placer.testing.toy import ToyOracle, catalogue

DROPS = st.sampled_from([0.0, 0.03, 0.05, 0.08, 0.1, 0.2, 0.5])
SLAS = DROPS.map(lambda drop: Sla(max_drop=drop)) | st.sampled_from([60.0, 95.0, 380.0]).map(
    lambda kpps: Sla(min_kpps=kpps)
)
WORKLOADS = st.builds(
    lambda nf, flows: Workload(nf, TrafficProfile(flows, 1500)), st.sampled_from("abcd"), st.sampled_from([1e3, 2e3])
)
FLEETS = st.sampled_from([[(None, 1.0)], [(3, 1.0)], [(1, 0.0), (2, 1.0)], [(1, 2.0), (None, 1.0)]])


class Online(RuleBasedStateMachine):
    """A fleet that lives through anything, and is read back from its file now and then."""

    @initialize(
        kinds=FLEETS,
        rule=st.sampled_from(list(RULES.values())),
        when_full=st.sampled_from(WHEN_FULL),
        most_patterns=st.sampled_from([4_000, 30, 1]),
    )
    def begin(self, kinds: list[tuple[int | None, float]], rule: object, when_full: str, most_patterns: int) -> None:
        self.kinds = catalogue(*kinds).kinds
        self.options = {"rule": rule, "when_full": when_full, "most_patterns": most_patterns}
        self.folder = tempfile.TemporaryDirectory()
        self.state = State(Path(self.folder.name) / "state.db", self.kinds)
        self.engine = Engine(Fleet(self.kinds), self.oracles(), **self.options)  # type: ignore[arg-type]
        self.auditor = Auditor(self.kinds, self.oracles())
        self.came = 0

    def oracles(self) -> list[ToyOracle]:
        return [ToyOracle() for _ in self.kinds]

    def happen(self, event: Event) -> Answer:
        answer = self.engine.handle(event)
        self.state.record(event, answer, self.engine.fleet)
        kind_of = {nic.id: nic.kind.index for nic in self.engine.fleet.all_nics()}
        assert self.auditor.follow(event, answer, kind_of) == []
        return answer

    def present(self) -> list[str]:
        return sorted({*self.auditor.places, *self.auditor.waiting})

    def nics(self, *, closed: bool) -> list[str]:
        known = sorted(nic.id for nic in self.engine.fleet.all_nics())
        return [nic for nic in known if (nic in self.auditor.closed) is closed]

    @rule(workload=WORKLOADS, sla=SLAS)
    def arrive(self, workload: Workload, sla: Sla) -> None:
        self.came += 1
        self.happen(Arrive(Tenant(f"nf-{self.came}", workload, sla)))

    @precondition(lambda self: self.present())
    @rule(data=st.data())
    def depart(self, data: st.DataObject) -> None:
        self.happen(Depart(data.draw(st.sampled_from(self.present()))))

    @precondition(lambda self: self.auditor.places)
    @rule(data=st.data(), flows=st.sampled_from([1e3, 2e3, 3e3]), sla=SLAS | st.none())
    def change(self, data: st.DataObject, flows: float, sla: Sla | None) -> None:
        chosen = data.draw(st.sampled_from(self.present()))
        workload = self.engine.workload_of(chosen)
        assert workload is not None
        self.happen(Change(chosen, Workload(workload.nf, TrafficProfile(flows, 1500)), sla))

    @precondition(lambda self: self.nics(closed=False))
    @rule(data=st.data(), fails=st.booleans())
    def withdraw(self, data: st.DataObject, fails: bool) -> None:
        nic = data.draw(st.sampled_from(self.nics(closed=False)))
        self.happen(Fail(nic) if fails else Drain(nic))

    @precondition(lambda self: self.nics(closed=True))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        self.happen(Return(data.draw(st.sampled_from(self.nics(closed=True)))))

    @rule(budget=st.sampled_from([1, 3, 100]))
    def rebalance(self, budget: int) -> None:
        """Nothing gets worse, budgets are kept, and what is done is not done or undone again."""
        before = self.badness()
        moves = self.happen(Rebalance(budget)).moves
        steps = [move for move in moves if isinstance(move, Step)]
        assert len(steps) <= budget
        assert all(step.gain > step.cost for step in steps)
        if len(moves) > len(steps):
            return  # who waited took the room that was made
        if steps:
            assert self.badness() < before
        if len(steps) < budget - 8 and self.options["most_patterns"] == 4_000:
            assert not self.happen(Rebalance(budget)).moves

    def badness(self) -> tuple[int, float]:
        """Tenants that are expected to miss their SLA, and what the NICs in use cost."""
        nics = self.engine.fleet.nics.values()
        below = [one for nic in nics for one in self.auditor.keeps(nic.kind.index, nic.tenants)]
        return len(below), sum(nic.kind.cost for nic in nics)

    @rule()
    def die_and_come_back(self) -> None:
        self.state.close()
        self.state = State(Path(self.folder.name) / "state.db", self.kinds)
        fleet, waiting = self.state.fleet()
        self.engine = Engine(fleet, self.oracles(), waiting=waiting, **self.options)  # type: ignore[arg-type]

    @invariant()
    def is_what_the_log_says(self) -> None:
        if not hasattr(self, "engine"):
            return
        here = {tenant.id: nic.id for nic in self.engine.fleet.nics.values() for tenant in nic.tenants}
        assert here == self.auditor.places
        assert set(self.engine.waiting) == self.auditor.waiting
        assert set(self.engine.fleet.out_of_service) == set(self.auditor.closed)

    def teardown(self) -> None:
        if hasattr(self, "state"):
            self.state.close()
            self.folder.cleanup()


TestOnline = Online.TestCase
TestOnline.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
