"""The engine and its indices, on cases worked by hand."""

from __future__ import annotations

import pytest

from placer.model.fleet import Fleet, Tenant
from placer.model.sla import Sla
from placer.online.engine import QUEUE, Engine
from placer.online.events import Arrive, Change, Depart, Drain, Fail, Refused, Return
from placer.policy.rejection import Cause
from placer.policy.rules import BEST_FIT, FIRST_FIT, LOOK_AHEAD, RULES, WORST_FIT, Rule, rule_of
from profiles import InputError, TrafficProfile, Workload
from tests.toy import TRAFFIC, ToyOracle, catalogue


def engine(count: int | None = None, rule: Rule = FIRST_FIT, **options: object) -> Engine:
    """An engine over so many toy NICs."""
    return Engine(Fleet(catalogue((count, 1.0)).kinds), [ToyOracle()], rule, **options)  # type: ignore[arg-type]


def arrive(one: Engine, identity: str, nf: str, drop: float = 0.5, flows: float = 1000) -> str | None:
    """The NIC that an arrival gets."""
    traffic = TRAFFIC if flows == TRAFFIC.flows else TrafficProfile(flows, 1500)
    answer = one.handle(Arrive(Tenant(identity, Workload(nf, traffic), Sla(max_drop=drop))))
    return answer.moves[0].target if answer.moves else None


@pytest.mark.parametrize(
    ("rule", "nic"),
    [
        (FIRST_FIT, "nic-1"),  # opened first
        (BEST_FIT, "nic-2"),  # two cores left, none after b
        (WORST_FIT, "nic-1"),  # three cores left
    ],
)
def test_rules_differ_in_the_nic_that_they_prefer(rule: Rule, nic: str) -> None:
    """Beside d five cores are left, and beside two d two."""
    one = engine(rule=FIRST_FIT)
    arrive(one, "1", "d")
    fleet = one.fleet
    second = fleet.open(fleet.kinds[0])
    for identity in ("3", "4"):
        fleet.place(Tenant(identity, Workload("d", TRAFFIC), Sla(max_drop=0.5)), second)
    again = Engine(fleet, [ToyOracle()], rule)
    assert arrive(again, "5", "b") == nic


def test_every_rule_has_a_name_and_others_are_refused() -> None:
    """The one that looks ahead is the default."""
    assert next(iter(RULES.values())) is LOOK_AHEAD
    assert [rule_of(name) for name in RULES] == list(RULES.values())
    with pytest.raises(InputError, match="'dice' is not a rule"):
        rule_of("dice")


def test_who_has_no_place_is_told_why_by_class() -> None:
    """On one NIC are two d and so few cores; on the other c bears no b."""
    one = engine(2)
    arrive(one, "1", "c", 0.04)
    arrive(one, "2", "d")
    arrive(one, "3", "d", 0.5)
    arrive(one, "4", "b", 0.5)
    answer = one.handle(Arrive(Tenant("5", Workload("b", TRAFFIC), Sla(max_drop=0.5))))
    assert answer.status == "rejected"
    assert {(reason.nics, reason.cause) for reason in answer.reasons} == {
        (1, Cause.CORES), (1, Cause.TENANT_SLA), (0, Cause.NONE_LEFT)
    }


def test_who_waits_is_placed_when_there_is_room() -> None:
    """First come first, and whoever fits nowhere holds up nobody."""
    one = engine(1, when_full=QUEUE)
    arrive(one, "1", "d")
    arrive(one, "2", "d")
    assert [arrive(one, identity, nf) for identity, nf in (("3", "d"), ("4", "b"), ("5", "b"))] == [None, "nic-1", None]
    left = one.handle(Depart("4"))
    assert [(move.id, move.target) for move in left.moves] == [("4", None), ("5", "nic-1")]
    assert [(move.id, move.target) for move in one.handle(Depart("1")).moves] == [("1", None), ("3", "nic-1")]


def test_a_failed_nic_is_left_by_all_and_used_no_more() -> None:
    """Its tenants go to another; with a count of two, a third NIC is not to be had until it returns."""
    one = engine(2)
    for identity in "12":
        arrive(one, identity, "d", 0.04)
    failed = one.handle(Fail("nic-1"))
    assert [(move.id, move.target) for move in failed.moves] == [("1", "nic-2"), ("2", "nic-2")]
    assert arrive(one, "3", "d", 0.04) is None
    one.handle(Return("nic-1"))
    assert arrive(one, "3", "d", 0.04) == "nic-1"
    with pytest.raises(Refused, match="not a NIC"):
        one.handle(Fail("nic-7"))


def test_a_draining_nic_keeps_whom_nobody_else_takes() -> None:
    """With one NIC there is no other; it takes nobody new, and is empty when its tenant left."""
    one = engine(1)
    arrive(one, "1", "a")
    assert one.handle(Drain("nic-1")).status == "draining"
    assert arrive(one, "2", "a") is None
    one.handle(Depart("1"))
    assert one.handle(Drain("nic-1")).status == "drained"
    one.handle(Return("nic-1"))
    assert arrive(one, "2", "a") == "nic-1"


def test_a_change_moves_only_who_cannot_stay() -> None:
    """c loses 10 % beside b: where it bears 9 % it goes elsewhere, and for more than it has alone it is at risk."""
    one = engine(2)
    arrive(one, "1", "b")
    arrive(one, "2", "c", 0.1)
    assert one.handle(Change("2", sla=Sla(max_drop=0.12))).status == "kept"
    moved = one.handle(Change("2", sla=Sla(max_drop=0.09)))
    assert (moved.status, moved.moves[0].target) == ("moved", "nic-2")
    risked = one.handle(Change("2", sla=Sla(min_kpps=500.0)))
    assert (risked.status, risked.at_risk) == ("at-risk", ("2",))


def test_many_different_workloads_are_asked_about_one_by_one() -> None:
    """With room for one company beforehand, the index asks case by case, and finds the same NICs as the rooms do."""
    for most_patterns in (1, 4_000):
        one = engine(2, most_patterns=most_patterns)
        homes = [arrive(one, str(number), "c", 0.4, flows=number + 1) for number in range(7)]
        # each bears two others of its kind, not three
        assert sorted(map(str, homes)) == ["None", *["nic-1"] * 3, *["nic-2"] * 3]
