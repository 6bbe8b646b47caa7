"""Rebalancing, in cases computed by hand. Repair: who is seen below the SLA moves, alone, and does not move back and
forth."""

from itertools import pairwise

from placer.fleet import events
from placer.fleet.engine import Engine
from placer.fleet.learning.learning import correct
from placer.fleet.rebalance import EVENTS_BETWEEN_MOVES
from placer.model.fleet import Fleet, Nic, Tenant
from placer.model.oracle import PredictorOracle
from placer.model.sla import Sla
from placer.policy.rules import BEST_FIT, FIRST_FIT
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload
from tests.placer.fleet.learning.toy_predictor import ToyPredictor
from tests.placer.fleet.toys import tenant

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


def test_a_nic_is_emptied_when_all_its_tenants_fit_elsewhere() -> None:
    """The last NIC has the fewest tenants; its `a` fits on the first NIC, and then there is nothing more to do."""
    engine = engine_with(
        [tenant("1", "d", 0.5), tenant("2", "d", 0.5)], [tenant(str(n), "b", 0.5) for n in (3, 4, 5, 6)],
        [tenant("7", "a", 0.5)],
    )  # fmt: skip
    assert moves(engine.handle(events.Rebalance(10))) == [("7", "nic-3", "nic-1", "empties a NIC")]
    assert engine.handle(events.Rebalance(10)) == events.Decision("as-it-was")


def test_no_tenant_moves_if_the_nic_cannot_be_emptied() -> None:
    """Of two tenants on the last NIC one fits elsewhere, and the other does not: both stay."""
    engine = engine_with(
        [tenant("1", "d", 0.5), tenant("2", "d", 0.5)],
        [tenant("3", "d", 0.5), tenant("4", "d", 0.5)],
        [tenant("5", "a", 0.5), tenant("6", "d", 0.5)],
    )
    assert engine.handle(events.Rebalance(10)).status == "as-it-was"
    assert [len(nic.tenants_by_id) for nic in engine.fleet.nics.values()] == [2, 2, 2]


def test_a_budget_that_is_too_small_to_empty_a_nic_is_not_spent() -> None:
    """Two moves would empty the second NIC; one alone would gain nothing."""
    nics = [[tenant(str(n), "b", 0.5) for n in (1, 2)], [tenant(str(n), "b", 0.5) for n in (3, 4)]]
    assert engine_with(*nics).handle(events.Rebalance(1)).moves == ()
    assert len(engine_with(*nics).handle(events.Rebalance(2)).moves) == 2


def test_moves_that_cost_more_than_a_nic_are_not_made() -> None:
    """Two moves at 0.5 each cost as much as the NIC that they empty."""
    nics = [[tenant(str(n), "b", 0.5) for n in (1, 2)], [tenant(str(n), "b", 0.5) for n in (3, 4)]]
    assert engine_with(*nics).handle(events.Rebalance(10, move_cost=0.5)).moves == ()
    assert len(engine_with(*nics).handle(events.Rebalance(10, move_cost=0.49)).moves) == 2


def test_a_risk_is_ended_by_the_move_that_helps() -> None:
    """The SLA of `c` is violated next to two `b`, and met next to one `d`."""
    engine = engine_with([tenant("1", "c", 0.1), tenant("2", "b", 0.5), tenant("3", "b", 0.5)], [tenant("4", "d", 0.5)])
    assert moves(engine.handle(events.Rebalance(1))) == [("1", "nic-1", "nic-2", "ends a risk")]
    assert engine.handle(events.Rebalance(1, move_cost=2.0)).moves == ()


def test_a_risk_that_is_not_worth_a_nic_stays() -> None:
    """Where no other NIC fits, ending the risk takes a new NIC at cost 1; it is opened when the gain is higher."""
    crowded = [tenant("1", "c", 0.1), tenant("2", "b", 0.5), tenant("3", "b", 0.5)]
    assert engine_with(crowded).handle(events.Rebalance(10)).moves == ()
    assert moves(engine_with(crowded).handle(events.Rebalance(10, risk_worth=3.0)))[0][3] == "ends a risk"


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
