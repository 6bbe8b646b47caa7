"""The engine and its indexes, in cases computed by hand. Asking what would be decided answers as a decision would, and
changes nothing."""

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placer.fleet.engine import Engine
from placer.fleet.events import (
    Arrive,
    ArriveTogether,
    Change,
    Cordon,
    Depart,
    Drain,
    DryRun,
    ExpectedDecision,
    Fail,
    FleetEvent,
    Join,
    Leave,
    Lookup,
    Move,
    Rebalance,
    Refused,
    Return,
    Uncordon,
    Where,
)
from placer.fleet.queued_fleet import QUEUE, WHEN_FULL
from placer.fleet.state.store import State
from placer.fleet.what_if import WhatIf, complete
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.policy.rejection import Cause
from placer.policy.rules import BEST_FIT, FIRST_FIT, LOOK_AHEAD, RULES_BY_NAME, WORST_FIT, Rule, rule_of
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import InputError, TrafficProfile, Workload


def engine(count: int | None = None, rule: Rule = FIRST_FIT, **options: object) -> Engine:
    """An engine over this many toy NICs, without limit by default."""
    return Engine(Fleet(catalogue((count, 1.0)).kinds), [ToyOracle()], rule, **options)  # type: ignore[arg-type]


def arrive(one: Engine, identity: str, nf: str, drop: float = 0.5, flows: float = 1000) -> str | None:
    traffic = TOY_TRAFFIC if flows == TOY_TRAFFIC.flows else TrafficProfile(flows, 1500)
    decision = one.handle(Arrive(Tenant(identity, Workload(nf, traffic), Sla(max_drop=drop))))
    return decision.moves[0].target if decision.moves else None


@pytest.mark.parametrize(
    ("rule", "nic"),
    [
        (FIRST_FIT, "nic-1"),  # opened first
        (BEST_FIT, "nic-2"),  # two cores free, none with b
        (WORST_FIT, "nic-1"),  # three cores free with b
    ],
)
def test_rules_differ_in_the_nic_that_they_prefer(rule: Rule, nic: str) -> None:
    """Next to one `d` five cores are free, next to two `d` two."""
    one = engine(rule=FIRST_FIT)
    arrive(one, "1", "d")
    fleet = one.fleet
    second = fleet.open(fleet.kinds[0])
    for identity in ("3", "4"):
        fleet.place(Tenant(identity, Workload("d", TOY_TRAFFIC), Sla(max_drop=0.5)), second)
    assert arrive(Engine(fleet, [ToyOracle()], rule), "5", "b") == nic


def test_every_rule_has_a_name_and_others_are_refused() -> None:
    """`look-ahead` is the default."""
    assert next(iter(RULES_BY_NAME.values())) is LOOK_AHEAD
    assert [rule_of(name) for name in RULES_BY_NAME] == list(RULES_BY_NAME.values())
    with pytest.raises(InputError, match="'dice' is not a rule"):
        rule_of("dice")


def test_a_rejection_gives_the_reason_for_every_class_of_nics() -> None:
    """One NIC has too few cores next to two `d`; on the other the SLA of `c` would be violated by `b`."""
    one = engine(2)
    arrive(one, "1", "c", 0.04)
    arrive(one, "2", "d")
    arrive(one, "3", "d", 0.5)
    arrive(one, "4", "b", 0.5)
    decision = one.handle(Arrive(Tenant("5", Workload("b", TOY_TRAFFIC), Sla(max_drop=0.5))))
    assert decision.status == "rejected"
    assert {(reason.nics, reason.cause) for reason in decision.reasons} == {
        (1, Cause.CORES),
        (1, Cause.TENANT_SLA),
        (0, Cause.NONE_LEFT),
    }


def test_a_waiting_tenant_is_placed_when_it_fits() -> None:
    """First come first; one that fits nowhere does not block the others."""
    one = engine(1, when_full=QUEUE)
    arrive(one, "1", "d")
    arrive(one, "2", "d")
    assert [arrive(one, identity, nf) for identity, nf in (("3", "d"), ("4", "b"), ("5", "b"))] == [None, "nic-1", None]
    assert [(move.id, move.target) for move in one.handle(Depart("4")).moves] == [("4", None), ("5", "nic-1")]
    assert [(move.id, move.target) for move in one.handle(Depart("1")).moves] == [("1", None), ("3", "nic-1")]


def test_a_failed_nic_loses_its_tenants_and_takes_no_arrivals() -> None:
    """Its tenants go to another NIC; with a count of two, no third NIC can be opened until it returns."""
    one = engine(2)
    for identity in "12":
        arrive(one, identity, "d", 0.04)
    assert [(move.id, move.target) for move in one.handle(Fail("nic-1")).moves] == [("1", "nic-2"), ("2", "nic-2")]
    assert arrive(one, "3", "d", 0.04) is None
    one.handle(Return("nic-1"))
    assert arrive(one, "3", "d", 0.04) == "nic-1"
    with pytest.raises(Refused, match="was never in use"):
        one.handle(Fail("nic-7"))


@pytest.mark.parametrize("when_full", WHEN_FULL)
@pytest.mark.parametrize(
    ("event", "homes"),
    [
        (Return("r1"), {"1": "r1", "2": "r1"}),
        (Join("r3", "toy-0"), {"1": "r3", "2": "r3"}),
        (Depart("3"), {"1": "r2", "2": None}),
        (Change("3", sla=Sla(max_drop=0.4)), {"1": None, "2": None}),
    ],
    ids=["return", "join", "depart", "change"],
)
def test_what_a_failed_nic_held_waits_until_it_fits(
    when_full: str, event: FleetEvent, homes: dict[str, str | None]
) -> None:
    """Two `d` of r1 find no room beside two on r2; an arrival that fits nowhere is rejected as before."""
    one = engine(0, when_full=when_full)
    for nic in ("r1", "r2"):
        one.handle(Join(nic, "toy-0"))
    assert [arrive(one, identity, "d") for identity in "1234"] == ["r1", "r1", "r2", "r2"]
    failed = one.handle(Fail("r1"))
    assert (failed.queued, failed.moves) == (("1", "2"), (Move("1", "r1", None), Move("2", "r1", None)))
    assert one.handle(Where("1")).status == "queued"
    assert one.handle(Arrive(tenant("5", "d"))).status == ("queued" if when_full == QUEUE else "rejected")
    one.handle(event)
    assert {identity: one.handle(Where(identity)).nic for identity in "12"} == homes
    assert one.handle(Depart("2")).status == "left"


def test_a_nic_of_any_name_joins_a_fleet_in_which_all_have_names(tmp_path: Path) -> None:
    """`nic-2` is the second NIC, and stays one that has joined when its state is read again."""
    kinds = catalogue((0, 1.0)).kinds
    names = ("nic-7", "nic-2", "nic-3")
    with State(tmp_path / "s.db", kinds) as state:
        one = Engine(Fleet(kinds), [ToyOracle()], FIRST_FIT)
        for name in names:
            event = Join(name, "toy-0")
            state.record(event, one.handle(event), one.fleet)
    with State(tmp_path / "s.db", kinds) as state:
        again = Engine(state.fleet, [ToyOracle()], FIRST_FIT, events=state.events)
        assert again.fleet.count_of(kinds[0]) == 3
        assert [arrive(again, str(number), "c", drop=0.0) for number in range(4)] == [*names, None]
    with pytest.raises(InputError, match="number 1 is not that of its id"), State(tmp_path / "s.db", catalogue().kinds):
        pass


def test_a_draining_nic_keeps_tenants_that_fit_nowhere_else() -> None:
    """With one NIC there is no other; it takes no arrivals, and is drained when its tenant has left."""
    one = engine(1)
    arrive(one, "1", "a")
    assert one.handle(Drain("nic-1")).status == "draining" and arrive(one, "2", "a") is None
    one.handle(Depart("1"))
    assert one.handle(Drain("nic-1")).status == "drained"
    one.handle(Return("nic-1"))
    assert arrive(one, "2", "a") == "nic-1"


def test_a_cordoned_nic_keeps_its_tenants_and_takes_arrivals_once_it_is_uncordoned() -> None:
    """A change keeps the cordon, `return` does not end it, and the queue takes the NIC when it ends."""
    one = engine(1, when_full="queue")
    arrive(one, "1", "a")
    assert one.handle(Cordon("nic-1")).status == "cordoned" and arrive(one, "2", "a") is None
    assert isinstance(one.handle(Cordon("nic-1")), Lookup)
    assert one.handle(Change("1", sla=Sla(max_drop=0.4))).status == "kept"
    with pytest.raises(Refused, match="send an uncordon"):
        one.handle(Return("nic-1"))
    again = one.handle(Uncordon("nic-1"))
    assert (again.status, again.moves) == ("up", (Move("2", None, "nic-1"),))
    assert isinstance(one.handle(Uncordon("nic-1")), Lookup)


@pytest.mark.parametrize("before", [Fail, Drain])
@pytest.mark.parametrize("event", [Cordon, Uncordon])
def test_a_nic_that_failed_or_is_draining_is_neither_cordoned_nor_uncordoned(before: Any, event: Any) -> None:
    """It takes no arrivals already, and only `return` ends that."""
    one = engine(1)
    arrive(one, "1", "a")
    one.handle(before("nic-1"))
    with pytest.raises(Refused):
        one.handle(event("nic-1"))
    assert one.events == 2


def test_a_nic_leaves_once_it_has_no_tenants_and_takes_its_place_in_the_count_with_it() -> None:
    """Also one that failed; the other of two NICs is full then, and the first joins again by its name."""
    one = engine(2)
    assert arrive(one, "1", "d") == "nic-1"
    with pytest.raises(Refused, match="'nic-1' has tenants: '1'; drain it before"):
        one.handle(Leave("nic-1"))
    assert [move.target for move in one.handle(Fail("nic-1")).moves] == ["nic-2"]
    assert (one.handle(Leave("nic-1")).status, one.fleet.find("nic-1")) == ("gone", None)
    assert isinstance(one.handle(Leave("nic-1")), Lookup)
    assert arrive(one, "2", "d") == "nic-2" and arrive(one, "3", "d") is None
    for event, why in (
        (Return("nic-1"), "not out of service"), (Fail("nic-1"), "has left the fleet"),
        (Leave("nic-9"), "never in use"), (Join("nic-1", "toy-9"), "not a NIC model"),
    ):  # fmt: skip
        with pytest.raises(Refused, match=why):
            one.handle(event)
    assert one.handle(Join("nic-1", one.fleet.kinds[0].model)).status == "joined" and arrive(one, "4", "d") == "nic-1"


@pytest.mark.parametrize("when_full", WHEN_FULL)
def test_a_group_is_placed_at_once_or_not_at_all(when_full: str) -> None:
    """Two `d` have room on a NIC: of three the third has none, until one that runs there leaves."""
    one = engine(2, when_full=when_full)
    assert arrive(one, "1", "d") == "nic-1" and arrive(one, "2", "d") == "nic-1"
    group = ArriveTogether("g", tuple(replace(tenant(f"g{number}", "d"), group="g") for number in range(3)))
    decision = one.handle(group)
    assert (decision.status, decision.moves) == ("queued" if when_full == QUEUE else "rejected", ())
    assert decision.reasons and [nic.id for nic in one.fleet.nics.values()] == ["nic-1"] and one.fleet.opened == 1
    if when_full == QUEUE:
        with pytest.raises(Refused, match="a group 'g' already waits, of 'g0', 'g1', 'g2'; choose another id"):
            one.handle(ArriveTogether("g", (replace(tenant("g9", "a"), group="g"),)))
    left = one.handle(Depart("2"))
    if when_full == QUEUE:
        assert one.handle(group).status == "placed" and not one.waiting
        assert [(move.id, move.target) for move in left.moves[1:]] == [
            ("g0", "nic-1"),
            ("g1", "nic-2"),
            ("g2", "nic-2"),
        ]
    else:
        assert one.handle(group).placements == (("g0", "nic-1"), ("g1", "nic-2"), ("g2", "nic-2"))
    with pytest.raises(Refused, match="of the group 'h' already exist: 'g0'"):
        one.handle(ArriveTogether("h", (tenant("g0", "d"), tenant("h1", "d"))))


@pytest.mark.parametrize("most_patterns", [30, *(pytest.param(most, marks=pytest.mark.long) for most in (4_000, 1))])
@pytest.mark.parametrize("when_full", WHEN_FULL)
def test_dry_runs_leave_no_trace_in_later_decisions(when_full: str, most_patterns: int) -> None:
    """Of two fleets with the same events one has dry runs between, of other events; tables are rebuilt meanwhile."""
    draw = random.Random(11)
    one, other = (engine(5, LOOK_AHEAD, when_full=when_full, most_patterns=most_patterns) for _ in range(2))
    for number in range(100):
        for event in (any_event(draw, number, one.fleet), any_event(draw, number, one.fleet)):
            try:
                expected = one.handle(DryRun(event))
            except Refused as refused:
                with pytest.raises(Refused, match=re.escape(str(refused))):
                    other.copy().handle(event)
                continue
            assert isinstance(expected, ExpectedDecision) and expected.decision == other.copy().handle(event)
        try:
            decision = other.handle(event)
        except Refused:
            continue
        assert one.handle(event) == decision == expected.decision
    assert one.events == other.events > 50


def any_event(draw: random.Random, number: int, fleet: Fleet) -> FleetEvent:
    """An arrival as often as all others together, with traffic of its own now and then."""
    known = [nic.id for nic in (*fleet.all_nics(), *fleet.gone.values())] or ["nic-1"]
    identity, nic = f"{draw.randrange(number + 1)}", draw.choice(known)
    workload = Workload(draw.choice("abcd"), TrafficProfile(1000 * draw.choice((1, 1, 1, 2, number)), 1500))
    events = (
        Depart(identity), Depart(identity), Change(identity, workload, Sla(0.3)), Fail(nic), Drain(nic), Return(nic),
        Return(nic), Cordon(nic), Uncordon(nic), Leave(nic), Join(nic, "toy-0"), Rebalance(3),
    )  # fmt: skip
    arrive = Arrive(Tenant(f"{number}", workload, Sla(draw.choice((0.0, 0.1, 0.3, 0.5)))))
    return draw.choice((arrive, draw.choice(events)))


def test_a_tenant_that_waited_since_before_a_restart_is_placed_while_tables_are_rebuilt_without_its_nf() -> None:
    """The new tables then hold its NF, too."""
    fleet = Fleet(catalogue((1, 1.0)).kinds)
    for identity in ("1", "2"):
        tenant = Tenant(identity, Workload("b", TOY_TRAFFIC), Sla(max_drop=0.5))
        fleet.place(tenant, fleet.nics.find("nic-1") or fleet.open(fleet.kinds[0]))
    one = Engine(fleet, [ToyOracle()], waiting=[Tenant("3", Workload("d", TOY_TRAFFIC), Sla(max_drop=0.0))])
    one.handle(Depart("2"))
    assert arrive(one, "4", "b", flows=2000) == "nic-1" and one.selector.rebuilding
    one.handle(Depart("1"))
    assert one.handle(Depart("4")).moves[1:] == (Move("3", None, "nic-1"),) and one.selector.rebuilding
    while one.selector.rebuilding:
        one.selector.advance()
    assert arrive(one, "5", "d", drop=0.0) is None and one.handle(Depart("3")).status == "left"


def test_a_change_moves_a_tenant_only_if_it_cannot_stay() -> None:
    """`c` loses 10 % next to `b`: it moves when it accepts 9 %, and is at risk when it requires more than alone."""
    one = engine(2)
    arrive(one, "1", "b")
    arrive(one, "2", "c", 0.1)
    assert one.handle(Change("2", sla=Sla(max_drop=0.12))).status == "kept"
    moved = one.handle(Change("2", sla=Sla(max_drop=0.09)))
    assert (moved.status, moved.moves[0].target) == ("moved", "nic-2")
    risked = one.handle(Change("2", sla=Sla(min_kpps=500.0)))
    assert (risked.status, risked.at_risk) == ("at-risk", ("2",))


@pytest.mark.long
def test_sampled_and_class_index_find_the_same_nics() -> None:
    """With one co-location predicted in advance at most, NICs are sampled."""
    for most_patterns in (1, 4_000):
        one = engine(2, most_patterns=most_patterns)
        homes = [arrive(one, str(number), "c", 0.4, flows=number + 1) for number in range(7)]
        # the SLA of each is met next to two of its kind, not next to three
        assert sorted(map(str, homes)) == ["None", *["nic-1"] * 3, *["nic-2"] * 3]


def test_a_repeated_arrival_is_answered_with_its_placement() -> None:
    """The same NF, traffic and SLA: nothing moves. Others are refused, also once a change was made."""
    one = engine(1, when_full=QUEUE)
    for identity in "123":
        arrive(one, identity, "d")
    placed, queued = (one.handle(Arrive(Tenant(i, Workload("d", TOY_TRAFFIC), Sla(max_drop=0.5)))) for i in "13")
    assert (placed.status, placed.nic, placed.moves) == ("placed", "nic-1", ())
    assert (queued.status, queued.nic, queued.moves) == ("queued", None, ())
    for workload, drop in ((Workload("a", TOY_TRAFFIC), 0.5), (Workload("d", TOY_TRAFFIC), 0.4)):
        with pytest.raises(Refused, match="'1' already exists"):
            one.handle(Arrive(Tenant("1", workload, Sla(max_drop=drop))))


def test_a_nic_that_the_fleet_file_names_is_there_before_it_is_used() -> None:
    """An arrival may name it, it can be drained and return, and it joins as the one that it is."""
    kind = replace(catalogue((2, 1.0)).kinds[0], names=("east", "west"))
    one = Engine(Fleet([kind]), [ToyOracle()], FIRST_FIT)
    decision = one.handle(Arrive(Tenant("1", Workload("a", TOY_TRAFFIC), Sla(max_drop=0.5)), "west"))
    assert decision.moves[0].target == "west" and one.handle(Drain("east")).status == "drained"
    assert arrive(one, "2", "c", drop=0.0) is None
    one.handle(Return("east"))
    assert arrive(one, "3", "c", drop=0.0) == "east"
    assert one.handle(Join("west", "toy-0")).status == "joined" and one.fleet.count_of(kind) == 2


def looking_ahead(count: int | None = None, rule: Rule = LOOK_AHEAD) -> Engine:
    return Engine(Fleet(catalogue((count, 1.0)).kinds), [ToyOracle()], rule)


def tenant(identity: str, nf: str, drop: float = 0.5, flows: float = TOY_TRAFFIC.flows) -> Tenant:
    return Tenant(
        identity, Workload(nf, TrafficProfile(flows, TOY_TRAFFIC.packet_size, TOY_TRAFFIC.mtbr)), Sla(max_drop=drop)
    )


def events(seed: int, count: int) -> list[Arrive | Depart]:
    """Arrivals and departures, most of them possible."""
    draw, found, present = random.Random(seed), list[Arrive | Depart](), list[str]()
    for number in range(count):
        if present and draw.random() < 0.35:
            found.append(Depart(present.pop(draw.randrange(len(present)))))
        else:
            present.append(f"nf-{number}")
            found.append(Arrive(tenant(present[-1], draw.choice("abcd"), draw.choice([0.05, 0.2, 0.5]))))
    return found


@pytest.mark.parametrize("rule", RULES_BY_NAME.values(), ids=RULES_BY_NAME)
@pytest.mark.parametrize("seed", range(3))
def test_the_answer_is_what_is_decided_next_and_asking_changes_no_decision(rule: Rule, seed: int) -> None:
    """Two engines decide on the same events; one of them is asked before each arrival, for one and for more."""
    quiet, asked = looking_ahead(rule=rule), looking_ahead(rule=rule)
    what_if, same = WhatIf(asked), 0
    for number, event in enumerate(events(seed, 120)):
        expected = None
        if isinstance(event, Arrive):
            complete(what_if.places(event.tenant, count=number % 5 + 1))
            complete(what_if.places(tenant("other", "d", 0.01, flows=7), count=2))
            expected = complete(what_if.places(event.tenant))[0].nic
        decided = asked.handle(event)
        assert decided == quiet.handle(event)
        same += expected == decided.nic
    assert [(nic.id, nic.tenants) for nic in asked.fleet.all_nics()] == [
        (nic.id, nic.tenants) for nic in quiet.fleet.all_nics()
    ]
    assert same >= 60  # an arrival that is counted may renew the forecast first


def test_of_several_arrivals_each_takes_capacity_from_the_next() -> None:
    """`d` takes three of eight cores: two share a NIC, and two NICs hold four."""
    places = complete(WhatIf(looking_ahead(2, FIRST_FIT)).places(tenant("x", "d", 0.9), count=6))
    assert [place.nic for place in places] == ["nic-1", "nic-1", "nic-2", "nic-2"]
    assert [place.opens for place in places] == [True, False, True, False]


def test_alternatives_are_of_different_classes_and_begin_with_the_choice() -> None:
    """One NIC holds `d`, one holds two; a new one is the last alternative."""
    one = looking_ahead(3, FIRST_FIT)
    for identity in ("1", "2", "3"):
        one.handle(Arrive(tenant(identity, "d", 0.9)))
    places = complete(WhatIf(one).places(tenant("x", "a", 0.9), top=5))
    assert [(place.nic, place.opens) for place in places] == [("nic-1", False), ("nic-2", False), ("nic-3", True)]


def test_a_nic_joins_by_name_and_takes_the_arrival_that_names_it() -> None:
    """Without any other NIC, arrivals go to NICs that joined, and a failed one refuses."""
    one = looking_ahead(0)
    assert one.handle(Arrive(tenant("1", "d"))).status == "rejected"
    model = one.fleet.kinds[0].model
    assert one.handle(Join("rack-1", model)).status == "joined"
    assert one.handle(Join("rack-2", model)).status == "joined"
    assert one.handle(Join("rack-2", model)).status == "joined"
    assert one.events == 3, "a NIC that joins again is no event"
    assert one.handle(Arrive(tenant("2", "d"), "rack-2")).nic == "rack-2"
    assert one.handle(Arrive(tenant("3", "d", 0.001))).nic == "rack-1"
    with pytest.raises(Refused, match=r"rack-2: [db] (there )?would violate its SLA"):
        one.handle(Arrive(tenant("4", "b", 0.0), "rack-2"))
    one.handle(Fail("rack-1"))
    for nic, message in (("rack-1", "the NIC is failed"), ("rack-9", "not a NIC of this fleet")):
        with pytest.raises(Refused, match=message):
            one.handle(Arrive(tenant("5", "d"), nic))
    with pytest.raises(Refused, match="not a NIC model"):
        one.handle(Join("x", "y"))
    with pytest.raises(Refused, match="a name that new NICs get"):
        looking_ahead(1).handle(Join("nic-7", model))


def test_a_misfit_says_why_and_is_asked_for_again_when_the_nic_changed() -> None:
    """A NIC with two `d` has two cores left."""
    one = looking_ahead(2, FIRST_FIT)
    what_if = WhatIf(one)
    one.handle(Arrive(tenant("1", "d", 0.9)))
    assert complete(what_if.misfits(tenant("x", "d", 0.9), ["nic-1", "nic-2"]))["nic-1"] is None
    one.handle(Arrive(tenant("2", "d", 0.9)))
    found = complete(what_if.misfits(tenant("x", "d", 0.9), ["nic-1", "nic-9"]))
    assert str(found["nic-1"]) == "too few free cores"
    assert str(found["nic-9"]) == "the NIC is not in the fleet"
    assert set(complete(what_if.scores(tenant("x", "a", 0.9), ["nic-1", "nic-9"]))) == {"nic-1"}


def test_an_arrival_with_a_looser_sla_than_any_before_is_not_turned_away_while_tables_are_built() -> None:
    """Two `b` lose 2.5 % each: the tables of an SLA without any loss do not hold that co-location."""
    fleet = engine(3, LOOK_AHEAD)
    drops = [("a", 0.0), ("b", 0.0), ("b", 0.03), ("b", 0.03)]
    found = [arrive(fleet, f"{number}", nf, drop) for number, (nf, drop) in enumerate(drops)]
    assert found == ["nic-1", "nic-2", "nic-3", "nic-3"]


def test_an_nf_that_only_came_through_the_queue_has_a_stand_in() -> None:
    """After a restart no arrival but the next one has been counted, and `d` takes more cores than that one."""
    before = engine(1, LOOK_AHEAD)
    assert arrive(before, "1", "d") == "nic-1"
    before.handle(Fail("nic-1"))
    restarted = Engine(before.fleet, [ToyOracle()], LOOK_AHEAD, waiting=before.waiting.values())
    assert arrive(restarted, "2", "b") is None
    restarted.handle(Return("nic-1"))
    assert arrive(restarted, "3", "a") == "nic-1"
