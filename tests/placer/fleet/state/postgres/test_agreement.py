"""Races between agents: one wins, the other decides again, and nothing is ever doubled or overcommitted."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from placer.fleet.events import Arrive, Decision, Depart, Rebalance, Refused
from placer.fleet.state.postgres import agreement as agreements
from placer.fleet.state.postgres.agreement import Behind
from placer.fleet.state.postgres.state import REBALANCING_TASK
from placer.fleet.state.saved import KeptAnswer
from placer.testing.strategies import arrival, catalogue
from tests.placer.fleet.state.postgres.agents import Agent, picture
from tests.postgres import Cluster

KINDS = catalogue((3, 1.0)).kinds


def arrive(identity: str, nf: str = "d") -> Arrive:
    """An arrival that minds no neighbours."""
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
    """Decide on a batch without committing it."""
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
    assert mine.nic == theirs.nic == "nic-1"
    assert _finish(one) == 0
    assert _finish(other) is None
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
    assert _finish(other) == 0
    assert _finish(one) == 1
    assert one.engine.events == 5
    assert one.engine.versions.of("nic-1") == 5
    other.follow()
    assert picture(other.engine.fleet) == picture(one.engine.fleet)


def test_an_instance_that_arrives_at_two_agents_at_once_is_placed_once(pair: tuple[Agent, Agent]) -> None:
    """They choose different NICs, so that only the instance itself shows the race."""
    one, other = pair
    one.decide(arrive("x"), arrive("y"), arrive("z"))
    other.follow()
    _begin(one, Depart("x"), arrive("a"))
    _begin(other, Arrive(arrival("a", 0, "d", 0.9).tenant, nic="nic-2"))
    assert _finish(one) == 0
    assert _finish(other) is None
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
    assert _finish(one) == 0
    assert _finish(other) is None
    found = other.state.agreement.fetch(["k", "l"]).answers
    assert found == {"k": KeptAnswer(b"d", 200, '{"n": 1, "version": 1}')}


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
    assert mine.nic != theirs.nic
    assert _finish(one) == 0
    assert _finish(other) is None
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
    assert other.engine.events == one.engine.events == 1
    assert link.epoch == 2


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
    assert other.state.leads(REBALANCING_TASK)
    assert _finish(one) is None
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
