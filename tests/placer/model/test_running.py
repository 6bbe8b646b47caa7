"""Instances that already run: which NICs a trace may name, and how the fleet begins."""

from dataclasses import replace

import pytest

from placer.model.arrival import Arrival, NamedNics, running_faults, running_nics, settle_running
from placer.model.fleet import Fleet, NicKind
from placer.testing.strategies import CORES_BY_NF, arrival

KIND = NicKind(0, "toy", 8, CORES_BY_NF)
EAST = replace(KIND, names=("east", "west"), count=3)
BIG = NicKind(1, "big", 16, {"a": 1}, names=("big-1",))


@pytest.mark.parametrize(
    ("kinds", "nic", "kind"),
    [
        ([KIND], "anything", KIND),
        ([KIND], "nic-7", KIND),
        ([EAST], "west", EAST),
        ([EAST], "nic-7", EAST),
        ([EAST], "wst", None),  # a slip of the pen is no third NIC
        ([EAST, BIG], "big-1", BIG),
        ([EAST, BIG], "nic-7", None),  # of which kind?
    ],
)
def test_the_kind_of_a_nic_is_known_by_its_name(kinds: list[NicKind], nic: str, kind: NicKind | None) -> None:
    """In a fleet of one kind without names, every name is one of its NICs; in others, only names and single numbers."""
    assert NamedNics(kinds).kind_of(nic) is kind


def faults(kinds: list[NicKind], *arrivals: Arrival) -> list[str]:
    """What is wrong, each with the instance."""
    found = running_faults(arrivals, kinds, lambda one: one.id)
    return [f"{one.id}: {message}" + (f" ({hint})" if hint else "") for one, message, hint in found]


def test_what_no_nic_can_have_is_named() -> None:
    """b, b, d and c take 9 of 8 cores, the fleet has one NIC without a name, and the big one runs a only."""
    four = [arrival(name, 0, name[0], nic="east") for name in ("b1", "b2", "d", "c")]
    message = "c: 'east' has 8 cores, and 9 are taken together with b1, b2, d"
    assert faults([EAST], *four, arrival("a", 0, "a", nic="east")) == [message]
    two = [arrival(str(number), 0, "a", nic=f"nic-{number}") for number in (5, 6)]
    expected = "6: 'nic-6' would be one NIC more than the 3 of the fleet (raise count in the fleet file)"
    assert faults([EAST], *two) == [expected]
    assert faults([EAST, BIG], arrival("b", 0, "b", nic="big-1")) == ["b: 'b' does not run on 'big-1', a big"]
    assert faults([EAST, BIG], arrival("a", 0, "a", nic="wst")) == [
        "a: 'wst' is no NIC of the fleet (did you mean west?)"
    ]
    assert faults([KIND, BIG], arrival("a", 0, "a", nic="x"))[0].startswith("a: 'x' is no NIC of the fleet")
    unnamed = [KIND, replace(BIG, names=())]
    assert faults(unnamed, arrival("a", 0, "a", nic="x")) == [
        "a: 'x' is no NIC of the fleet (give NICs names in the fleet file: names = [...])"
    ]
    many = replace(BIG, names=tuple(f"big-{number:03}" for number in range(100)))
    assert faults([KIND, many], arrival("a", 0, "a", nic="x")) == [
        "a: 'x' is no NIC of the fleet (the fleet file has 100 names)"
    ]
    assert faults([KIND], *four[:3], arrival("a", 0, "a", nic="west")) == []


def test_a_fleet_begins_with_what_already_runs() -> None:
    """Two of three run on one NIC; a NIC called nic-2 keeps its name, and the next ones get others."""
    trace = [
        arrival("1", 0, "a", nic="nic-2"),
        arrival("2", 1, "a"),
        arrival("3", 9, "b", nic="nic-2"),
        arrival("4", 9, "b", nic="x"),
    ]
    fleet = Fleet([KIND])
    settle_running(trace, fleet)
    assert {nic.id: [one.id for one in nic.tenants] for nic in fleet.nics.values()} == {"nic-2": ["1", "3"], "x": ["4"]}
    assert [fleet.open(KIND).id for _ in range(2)] == ["nic-4", "nic-5"]
    assert len({nic.number for nic in fleet.nics.values()}) == 4
    fleet = Fleet([KIND])
    settle_running([arrival("1", 0, "a", nic="b"), arrival("2", 0, "a", nic="nic-1")], fleet)
    assert {nic.id: nic.number for nic in fleet.nics.values()} == {"nic-1": 1, "b": 2}
    fleet = Fleet([EAST])
    settle_running([arrival("1", 0, "a", nic="east"), arrival("2", 0, "a", nic="nic-1")], fleet)
    assert len({nic.number for nic in fleet.all_nics()}) == 3
    fleet = Fleet([KIND])
    settle_running([arrival("1", 0, "a", nic="nic-3")], fleet)
    assert [fleet.open(KIND).id for _ in range(2)] == ["nic-4", "nic-5"]
    assert [nic.tenants for nic in running_nics(trace, [KIND])] == [
        (trace[0].tenant, trace[2].tenant),
        (trace[3].tenant,),
    ]
