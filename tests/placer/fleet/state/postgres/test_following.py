"""Agents that follow have the fleet that others made; what is taken back leaves no trace."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from placer.fleet.engine import QUEUE, REJECT, Engine
from placer.fleet.events import Arrive, Change, Depart, Drain, Fail, FleetEvent, Join, Rebalance, Refused, Return
from placer.model.fleet import Fleet, NicKind, Service
from placer.model.sla import Sla
from placer.testing.strategies import ToyOracle, arrival, catalogue
from tests.placer.fleet.state.postgres.agents import Agent, picture
from tests.postgres import Cluster

KINDS = catalogue((6, 1.0), (3, 2.0)).kinds
NAMED = tuple(replace(kind, names=names) for kind, names in zip(KINDS, (("east", "west"), ("north",)), strict=True))


def any_event(draw: random.Random, fleet: Fleet) -> FleetEvent:
    """An event of any kind, most often of an instance."""
    identity = f"i{draw.randrange(30)}"
    named = [nic.id for nic in fleet.all_nics()] or ["nic-1"]
    out = list(fleet.out_of_service) or named
    return draw.choices(
        (
            Arrive(arrival(identity, 0, draw.choice("abcd"), draw.choice((0.1, 0.3, 0.9))).tenant),
            Depart(identity),
            Change(identity, sla=Sla(draw.choice((0.05, 0.2, 0.9)))),
            Fail(draw.choice(named)),
            Drain(draw.choice(named)),
            Return(draw.choice(out)),
            Join(f"rack-{draw.randrange(4)}", "toy-1"),
            Rebalance(4),
        ),
        (40, 15, 10, 2, 3, 6, 1, 2),
    )[0]


@pytest.mark.parametrize("when_full", [REJECT, QUEUE])
@pytest.mark.parametrize("kinds", [KINDS, NAMED])
def test_what_is_taken_back_leaves_no_trace(when_full: str, kinds: Sequence[NicKind]) -> None:
    """Batches of ten events of any kind, taken back, between others that stay."""
    draw = random.Random(3)
    engine = Engine(Fleet(kinds), [ToyOracle(), ToyOracle()], when_full=when_full)
    for _ in range(150):
        before, queue = picture(engine.fleet, engine), dict(engine.waiting)
        opened = engine.fleet.opened
        journal = engine.fleet.begin_journal()
        for _ in range(10):
            _try(engine, any_event(draw, engine.fleet))
        engine.fleet.journal = None
        journal.take_back()
        engine.waiting.clear()
        engine.waiting.update(queue)
        assert picture(engine.fleet, engine) == before
        assert engine.fleet.opened == opened
        _try(engine, any_event(draw, engine.fleet))


@pytest.mark.long
@pytest.mark.parametrize("when_full", [REJECT, QUEUE])
@pytest.mark.parametrize(("kinds", "seed"), [(KINDS, 5), (NAMED, 7)])
def test_agents_that_follow_have_the_same_fleet(
    postgres: Cluster, when_full: str, kinds: Sequence[NicKind], seed: int
) -> None:
    """Two decide in turn on events of any kind, a third only follows, and a fourth begins with the tables."""
    draw = random.Random(seed)
    address = postgres.database()
    agents = [Agent.of(address, kinds, when_full) for _ in range(3)]
    for _ in range(120):
        one = agents[draw.randrange(2)]
        one.follow()
        one.decide(*(any_event(draw, one.engine.fleet) for _ in range(draw.choice((1, 5)))))
    late = Agent.of(address, kinds, when_full)
    expected = picture(late.engine.fleet, late.engine)
    assert any(nic.service is Service.FAILED for nic in late.engine.fleet.all_nics())
    for agent in agents:
        agent.follow()
        assert picture(agent.engine.fleet, agent.engine) == expected
        assert agent.engine.events == late.engine.events
        versions = {nic_id: agent.engine.versions.of(nic_id) for nic_id in expected["nics"]}
        assert versions == {nic_id: late.engine.versions.of(nic_id) for nic_id in expected["nics"]}
    for agent in (*agents, late):
        agent.state.close()


def _try(engine: Engine, event: FleetEvent) -> None:
    try:
        engine.handle(event)
    except Refused:
        return
