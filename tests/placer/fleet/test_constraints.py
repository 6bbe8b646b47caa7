"""A running fleet keeps the constraints of its instances, whatever happens to their NICs."""

from dataclasses import replace
from pathlib import Path

import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import event_line
from placer.fleet.event_shapes import Malformed
from placer.fleet.events import (
    Arrive,
    Change,
    Decision,
    Depart,
    Drain,
    DryRun,
    ExpectedDecision,
    Fail,
    FleetEvent,
    Join,
    Leave,
    Move,
    Rebalance,
    Refused,
    Where,
)
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.state.store import State
from placer.fleet.what_if import WhatIf, complete
from placer.model.fleet import Fleet
from placer.model.nic_kind import NicKind
from placer.model.sla import Sla
from placer.policy.rules import FIRST_FIT
from placer.testing.strategies import ToyOracle, catalogue
from tests.placer.fleet.toys import READER, read_arrival, tenant


def kinds(*places: tuple[str, str], count: int | None = None) -> tuple[NicKind, ...]:
    """Kinds of toy NICs, one for each (pool, domain)."""
    (kind,) = catalogue((count, 1.0)).kinds
    return tuple(replace(kind, index=at, pool=pool, domain=domain) for at, (pool, domain) in enumerate(places))


def engine(*places: tuple[str, str], count: int | None = None, when_full: str = "reject") -> Engine:
    """First fit on toy NICs of these pools and domains, so many of each."""
    of = kinds(*(places or (("", ""),)), count=count)
    return Engine(Fleet(of), [ToyOracle() for _ in of], FIRST_FIT, when_full=when_full)


def arrive(one: Engine, identity: str, nf: str = "d", nic: str | None = None, **constraints: str) -> Decision:
    return one.handle(Arrive(tenant(identity, nf, **constraints), nic))


def homes(one: Engine) -> dict[str, str]:
    return {here.id: nic.id for nic in one.fleet.nics.values() for here in nic.tenants}


def reasons(decision: Decision) -> list[tuple[str, tuple[str, ...], int]]:
    return [(reason.cause, reason.met, reason.nics) for reason in decision.reasons]


def test_what_meets_another_of_its_group_is_rejected_with_the_constraint_and_the_ids() -> None:
    one = engine(count=2)
    placed = [arrive(one, name, spread="g").nic for name in "ab"]
    third = arrive(one, "c", spread="g")
    assert placed == ["nic-1", "nic-2"] and third.status == "rejected"
    assert reasons(third)[:2] == [("spread", ("a",), 1), ("spread", ("b",), 1)]


def test_reasons_count_each_nic_once_where_two_groups_bar_it() -> None:
    one = engine(count=3)
    assert [arrive(one, "a", spread="g", together="t").nic, arrive(one, "b", spread="g").nic] == ["nic-1", "nic-2"]
    third = reasons(arrive(one, "c", spread="g", together="t"))
    assert third[:2] == [("together", ("a",), 1), ("spread", ("a",), 1)] and not any(nics for *_, nics in third[2:])


def test_pools_and_domains_bar_whole_kinds() -> None:
    one = engine(("edge", "r1"), ("edge", "r2"), ("", "r1"), count=2)
    assert arrive(one, "a", pool="edge", apart="g").nic == arrive(one, "other", pool="edge").nic
    assert arrive(one, "b", pool="edge", apart="g").nic != arrive(one, "x").nic
    last = arrive(one, "c", pool="edge", apart="g")
    assert [(cause, met) for cause, met, _ in reasons(last)] == [
        ("apart", ("a",)), ("apart", ("b",)), ("pool", ()), ("apart", ("a",)), ("apart", ("b",)), ("pool", ()),
    ]  # fmt: skip
    assert {arrive(one, name).nic for name in "yz"} <= {nic.id for nic in one.fleet.nics.values() if not nic.kind.pool}


def test_who_waits_for_a_group_is_placed_when_a_member_leaves() -> None:
    """And one without a group, behind it, when there is room that the group does not bar."""
    one = engine(count=1, when_full=QUEUE)
    assert [arrive(one, *given, spread=group).status for *given, group in (("a", "g"), ("b", "g"), ("c", "h"))] == [
        "placed", "queued", "placed",
    ]  # fmt: skip
    assert arrive(one, "full").status == "queued"
    assert [move.id for move in one.handle(Depart("c")).moves] == ["c", "full"]
    assert [move.id for move in one.handle(Depart("a")).moves] == ["a", "b"]


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"pool": "core"}, "no NIC of the fleet is in pool 'core'; pools are edge"),
        ({}, "all NICs of the fleet are in pools; fill pool: edge"),
    ],
)
def test_a_pool_that_no_nic_has_is_refused(constraints: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        arrive(engine(("edge", "")), "a", **constraints)


def test_an_arrival_on_a_named_nic_and_a_repeated_one_keep_their_constraints() -> None:
    one = engine()
    arrive(one, "a", spread="g")
    with pytest.raises(Refused, match="nic-1: spread: no two of the group on one NIC; it would meet a"):
        arrive(one, "b", nic="nic-1", spread="g")
    assert arrive(one, "a", spread="g") == one.handle(Where("a"))
    with pytest.raises(Refused, match="'a' already exists with other constraints"):
        arrive(one, "a", spread="h")


@pytest.mark.parametrize("event", [Fail("nic-1"), Drain("nic-1")])
def test_who_belongs_together_moves_together(event: Fail | Drain) -> None:
    """To the NIC on which both fit, not to the first on which one does."""
    one = engine(count=3)
    for name in ("a", "b"):
        arrive(one, name, together="g")
    arrive(one, "x")
    assert homes(one) == {"a": "nic-1", "b": "nic-1", "x": "nic-2"}
    one.handle(event)
    assert homes(one) == {"a": "nic-3", "b": "nic-3", "x": "nic-2"}


def test_a_group_that_moved_frees_its_domain_for_who_waits() -> None:
    first, second = kinds(("", "r1"), ("", "r2"))
    of = [replace(first, names=("m1", "m2"), count=2), replace(second, names=("n1",), count=1)]
    one = Engine(Fleet(of), [ToyOracle(), ToyOracle()], FIRST_FIT, when_full=QUEUE)
    arrive(one, "a", nf="b", apart="g")
    for name in ("x1", "x2"):
        arrive(one, name, nic="n1")
    assert arrive(one, "w", apart="g").status == "queued"
    assert one.handle(Fail("m1")).moves == (Move("a", "m1", "n1"), Move("w", None, "m2"))


def test_who_loses_its_nic_and_waits_frees_its_domain_for_who_waits() -> None:
    one = engine(("", "r1"), count=2, when_full="queue")
    assert [one.handle(Arrive(tenant("a", drop=0.0, apart="g"))).nic, arrive(one, "b", "a").nic] == ["nic-1", "nic-2"]
    assert arrive(one, "c", "a", apart="g").status == "queued"
    failed = one.handle(Fail("nic-1"))
    assert failed.moves == (Move("a", "nic-1", None), Move("c", None, "nic-2")) and failed.queued == ("a",)


def test_a_change_keeps_the_constraints() -> None:
    one = engine()
    arrive(one, "a", spread="g")
    one.handle(Change("a", sla=Sla(max_drop=0.4)))
    assert one.fleet.nics["nic-1"].tenants[0].constraints.of("spread") == "g"
    assert arrive(one, "b", spread="g").nic == "nic-2"


def test_rebalancing_empties_no_nic_onto_one_that_a_group_bars() -> None:
    one = engine()
    arrive(one, "a", spread="g")
    arrive(one, "b", spread="g")
    assert one.handle(Rebalance(9)).moves == ()
    arrive(one, "c", nic="nic-1")
    arrive(one, "d", spread="h", nic="nic-2")
    one.handle(Rebalance(9))
    assert homes(one)["a"] != homes(one)["b"]


def test_questions_name_the_constraint_and_whom_it_meets() -> None:
    one = engine(("", ""), ("edge", ""), ("edge", "r1"), count=1)
    arrive(one, "a", spread="g")
    arrive(one, "e", pool="edge", spread="e")
    arrive(one, "f", pool="edge", spread="e")
    asked, what_if = tenant("ask", spread="g"), WhatIf(one)
    assert complete(what_if.places(asked)) == []
    assert [(found.cause, found.met, found.nics) for found in complete(what_if.verdicts(asked))] == [
        ("pool: only on NICs of one of these pools", (), 2), ("spread: no two of the group on one NIC", ("a",), 1),
    ]  # fmt: skip
    assert [place.nic for place in complete(what_if.places(tenant("ask", pool="edge"), count=2))] == ["nic-2", "nic-3"]


def test_of_copies_that_are_asked_for_each_has_a_nic_of_its_own() -> None:
    one = engine(count=3)
    arrive(one, "x")
    places = complete(WhatIf(one).places(tenant("ask", spread="g"), count=4))
    assert [place.nic for place in places] == ["nic-1", "nic-2", "nic-3"] and homes(one) == {"x": "nic-1"}


def test_an_event_has_the_constraints_of_a_trace() -> None:
    given = read_arrival(together="t", spread="g", pool="p1|p2", apart="ä")
    assert given.constraints.values == (("apart", "ä"), ("pool", "p1|p2"), ("spread", "g"), ("together", "t"))
    assert read_arrival(spread=None).constraints.values == ()


@pytest.mark.parametrize("value", ["", "p1||p2", "|", "a\nb", " g", "x" * 257, 7, ["g"]])
@pytest.mark.parametrize("name", ["spread", "pool"])
def test_what_is_no_name_is_refused_with_its_key(name: str, value: object) -> None:
    with pytest.raises(Malformed, match=f"^arrive.{name}: |^{name}: "):
        read_arrival(**{name: value})


def test_a_nic_joins_in_one_pool() -> None:
    with pytest.raises(Malformed, match=r"^pool: 'p1\|p2' names several: a NIC has one$"):
        READER.read('{"event": "join", "nic": "n", "nic_model": "toy-0", "pool": "p1|p2"}')


def test_a_nic_joins_in_a_pool_and_a_domain_which_its_state_keeps(tmp_path: Path) -> None:
    """Only while it is idle it may join again elsewhere; its events are read as they were written."""
    of, path = kinds(("", ""), count=0), tmp_path / "s.db"
    joins: list[FleetEvent] = [Join("m", "toy-0", "edge", "r1"), Join("n", "toy-0", domain="r1"), Join("o", "toy-0")]
    joins += [Join("n", "toy-0", "edge", "r1"), Join("n", "toy-0", "edge", "r2"), Join("m", "toy-0", "edge", "r1")]
    arrivals = [Arrive(tenant(name, pool="edge", apart="g")) for name in "ab"]
    with State(path, of) as state:
        one = Engine(Fleet(of), [ToyOracle()], FIRST_FIT)
        for event in (*joins, *arrivals):
            assert READER.read(event_line(event)) == event
            state.record(event, one.handle(event), one.fleet)
        with pytest.raises(Refused, match="'m' is in pool 'edge' and domain 'r1', which only an idle NIC"):
            one.handle(Join("m", "toy-0"))
        assert homes(one) == {"a": "m", "b": "n"}
    with State(path, of) as state:
        again = Engine(state.fleet, [ToyOracle()], FIRST_FIT)
        places = {nic.id: (nic.kind.pool, nic.kind.domain) for nic in again.fleet.all_nics()}
        assert places == {"m": ("edge", "r1"), "n": ("edge", "r2"), "o": ("", "")}
        assert reasons(arrive(again, "c", pool="edge", apart="g"))[:2] == [("apart", ("a",), 1), ("apart", ("b",), 1)]
        assert arrive(again, "d").nic == "o"


@pytest.mark.parametrize("names", [(), ("n",)])
def test_a_nic_that_left_and_joined_elsewhere_is_of_its_former_kind_after_a_restart(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Its place in the count of its kind is empty."""
    one, path = catalogue((1, 1.0)).kinds[0], tmp_path / "s.db"
    of, name = (one, replace(one, index=1, cost=2.0, names=names)), names[0] if names else "nic-2"
    with State(path, of) as state:
        running = Engine(Fleet(of), [ToyOracle(), ToyOracle()], FIRST_FIT)
        full = [Arrive(tenant("a", drop=0.0)), Arrive(tenant("b", drop=0.0)), Depart("b")]
        for event in (*full, Leave(name), Join(name, one.model, "edge")):
            state.record(event, running.handle(event), running.fleet)
    with State(path, of) as state:
        for engine_of in (running, Engine(state.fleet, [ToyOracle(), ToyOracle()], FIRST_FIT)):
            assert arrive(engine_of, "c").status == "rejected"
            assert arrive(engine_of, "d", pool="edge").nic == name
            assert engine_of.fleet.nics[name].kind.cost == 2.0
            assert [engine_of.fleet.count_of(kind) for kind in engine_of.fleet.all_kinds] == [1, 0, 1]


def test_which_of_equal_places_is_opened_first_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """One NIC has moved to a place that is known later than that of the other."""
    of, path = kinds(("", ""), count=0), tmp_path / "s.db"
    with State(path, of) as state:
        running = Engine(Fleet(of), [ToyOracle()], FIRST_FIT)
        for event in (Join("m", "toy-0", "", "r2"), Join("n", "toy-0", "", "r1"), Join("m", "toy-0", "", "r3")):
            state.record(event, running.handle(event), running.fleet)
    with State(path, of) as state:
        again = Engine(state.fleet, [ToyOracle()], FIRST_FIT)
        assert [arrive(engine_of, "a").nic for engine_of in (running, again)] == ["n", "n"]


@pytest.mark.parametrize("event", [Fail("nic-2"), Drain("nic-2"), Depart("b"), Rebalance(3)])
def test_a_dry_run_leaves_nics_of_every_pool(event: FleetEvent) -> None:
    """A copy of the fleet knows which NICs are in the second pool."""
    one = Engine(Fleet(kinds(("", ""), ("edge", ""))), [ToyOracle()] * 2, FIRST_FIT)
    assert [arrive(one, "a").nic, arrive(one, "b", pool="edge").nic] == ["nic-1", "nic-2"]
    expected = one.handle(DryRun(event))
    assert isinstance(expected, ExpectedDecision) and expected.decision == one.handle(event)


def test_an_instance_whose_pool_has_lost_its_nics_can_still_change() -> None:
    """A new one of that pool is refused."""
    one = engine(when_full=QUEUE)
    one.waiting["x"] = tenant("x", pool="edge")
    assert one.handle(Change("x", sla=Sla(max_drop=0.2))).status == "queued"
    with pytest.raises(Refused, match="pool 'edge'"):
        arrive(one, "y", pool="edge")
