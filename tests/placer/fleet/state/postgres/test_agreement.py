"""Races between agents: one wins, the other decides again, and nothing is ever doubled or overcommitted. Agents that
follow have the fleet that others made; what is taken back leaves no trace."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from placer.fleet.engine import Engine
from placer.fleet.events import (
    Arrive,
    ArriveTogether,
    Change,
    Cordon,
    Decision,
    Depart,
    Drain,
    DryRun,
    Fail,
    FleetEvent,
    Join,
    Leave,
    Rebalance,
    Refused,
    Return,
    Uncordon,
)
from placer.fleet.queued_fleet import QUEUE, REJECT
from placer.fleet.state.postgres import agreement as agreements
from placer.fleet.state.postgres.agreement import Behind
from placer.fleet.state.postgres.state import REBALANCING_TASK
from placer.fleet.state.saved import KeptAnswer
from placer.model.fleet import Fleet
from placer.model.groups import Constraints
from placer.model.nic import Service
from placer.model.nic_kind import NicKind
from placer.model.sla import Sla
from placer.testing.strategies import ToyOracle, arrival, catalogue
from tests.placer.fleet.state.postgres.agents import Agent, picture
from tests.postgres import Cluster

KINDS = catalogue((3, 1.0)).kinds


def arrive(identity: str, nf: str = "d") -> Arrive:
    return Arrive(arrival(identity, 0, nf, 0.9).tenant)


@pytest.fixture
def pair(postgres: Cluster) -> Any:
    """Two agents that prefer the same NICs."""
    address = postgres.database()
    agents = Agent.of(address, KINDS), Agent.of(address, KINDS)
    yield agents
    for one in agents:
        one.state.close()


def _begin(agent: Agent, *events: Arrive | Depart) -> list[Decision | Refused]:
    agreement = agent.state.agreement
    agreement.begin(agent.engine, agreement.fetch())
    found = [agent.handle(event) for event in events]
    agreement.seal(agent.engine)
    return found


def _finish(agent: Agent) -> int | None:
    agent.state.agreement.commit()
    return agent.state.agreement.finish(agent.engine)


def test_who_commits_later_on_the_same_nic_takes_back_and_has_what_the_other_did(pair: tuple[Agent, Agent]) -> None:
    """Both open the first NIC; the second one decides again, and its instance joins the first one's."""
    one, other = pair
    (mine,), (theirs,) = _begin(one, arrive("a")), _begin(other, arrive("b"))
    assert isinstance(mine, Decision) and isinstance(theirs, Decision)
    assert mine.nic == theirs.nic == "nic-1" and _finish(one) == 0 and _finish(other) is None
    assert picture(other.engine.fleet) == picture(one.engine.fleet)
    assert (other.state.agreement.conflicts, other.state.agreement.repeated) == (1, 1)
    (again,) = other.decide(arrive("b"))
    assert isinstance(again, Decision) and again.nic == "nic-1"
    assert [event for event, _ in other.state.log()][1].startswith('{"event": "arrive", "id": "b"')


def test_batches_on_different_nics_both_succeed_and_numbers_follow_the_commits(pair: tuple[Agent, Agent]) -> None:
    """The later one learns that its event has the number after the other's."""
    one, other = pair
    one.decide(arrive("a"), arrive("b"), arrive("c"))
    other.follow()
    _begin(one, Depart("a")), _begin(other, Depart("c"))
    assert _finish(other) == 0 and _finish(one) == 1 and one.engine.events == 5
    assert one.engine.versions.of("nic-1") == 5
    other.follow()
    assert picture(other.engine.fleet) == picture(one.engine.fleet)


@pytest.mark.parametrize("name", ["apart", "together"])
def test_two_agents_keep_a_group_although_they_choose_different_nics(postgres: Cluster, name: str) -> None:
    """The later one decides again; a third that begins then has the constraints, too."""
    (kind,) = catalogue((3, 1.0)).kinds
    kinds = (replace(kind, domain="r1", names=("m", "n"), count=2), replace(kind, index=1, count=1))
    address = postgres.database()
    one, other = Agent.of(address, kinds), Agent.of(address, kinds)
    first, second = (
        replace(arrive(identity).tenant, constraints=Constraints(((name, "g"),))) for identity in ("a", "b")
    )
    _begin(one, Arrive(first, "m")), _begin(other, Arrive(second, "n"))
    assert _finish(one) == 0 and _finish(other) is None
    (again,) = other.decide(Arrive(second))
    assert isinstance(again, Decision) and again.nic == ("m" if name == "together" else "nic-3")
    third = Agent.of(address, kinds)
    assert picture(third.engine.fleet) == picture(other.engine.fleet)
    for agent in (one, other, third):
        agent.state.close()


def test_an_instance_that_arrives_at_two_agents_at_once_is_placed_once(pair: tuple[Agent, Agent]) -> None:
    """They choose different NICs, so that only the instance itself shows the race."""
    one, other = pair
    one.decide(arrive("x"), arrive("y"), arrive("z"))
    other.follow()
    _begin(one, Depart("x"), arrive("a"))
    _begin(other, Arrive(arrival("a", 0, "d", 0.9).tenant, nic="nic-2"))
    assert _finish(one) == 0 and _finish(other) is None
    (again,) = other.decide(arrive("a"))
    assert isinstance(again, Decision) and (again.status, again.nic) == ("placed", "nic-1")
    assert other.engine.events == one.engine.events


def test_one_key_gets_one_answer_from_two_agents(pair: tuple[Agent, Agent]) -> None:
    """The later one finds the earlier one's answer when it decides again."""
    one, other = pair
    _begin(one, arrive("a")), _begin(other, arrive("b", "a"))
    for agent, text in ((one, '{"n": 1}'), (other, '{"n": 2}')):
        agent.state.answers.keep("k", KeptAnswer(b"d", 200, text, 1))
        agent.state.agreement.seal(agent.engine)
    assert _finish(one) == 0 and _finish(other) is None
    assert other.state.agreement.fetch(["k", "l"]).answers == {"k": KeptAnswer(b"d", 200, '{"n": 1, "version": 1}')}


def test_kinds_have_no_more_nics_than_there_are(postgres: Cluster) -> None:
    """Two agents open the last NIC, under different names: one does, and the other rejects."""
    kinds = catalogue((1, 1.0)).kinds
    address = postgres.database()
    one, other = Agent.of(address, kinds, picky=True), Agent.of(address, kinds, picky=True)
    one.state.beat()
    one.engine.fleet.belong_to(one.state.pool)
    assert {one.state.pool.rank, other.state.pool.rank} == {0, 1}
    (mine,), (theirs,) = _begin(one, arrive("a")), _begin(other, arrive("b"))
    assert isinstance(mine, Decision) and isinstance(theirs, Decision)
    assert mine.nic != theirs.nic and _finish(one) == 0 and _finish(other) is None
    found = other.decide(arrive("b"), arrive("c"), arrive("d"))
    assert [decision.status for decision in found if isinstance(decision, Decision)] == ["placed"] + 2 * ["rejected"]
    one.state.close()
    other.state.close()


@pytest.mark.parametrize("committed", [False, True])
def test_a_connection_that_is_cut_at_the_commit_leaves_no_doubt(
    pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """Whether the commit had happened is looked up once no transaction of before can happen any more."""
    one, other = pair
    _begin(one, arrive("a"))
    link = one.state.agreement.link
    execute = link.connection.execute

    def cut(statement: Any, *values: Any) -> Any:
        found = execute(statement, *values) if committed else None
        link.connection.close()
        raise psycopg.OperationalError(f"cut after {found}")

    monkeypatch.setattr(link.connection, "execute", cut)
    assert _finish(one) == (0 if committed else None)
    if not committed:
        one.decide(arrive("a"))
    other.follow()
    assert picture(other.engine.fleet) == picture(one.engine.fleet)
    assert other.engine.events == one.engine.events == 1 and link.epoch == 2


def test_a_transaction_of_an_older_connection_is_refused(pair: tuple[Agent, Agent]) -> None:
    """As when a connection is cut while the database still works on its commit."""
    one, other = pair
    _begin(one, arrive("a"))
    one.state.agreement.link.epoch -= 1
    assert _finish(one) is None
    one.decide(arrive("a"))
    other.follow()
    assert other.engine.events == 1


def test_a_stopped_agent_that_has_the_whole_fleet_holds_the_others_up_for_a_while_only(
    pair: tuple[Agent, Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction is ended; when it comes back, it decides again."""
    monkeypatch.setattr(agreements, "LONGEST_HOLD_MS", 300)
    one, other = pair
    agreement = one.state.agreement
    agreement.begin(one.engine, agreement.fetch(alone=True), alone=True)
    one.handle(arrive("a"))
    agreement.seal(one.engine)
    other.decide(arrive("b"))
    assert _finish(one) is None
    one.decide(arrive("a"))
    other.follow()
    assert picture(other.engine.fleet) == picture(one.engine.fleet)


def test_a_rebalance_of_a_former_holder_of_the_lease_is_refused(pair: tuple[Agent, Agent]) -> None:
    """It was stopped before its commit, and another agent has taken the lease meanwhile."""
    one, other = pair
    one.decide(arrive("a"), arrive("b"), arrive("c"))
    assert one.state.leads(REBALANCING_TASK)
    agreement = one.state.agreement
    agreement.begin(one.engine, agreement.fetch())
    one.handle(Rebalance(5))
    agreement.seal(one.engine)
    one.state._ask("UPDATE leases SET expires = now() - interval '1 second'")
    assert other.state.leads(REBALANCING_TASK) and _finish(one) is None
    one.state.leases.lose(REBALANCING_TASK)
    assert not one.state.leads(REBALANCING_TASK)
    assert [event for event, _ in one.state.log() if "rebalance" in event] == []
    other.follow()
    (found,) = other.decide(Rebalance(5))
    assert isinstance(found, Decision)


def test_an_agent_that_is_too_far_behind_says_so(pair: tuple[Agent, Agent]) -> None:
    """What it would have to follow is no longer kept."""
    one, other = pair
    one.decide(arrive("a"))
    one.decide(arrive("b"))
    one.state._ask("SELECT placer_prune(1, 1)")
    with pytest.raises(Behind, match="start the service again"):
        other.follow()


TWO_KINDS = catalogue((6, 1.0), (3, 2.0)).kinds
NAMED = tuple(replace(kind, names=names) for kind, names in zip(TWO_KINDS, (("east", "west"), ("north",)), strict=True))


def any_event(draw: random.Random, fleet: Fleet) -> FleetEvent:
    """An event of any kind, most often of an instance."""
    identity = f"i{draw.randrange(30)}"
    named = [nic.id for nic in fleet.all_nics()] or ["nic-1"]
    out = list(fleet.out_of_service) or named
    if draw.random() < 0.1:
        return DryRun(any_event(draw, fleet))
    if draw.random() < 0.1:
        tenants = (arrival(f"{identity}-{nf}", 0, nf, 0.3).tenant for nf in "abd")
        return ArriveTogether(identity, tuple(replace(tenant, group=identity) for tenant in tenants))
    if draw.random() < 0.1:
        identity = f"{identity}-{draw.choice('abd')}"
    return draw.choices(
        (
            Arrive(arrival(identity, 0, draw.choice("abcd"), draw.choice((0.1, 0.3, 0.9))).tenant),
            Depart(identity),
            Change(identity, sla=Sla(draw.choice((0.05, 0.2, 0.9)))),
            Fail(draw.choice(named)),
            Drain(draw.choice(named)),
            Cordon(draw.choice(named)),
            Uncordon(draw.choice(out)),
            Return(draw.choice(out)),
            Join(f"rack-{draw.randrange(4)}", "toy-1"),
            Join(draw.choice([*fleet.gone] or named), draw.choice(("toy-0", "toy-1"))),
            Leave(draw.choice(named)),
            Rebalance(4),
        ),
        (40, 15, 10, 4, 3, 2, 3, 6, 1, 2, 2, 2),
    )[0]


@pytest.mark.parametrize("when_full", [pytest.param(REJECT, marks=pytest.mark.long), QUEUE])
@pytest.mark.parametrize("kinds", [pytest.param(TWO_KINDS, marks=pytest.mark.long), NAMED])
@pytest.mark.long
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
        assert picture(engine.fleet, engine) == before and engine.fleet.opened == opened
        _try(engine, any_event(draw, engine.fleet))


@pytest.mark.long
@pytest.mark.parametrize("when_full", [REJECT, QUEUE])
@pytest.mark.parametrize(("kinds", "seed"), [(TWO_KINDS, 5), (NAMED, 7)])
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
    agents[0].follow()
    used = [nic.id for nic in agents[0].engine.fleet.nics.values()]
    agents[0].decide(Fail(used[0]), Fail(used[1]), Leave(used[1]))
    late = Agent.of(address, kinds, when_full)
    expected = picture(late.engine.fleet, late.engine)
    assert any(nic.service is Service.FAILED for nic in late.engine.fleet.all_nics())
    assert used[1] in late.engine.fleet.gone
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


def test_agents_that_follow_know_the_pool_and_the_domain_of_a_nic_that_joined(pair: tuple[Agent, Agent]) -> None:
    one, other = pair
    one.decide(Join("m", "toy-0", "edge", "r1"), Join("n", "toy-0", domain="r1"))
    one.decide(Join("n", "toy-0", domain="r2"))
    other.follow()
    third = Agent.of(one.state._link.address, KINDS)
    for agent in (one, other, third):
        found = [(nic.id, nic.kind.pool, nic.kind.domain) for nic in agent.engine.fleet.all_nics() if nic.has_name]
        assert sorted(found) == [("m", "edge", "r1"), ("n", "", "r2")]
    third.state.close()
