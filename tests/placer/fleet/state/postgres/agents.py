"""Agents over toy NICs that share a state, each with a fleet of its own in memory."""

from dataclasses import dataclass
from typing import Any

from placer.fleet.engine import Engine
from placer.fleet.events import Decision, FleetEvent, Refused
from placer.fleet.queued_fleet import REJECT
from placer.fleet.state.postgres.state import SharedState
from placer.model.fleet import Fleet
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.pools import WHOLE_POOL
from placer.testing.strategies import ToyOracle


@dataclass
class Agent:
    state: SharedState
    engine: Engine

    @classmethod
    def of(
        cls,
        address: str,
        kinds: tuple[NicKind, ...],
        when_full: str = REJECT,
        *,
        picky: bool = False,
        oracle: type[Oracle] = ToyOracle,
    ) -> "Agent":
        """An agent that begins with what is in the state; one that is not `picky` prefers no NIC."""
        state = SharedState(address, kinds)
        engine = Engine(
            state.fleet, [oracle() for _ in kinds], when_full=when_full, waiting=state.waiting, events=state.events
        )
        if not picky:
            state.pool = WHOLE_POOL
        state.attach(engine)
        return cls(state, engine)

    def decide(self, *events: FleetEvent) -> list[Decision | Refused]:
        decisions: list[Decision | Refused] = []

        def work() -> None:
            decisions.clear()
            decisions.extend(self.handle(event) for event in events)

        self.state.agreement.decide(self.engine, work)
        return decisions

    def handle(self, event: FleetEvent) -> Decision | Refused:
        """What is decided on an event of the batch under way."""
        try:
            decision = self.engine.handle(event)
        except Refused as refused:
            return refused
        self.state.record(event, decision, self.engine.fleet)
        return decision

    def follow(self) -> None:
        self.state.agreement.follow(self.engine, self.state.agreement.fetch().batches)


def picture(fleet: Fleet, engine: Engine | None = None) -> dict[str, Any]:
    known = (*fleet.all_nics(), *fleet.gone.values())
    nics = {nic.id: (nic.kind.index, nic.number, nic.service.value, frozenset(nic.tenants)) for nic in known}
    kinds = [(fleet.in_use(kind), fleet.idle(kind), kind in fleet.available()) for kind in fleet.kinds]
    return {"nics": nics, "kinds": kinds, "waiting": list(engine.waiting.values()) if engine else []}
