"""Asking what would be decided answers as a decision would, and changes nothing."""

from __future__ import annotations

import random

import pytest

from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Depart, Fail, Join, Refused
from placer.fleet.what_if import WhatIf
from placer.model.fleet import Fleet, Tenant
from placer.model.sla import Sla
from placer.policy.rules import FIRST_FIT, LOOK_AHEAD, RULES_BY_NAME, Rule
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import TrafficProfile, Workload


def engine(count: int | None = None, rule: Rule = LOOK_AHEAD) -> Engine:
    """An engine over this many toy NICs."""
    return Engine(Fleet(catalogue((count, 1.0)).kinds), [ToyOracle()], rule)


def tenant(identity: str, nf: str, drop: float = 0.5, flows: float = TOY_TRAFFIC.flows) -> Tenant:
    """An instance."""
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
    quiet, asked = engine(rule=rule), engine(rule=rule)
    what_if, same = WhatIf(asked), 0
    for number, event in enumerate(events(seed, 120)):
        expected = None
        if isinstance(event, Arrive):
            what_if.places(event.tenant, count=number % 5 + 1)
            what_if.places(tenant("other", "d", 0.01, flows=7), count=2)
            expected = what_if.places(event.tenant)[0].nic
        decided = asked.handle(event)
        assert decided == quiet.handle(event)
        same += expected == decided.nic
    assert [(nic.id, nic.tenants) for nic in asked.fleet.all_nics()] == [
        (nic.id, nic.tenants) for nic in quiet.fleet.all_nics()
    ]
    assert same >= 60  # an arrival that is counted may renew the forecast first


def test_of_several_arrivals_each_takes_capacity_from_the_next() -> None:
    """`d` takes three of eight cores: two share a NIC, and two NICs hold four."""
    places = WhatIf(engine(2, FIRST_FIT)).places(tenant("x", "d", 0.9), count=6)
    assert [place.nic for place in places] == ["nic-1", "nic-1", "nic-2", "nic-2"]
    assert [place.opens for place in places] == [True, False, True, False]


def test_alternatives_are_of_different_classes_and_begin_with_the_choice() -> None:
    """One NIC holds `d`, one holds two; a new one is the last alternative."""
    one = engine(3, FIRST_FIT)
    for identity in ("1", "2", "3"):
        one.handle(Arrive(tenant(identity, "d", 0.9)))
    places = WhatIf(one).places(tenant("x", "a", 0.9), top=5)
    assert [(place.nic, place.opens) for place in places] == [("nic-1", False), ("nic-2", False), ("nic-3", True)]


def test_a_nic_joins_by_name_and_takes_the_arrival_that_names_it() -> None:
    """Without any other NIC, arrivals go to NICs that joined, and a failed one refuses."""
    one = engine(0)
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
    for name, nic_model, message in (("nic-7", model, "a name that new NICs get"), ("x", "y", "not a NIC model")):
        with pytest.raises(Refused, match=message):
            one.handle(Join(name, nic_model))


def test_a_misfit_says_why_and_is_asked_for_again_when_the_nic_changed() -> None:
    """A NIC with two `d` has two cores left."""
    one = engine(2, FIRST_FIT)
    what_if = WhatIf(one)
    one.handle(Arrive(tenant("1", "d", 0.9)))
    assert what_if.misfits(tenant("x", "d", 0.9), ["nic-1", "nic-2"])["nic-1"] is None
    one.handle(Arrive(tenant("2", "d", 0.9)))
    found = what_if.misfits(tenant("x", "d", 0.9), ["nic-1", "nic-9"])
    assert str(found["nic-1"]) == "too few free cores"
    assert str(found["nic-9"]) == "the NIC is not in the fleet"
    assert set(what_if.scores(tenant("x", "a", 0.9), ["nic-1", "nic-9"])) == {"nic-1"}
