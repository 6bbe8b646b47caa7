"""Rebalancing, in cases computed by hand. Repair: who is seen below the SLA moves, alone, and does not move back and
forth."""

from itertools import count, pairwise

import pytest

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
