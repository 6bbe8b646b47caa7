"""Repair: who is seen below the SLA moves, alone, and does not move back and forth."""

from __future__ import annotations

from itertools import pairwise

from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Depart, Learned, Measure, MeasuredInstance, Move
from placer.fleet.learning.learning import correct
from placer.fleet.rebalance import EVENTS_BETWEEN_MOVES
from placer.model.fleet import Fleet, Tenant
from placer.model.oracle import PredictorOracle
from placer.model.sla import Sla
from placer.policy.rules import BEST_FIT
from placer.testing.strategies import TOY_TRAFFIC, catalogue
from profiles import Workload
from tests.placer.fleet.learning.toy_predictor import ToyPredictor

KINDS = catalogue((None, 1.0)).kinds


def engine_of(repairs: int, tenants: int = 4) -> Engine:
    """So many `b` that accept to lose a quarter, four on a NIC."""
    feedback, oracles = correct(KINDS, [PredictorOracle(ToyPredictor())])
    engine = Engine(Fleet(KINDS), oracles, BEST_FIT, feedback=feedback, repairs=repairs)
    for number in range(1, tenants + 1):
        engine.handle(Arrive(Tenant(str(number), Workload("b", TOY_TRAFFIC), Sla(max_drop=0.25))))
    return engine


def measure(engine: Engine, nic: str, offered: float = 1e4, **kpps: float) -> tuple[Move, ...]:
    """The moves after a measurement."""
    decision = engine.handle(Measure(nic, 1.0, tuple(MeasuredInstance(one, v, offered) for one, v in kpps.items())))
    assert isinstance(decision, Learned)
    return decision.moves


def test_an_instance_that_is_below_its_sla_twice_moves() -> None:
    """150 kpps of 200 are required; the others stay."""
    engine = engine_of(1)
    assert measure(engine, "nic-1", **{"1": 140.0, "2": 180.0}) == ()
    assert measure(engine, "nic-1", **{"1": 140.0, "2": 180.0}) == (Move("1", "nic-1", "nic-2"),)
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
    engine.handle(Depart("1"))
    engine.handle(Arrive(Tenant("1", Workload("b", TOY_TRAFFIC), Sla(max_drop=0.25))))
    home = engine.fleet.nic_of("1")
    assert home is not None
    assert measure(engine, home.id, **{"1": 140.0}) == ()
