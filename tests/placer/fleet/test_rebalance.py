"""Rebalancing, in cases computed by hand. Repair: who is seen below the SLA moves, alone, and does not move back and
forth. A maintenance window: several NICs are emptied in the fewest moves, as many of them as there is room for."""

import json
from dataclasses import replace
from itertools import count, pairwise

import pytest

from placer.fleet import events
from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, event_line
from placer.fleet.event_shapes import Malformed
from placer.fleet.events import Arrive, Decision, Drain, DrainTogether, Fail, Refused
from placer.fleet.learning.learning import correct
from placer.fleet.rebalance import EVENTS_BETWEEN_MOVES
from placer.model.fleet import Fleet
from placer.model.groups import Constraints
from placer.model.nic import Nic, Service, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import PredictorOracle
from placer.model.sla import Sla
from placer.policy.rules import BEST_FIT, FIRST_FIT
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload
from tests.placer.fleet.learning.toy_predictor import ToyPredictor
from tests.placer.fleet.toys import READER, tenant

KIND = catalogue().kinds[0]


def engine_with(*nics: list[Tenant]) -> Engine:
    fleet = Fleet([KIND])
    for number, tenants in enumerate(nics, start=1):
        fleet.adopt(Nic(f"nic-{number}", KIND, number), tenants)
    return Engine(fleet, [ToyOracle()], FIRST_FIT)


def moves(decision: events.Decision) -> list[tuple[str, str | None, str | None, str]]:
    """Which tenant moves from where to where, and why."""
    return [
        (one.id, one.source, one.target, one.why) for one in decision.moves if isinstance(one, events.RebalanceMove)
    ]


def nics(*nfs: str) -> list[list[Tenant]]:
    """NICs with these NFs, called by their number; `c` accepts to lose a tenth, the others a half."""
    numbers = count(1)
    return [[tenant(next(numbers), nf, 0.1 if nf == "c" else 0.5) for nf in of_nic] for of_nic in nfs]


PAIRS, CROWDED = nics("bb", "bb"), nics("cbb")
EMPTIES, ENDS = "empties a NIC", "ends a risk"


@pytest.mark.parametrize(
    ("before", "event", "expected"),
    [
        # the last NIC has the fewest tenants; its `a` fits on the first NIC
        (nics("dd", "bbbb", "a"), events.Rebalance(10), [("7", "nic-3", "nic-1", EMPTIES)]),
        # of two tenants on the last NIC one fits elsewhere, and the other does not: both stay
        (nics("dd", "dd", "ad"), events.Rebalance(10), []),
        # two moves would empty the second NIC; one alone would gain nothing
        (PAIRS, events.Rebalance(1), []),
        (PAIRS, events.Rebalance(2), [(name, "nic-1", "nic-2", EMPTIES) for name in "12"]),
        # two moves at 0.5 each cost as much as the NIC that they empty
        (PAIRS, events.Rebalance(10, move_cost=0.5), []),
        (PAIRS, events.Rebalance(10, move_cost=0.49), [(name, "nic-1", "nic-2", EMPTIES) for name in "12"]),
        # the SLA of `c` is violated next to two `b`, and met next to one `d`
        (nics("cbb", "d"), events.Rebalance(1), [("1", "nic-1", "nic-2", ENDS)]),
        (nics("cbb", "d"), events.Rebalance(1, move_cost=2.0), []),
        # where no other NIC fits, ending the risk takes a new NIC at cost 1; it is opened when the gain is higher
        (CROWDED, events.Rebalance(10), []),
        (CROWDED, events.Rebalance(10, risk_worth=3.0), [("1", "nic-1", "nic-2", ENDS)]),
    ],
)
def test_moves_are_made_where_they_gain_more_than_they_cost(
    before: list[list[Tenant]], event: events.Rebalance, expected: list[tuple[str, str, str, str]]
) -> None:
    """Then there is nothing more to do."""
    engine = engine_with(*before)
    assert moves(engine.handle(event)) == expected
    assert engine.handle(event).status == "as-it-was"


KINDS = catalogue((None, 1.0)).kinds


def engine_of(repairs: int, tenants: int = 4) -> Engine:
    """So many `b` that accept to lose a quarter, four on a NIC."""
    feedback, oracles = correct(KINDS, [PredictorOracle(ToyPredictor())])
    engine = Engine(Fleet(KINDS), oracles, BEST_FIT, feedback=feedback, repairs=repairs)
    for number in range(1, tenants + 1):
        engine.handle(events.Arrive(Tenant(str(number), Workload("b", TOY_TRAFFIC), Sla(max_drop=0.25))))
    return engine


def measure(engine: Engine, nic: str, offered: float = 1e4, **kpps: float) -> tuple[events.Move, ...]:
    decision = engine.handle(
        events.Measure(nic, 1.0, tuple(events.MeasuredInstance(one, v, offered) for one, v in kpps.items()))
    )
    assert isinstance(decision, events.Learned)
    return decision.moves


def test_an_instance_that_is_below_its_sla_twice_moves() -> None:
    """150 kpps of 200 are required; the others stay."""
    engine = engine_of(1)
    assert measure(engine, "nic-1", **{"1": 140.0, "2": 180.0}) == ()
    assert measure(engine, "nic-1", **{"1": 140.0, "2": 180.0}) == (events.Move("1", "nic-1", "nic-2"),)
    assert {nic.id: len(nic.tenants_by_id) for nic in engine.fleet.nics.values()} == {"nic-1": 3, "nic-2": 1}


def test_without_repair_nobody_moves() -> None:
    """However often an SLA is violated."""
    engine = engine_of(0)
    assert [measure(engine, "nic-1", **{"1": 140.0}) for _ in range(4)] == [()] * 4


def test_a_reading_that_keeps_the_sla_or_does_not_say_begins_anew() -> None:
    """Below, above, below is not twice; neither is what was offered too little for."""
    engine = engine_of(1)
    for kpps in (140.0, 160.0, 140.0):
        assert measure(engine, "nic-1", **{"1": kpps}) == ()
    assert measure(engine, "nic-1", offered=140.0, **{"1": 140.0}) == ()


def test_moves_keep_their_budget() -> None:
    """Three are below, one moves."""
    engine = engine_of(1)
    low = {"1": 100.0, "2": 100.0, "3": 100.0}
    measure(engine, "nic-1", **low)
    assert len(measure(engine, "nic-1", **low)) == 1


def test_an_instance_does_not_move_back_and_forth() -> None:
    """Wherever it goes it is below its SLA beside others: it waits ever longer between moves."""
    engine = engine_of(1, tenants=11)
    moved = []
    for _ in range(1200):
        home = engine.fleet.nic_of("1")
        assert home is not None
        if len(home.tenants_by_id) == 1:
            break
        if measure(engine, home.id, **{"1": 100.0}):
            moved.append(engine.events)
    assert len(moved) <= 4
    assert all(later - earlier >= EVENTS_BETWEEN_MOVES for earlier, later in pairwise(moved))


def test_who_left_is_forgotten() -> None:
    """An instance of the same name begins anew."""
    engine = engine_of(1)
    measure(engine, "nic-1", **{"1": 140.0})
    engine.handle(events.Depart("1"))
    engine.handle(events.Arrive(Tenant("1", Workload("b", TOY_TRAFFIC), Sla(max_drop=0.25))))
    home = engine.fleet.nic_of("1")
    assert home is not None and measure(engine, home.id, **{"1": 140.0}) == ()


def named_kinds(count: int) -> tuple[NicKind, ...]:
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


def engine_on(*nfs_of: str, together: str = "") -> Engine:
    engine = Engine(Fleet(named_kinds(len(nfs_of))), [ToyOracle()], FIRST_FIT)
    for event in arrivals(*nfs_of, together=together):
        engine.handle(event)
    return engine


def moved(decision: Decision) -> dict[str, str | None]:
    assert len({move.id for move in decision.moves}) == len(decision.moves)
    return {move.id: move.target for move in decision.moves}


def test_no_tenant_moves_to_a_nic_of_the_window_as_it_would_one_after_the_other() -> None:
    """First fit would move `n1a0` to n2, and then again to n3."""
    engine = engine_on("a", "a", "a")
    twice = [move for nic in ("n1", "n2") for move in engine.copy().handle(Drain(nic)).moves]
    assert [move.target for move in twice] == ["n2", "n1"]
    decision = engine.handle(DrainTogether(("n1", "n2")))
    assert (decision.status, decision.draining) == ("drained", ())
    assert moved(decision) == {"n1a0": "n3", "n2a0": "n3"}
    assert {nic.service for nic in engine.fleet.out_of_service.values()} == {Service.DRAINING}


def test_with_too_little_room_as_many_nics_as_possible_become_empty() -> None:
    """n3 has room for three cores: for the one tenant of n2, or for one of the two of n1, which would empty none."""
    engine = engine_on("dd", "d", "db")
    decision = engine.handle(DrainTogether(("n1", "n2")))
    assert (decision.status, decision.draining) == ("draining", ("n1",)) and engine.fleet.find("n2").tenants == ()
    assert [tenant.id for tenant in engine.fleet.nics["n1"].tenants] == ["n1d0", "n1d1"]


def test_tenants_of_a_nic_that_cannot_be_emptied_move_where_they_fit_and_others_keep_their_order() -> None:
    engine = engine_on("dad", "ddb")
    decision = engine.handle(DrainTogether(("n1",)))
    assert (decision.status, decision.draining) == ("draining", ("n1",))
    assert moved(decision) == {} and [tenant.id for tenant in engine.fleet.nics["n1"].tenants] == [
        "n1d0", "n1a1", "n1d2",
    ]  # fmt: skip
    engine = engine_on("dad", "dda")
    decision = engine.handle(DrainTogether(("n1",)))
    assert moved(decision) == {"n1a1": "n2"} and decision.draining == ("n1",)


def test_members_of_a_group_leave_together() -> None:
    engine = engine_on("aa", "", together="g")
    assert moved(engine.handle(DrainTogether(("n1",)))) == {"n1a0": "n2", "n1a1": "n2"}


def test_a_window_with_a_nic_that_is_unknown_or_failed_is_refused_whole_with_every_fault() -> None:
    engine = engine_on("a", "", "")
    engine.handle(Fail("n3"))
    with pytest.raises(Refused, match=r"^'other' was never in use; 'n3' failed before$"):
        engine.handle(DrainTogether(("n1", "other", "n3")))
    assert engine.fleet.nics["n1"].service is Service.UP


def test_a_window_is_read_and_written_and_answered_with_its_nics() -> None:
    event, engine = DrainTogether(("n1", "n2")), engine_on("a", "d", "dd")
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
