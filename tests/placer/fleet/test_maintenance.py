"""A maintenance window: several NICs are emptied in the fewest moves, as many of them as there is room for."""

import json
from dataclasses import replace

import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, event_line
from placer.fleet.event_shapes import Malformed
from placer.fleet.events import Arrive, Decision, Drain, DrainTogether, Fail, Refused
from placer.model.fleet import Fleet, NicKind, Service, Tenant
from placer.model.groups import Constraints
from placer.model.sla import Sla
from placer.policy.rules import FIRST_FIT
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload
from tests.placer.fleet.toys import READER


def kinds(count: int) -> tuple[NicKind, ...]:
    """Toy NICs n1, n2 and so on of eight cores, of which `a` takes one, `b` two and `d` three."""
    (kind,) = catalogue((count, 1.0)).kinds
    return (replace(kind, names=tuple(f"n{number}" for number in range(1, count + 1))),)


def arrivals(*nfs_of: str, together: str = "") -> list[Arrive]:
    """A tenant for each NF on each NIC, called as its NIC, its place there and its NF."""
    constraints = Constraints((("together", together),)) if together else Constraints()
    return [
        Arrive(
            Tenant(f"n{number}{nf}{at}", Workload(nf, TOY_TRAFFIC), Sla(max_drop=0.9), constraints=constraints),
            f"n{number}",
        )
        for number, nfs in enumerate(nfs_of, start=1)
        for at, nf in enumerate(nfs)
    ]


def engine_of(*nfs_of: str, together: str = "") -> Engine:
    engine = Engine(Fleet(kinds(len(nfs_of))), [ToyOracle()], FIRST_FIT)
    for event in arrivals(*nfs_of, together=together):
        engine.handle(event)
    return engine


def moved(decision: Decision) -> dict[str, str | None]:
    assert len({move.id for move in decision.moves}) == len(decision.moves)
    return {move.id: move.target for move in decision.moves}


def test_no_tenant_moves_to_a_nic_of_the_window_as_it_would_one_after_the_other() -> None:
    """First fit would move `n1a0` to n2, and then again to n3."""
    engine = engine_of("a", "a", "a")
    twice = [move for nic in ("n1", "n2") for move in engine.copy().handle(Drain(nic)).moves]
    assert [move.target for move in twice] == ["n2", "n1"]
    decision = engine.handle(DrainTogether(("n1", "n2")))
    assert (decision.status, decision.draining) == ("drained", ())
    assert moved(decision) == {"n1a0": "n3", "n2a0": "n3"}
    assert {nic.service for nic in engine.fleet.out_of_service.values()} == {Service.DRAINING}


def test_with_too_little_room_as_many_nics_as_possible_become_empty() -> None:
    """n3 has room for three cores: for the one tenant of n2, or for one of the two of n1, which would empty none."""
    engine = engine_of("dd", "d", "db")
    decision = engine.handle(DrainTogether(("n1", "n2")))
    assert (decision.status, decision.draining) == ("draining", ("n1",)) and engine.fleet.find("n2").tenants == ()
    assert [tenant.id for tenant in engine.fleet.nics["n1"].tenants] == ["n1d0", "n1d1"]


def test_tenants_of_a_nic_that_cannot_be_emptied_move_where_they_fit_and_others_keep_their_order() -> None:
    engine = engine_of("dad", "ddb")
    decision = engine.handle(DrainTogether(("n1",)))
    assert (decision.status, decision.draining) == ("draining", ("n1",))
    assert moved(decision) == {} and [tenant.id for tenant in engine.fleet.nics["n1"].tenants] == [
        "n1d0", "n1a1", "n1d2",
    ]  # fmt: skip
    engine = engine_of("dad", "dda")
    decision = engine.handle(DrainTogether(("n1",)))
    assert moved(decision) == {"n1a1": "n2"} and decision.draining == ("n1",)


def test_members_of_a_group_leave_together() -> None:
    engine = engine_of("aa", "", together="g")
    assert moved(engine.handle(DrainTogether(("n1",)))) == {"n1a0": "n2", "n1a1": "n2"}


def test_a_window_with_a_nic_that_is_unknown_or_failed_is_refused_whole_with_every_fault() -> None:
    engine = engine_of("a", "", "")
    engine.handle(Fail("n3"))
    with pytest.raises(Refused, match=r"^'other' was never in use; 'n3' failed before$"):
        engine.handle(DrainTogether(("n1", "other", "n3")))
    assert engine.fleet.nics["n1"].service is Service.UP


def test_a_window_is_read_and_written_and_answered_with_its_nics() -> None:
    event, engine = DrainTogether(("n1", "n2")), engine_of("a", "d", "dd")
    assert READER.read(event_line(event)) == event and READER.read('{"event": "drain", "nic": "n1"}') == Drain("n1")
    assert json.loads(decision_line(event, engine.handle(event))) == {
        "ok": True, "event": "drain", "nics": ["n1", "n2"], "status": "draining", "draining": ["n2"],
        "moves": [{"id": "n1a0", "from": "n1", "to": "n3"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("", "give nic, or nics for several"),
        (', "nic": "n1", "nics": ["n2"]', "give nic, or nics for several"),
        (', "nics": ["n2", "n1", "n2"]', "nics: twice: 'n2'"),
        (', "nics": []', "nics: "),
    ],
)
def test_what_is_no_window_is_refused(keys: str, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        READER.read(f'{{"event": "drain"{keys}}}')
