"""Limits of groups, and NICs for one owner alone, in a running fleet and in its protocols."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placer.fleet.event_shapes import Malformed
from placer.fleet.events import Arrive, Depart, DrainTogether, Refused
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.service.kubernetes.pods import pod_of
from placer.fleet.state.store import State
from placer.fleet.what_if import WhatIf, complete
from placer.model import constraints
from placer.model.nic import Nic
from placer.policy.rejection import MOST_NAMED_NICS
from profiles import InputError
from tests.placer.fleet.test_constraints import arrive, engine, homes, kinds, reasons
from tests.placer.fleet.toys import read_arrival, tenant


def test_a_group_has_at_most_so_many_on_a_nic() -> None:
    one = engine(count=2)
    placed = [arrive(one, f"w{at}", "a", most_per_nic="2 web").nic for at in range(4)]
    assert placed == ["nic-1", "nic-1", "nic-2", "nic-2"]
    fifth = arrive(one, "w4", "a", most_per_nic="2 web")
    assert reasons(fifth) == [
        ("most_per_nic", ("w0", "w1"), 1),
        ("most_per_nic", ("w2", "w3"), 1),
        ("none left", (), 0),
    ]
    assert arrive(one, "other", "a", most_per_nic="3 web").nic == "nic-1"
    with pytest.raises(Refused, match="nic-2: most_per_nic: at most so many of the group on one NIC"):
        arrive(one, "w5", "a", "nic-2", most_per_nic="2 web")


def test_a_group_has_at_most_so_many_in_a_domain_and_the_queue_follows_a_departure() -> None:
    one = engine(("", "r1"), ("", "r1"), ("", "r2"), count=1, when_full=QUEUE)
    statuses = [arrive(one, f"w{at}", "d", most_per_domain="1 web").status for at in range(3)]
    assert statuses == ["placed", "placed", "queued"]
    assert [move.target for move in one.handle(Depart("w0")).moves if move.id == "w2"] == ["nic-1"]
    one = engine(("", "r1"), ("", "r1"), count=1)
    for at in range(3):
        arrive(one, f"w{at}", "d", most_per_domain="2 web")
    assert homes(one) == {"w0": "nic-1", "w1": "nic-1"}


def test_of_a_group_at_its_limit_the_lowest_priority_leaves() -> None:
    one = engine(count=1, when_full=QUEUE)
    for name, priority in (("high", 3), ("low", 1), ("middle", 2)):
        one.handle(Arrive(replace(tenant(name, "a", most_per_nic="3 web"), priority=priority)))
    vip = replace(tenant("vip", "a", most_per_nic="3 web"), priority=9)
    decision = one.handle(Arrive(vip, preempt=True))
    assert (decision.status, decision.queued) == ("placed", ("low",))


def test_a_nic_is_for_one_owner_alone_whether_others_are_owned_or_not() -> None:
    one = engine(count=3)
    assert arrive(one, "anybodys", "a").nic == "nic-1"
    assert arrive(one, "x1", "a", exclusive="alice").nic == "nic-2"
    assert arrive(one, "more", "a").nic == "nic-1" and arrive(one, "x2", "a", exclusive="alice").nic == "nic-2"
    assert arrive(one, "y", "a", exclusive="bob").nic == "nic-3"
    rejected = arrive(one, "z", "a", exclusive="carol")
    assert rejected.status == "rejected" and {cause for cause, *_ in reasons(rejected)} == {"exclusive", "none left"}
    big = arrive(one, "big", "d", exclusive="alice")
    assert big.nic == "nic-2" and one.fleet.tenants == 6
    with pytest.raises(Refused, match="nic-3: exclusive: its NIC is for one owner alone; it would meet y"):
        arrive(one, "w", "a", "nic-3")
    verdicts = complete(WhatIf(one).misfits(tenant("w", "a"), ["nic-1", "nic-2", "nic-3"]))
    assert verdicts["nic-1"] is None and [str(verdicts[nic]) for nic in ("nic-2", "nic-3")] == [
        "exclusive: its NIC is for one owner alone; it would meet x1, x2, big",
        "exclusive: its NIC is for one owner alone; it would meet y",
    ]


def test_an_arrival_for_one_owner_alone_looks_only_at_the_nics_of_that_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many others there are; that these are barred, a reason says in one number."""
    one = engine(count=MOST_NAMED_NICS + 2)
    looked, has_valueless = list[Nic](), constraints._has_valueless

    def look(nic: Nic, *more: Any) -> bool:
        looked.append(nic)
        return has_valueless(nic, *more)

    with monkeypatch.context() as patch:
        patch.setattr(constraints, "_has_valueless", look)
        assert arrive(one, "x1", "d", exclusive="alice").nic == "nic-1"
        for at in range(2 * MOST_NAMED_NICS + 1):
            arrive(one, f"anybodys-{at}", "d")
        assert len(one.fleet.nics) == MOST_NAMED_NICS + 2 and looked == []
        assert arrive(one, "x2", "d", exclusive="alice").nic == "nic-1" and len(looked) == 1
    rejected = arrive(one, "x3", "d", exclusive="alice")
    assert rejected.status == "rejected" and reasons(rejected)[0] == ("exclusive", (), MOST_NAMED_NICS + 1)
    assert reasons(arrive(one, "y", "a", exclusive="bob"))[:2] == [
        ("exclusive", (), MOST_NAMED_NICS + 1),
        ("exclusive", ("x1", "x2"), 1),
    ]


def test_a_maintenance_window_keeps_owners_apart() -> None:
    one = engine(count=2)
    arrive(one, "x", "a", exclusive="alice")
    arrive(one, "anybodys", "a")
    decision = one.handle(DrainTogether(("nic-1",)))
    assert (decision.status, decision.draining, homes(one)) == (
        "draining",
        ("nic-1",),
        {"x": "nic-1", "anybodys": "nic-2"},
    )


def test_a_group_that_moves_together_counts_as_a_whole_for_the_limit_of_its_domain() -> None:
    """Each of the two alone may be in r2, beside the one there; both may not."""
    for most, status in (("2 g", "draining"), ("3 g", "drained")):
        one = engine(("", "r1"), ("", "r2"), count=1)
        arrive(one, "apart from them", "a", apart="s")
        arrive(one, "there", "a", apart="s", most_per_domain=most)
        for name in ("t1", "t2"):
            arrive(one, name, "a", "nic-1", most_per_domain=most, together="t")
        one.handle(Depart("apart from them"))
        assert homes(one) == {"there": "nic-2", "t1": "nic-1", "t2": "nic-1"}
        assert one.handle(DrainTogether(("nic-1",))).status == status


def test_a_line_has_limits_and_owners_and_what_makes_no_sense_is_refused() -> None:
    given = {"exclusive": "alice", "most_per_domain": "3 a b", "most_per_nic": "2 web"}
    assert dict(read_arrival(**given, owner="alice").constraints.values) == given
    for value in ("web", "0 web", "2", "2 ", "-1 web", "2.5 web", " 2 web"):
        with pytest.raises(Malformed, match="most_per_nic: "):
            read_arrival(most_per_nic=value)
    with pytest.raises(Malformed, match="exclusive: is 'bob', and its owner is 'alice'"):
        read_arrival(exclusive="bob", owner="alice")


def test_a_state_refuses_limits_that_make_no_sense(tmp_path: Path) -> None:
    one = engine(count=1)
    event = Arrive(tenant("x", "a", most_per_nic="2 web", exclusive="alice"))
    with State(tmp_path / "s.db", kinds(("", ""), count=1)) as state:
        state.record(event, one.handle(event), one.fleet)
    with State(tmp_path / "s.db", kinds(("", ""), count=1)) as state:
        state._file.execute("""UPDATE tenants SET constraints = '{"most_per_nic": "web"}'""")
    with pytest.raises(InputError, match=r"tenants 'x': constraints .* make no sense: 'web' is no number with a name"):
        State(tmp_path / "s.db", kinds(("", ""), count=1))


def test_annotations_of_pods_have_dashes() -> None:
    names = {"nf": "d", "most-per-nic": "2 web", "most-per-domain": "3 web", "exclusive": "alice", "owner": "alice"}
    annotations = {f"nf-placer.io/{name}": value for name, value in names.items()}
    pod = pod_of({"metadata": {"annotations": annotations, "namespace": "n", "name": "p", "uid": "u"}})
    assert pod is not None
    arrival = pod.arrival()
    assert [arrival[key] for key in ("most_per_nic", "most_per_domain", "exclusive", "owner")] == [
        "2 web", "3 web", "alice", "alice",
    ]  # fmt: skip
