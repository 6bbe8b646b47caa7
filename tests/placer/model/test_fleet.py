"""The fleet: names of NICs, which kind is opened next, and how it begins with instances that already run."""

from dataclasses import replace

import pytest

from placer.model.arrival import Arrival, NamedNics, running_faults, running_nics, settle_running
from placer.model.fleet import Fleet
from placer.model.nic import Nic
from placer.model.nic_kind import NicKind
from placer.testing.strategies import CORES_BY_NF, arrival
from tests.placer.fleet.toys import tenant

KIND = NicKind(0, "toy", 8, CORES_BY_NF, names=("east", "west"))


def test_named_nics_are_opened_first_and_others_are_numbered() -> None:
    """In the order of their kind; a NIC that is opened by its name is not opened again."""
    fleet = Fleet([KIND])
    assert fleet.open(KIND, "west").id == "west" and fleet.next_of(KIND).id == "east"
    assert [fleet.open(KIND).id for _ in range(3)] == ["east", "nic-3", "nic-4"]


def test_named_nics_are_among_the_count() -> None:
    """Two of three NICs have names: three can be opened, not five."""
    fleet = Fleet([replace(KIND, count=3)])
    kind = fleet.kinds[0]
    for _ in range(3):
        assert fleet.available() == [kind]
        fleet.open(kind)
    assert fleet.available() == []


def test_a_saved_nic_takes_the_place_of_the_named_one() -> None:
    """It was number 7 in a former process, with a tenant: it is in use once, and no NIC joined."""
    fleet = Fleet([replace(KIND, count=2)])
    tenant = arrival("1", 0, "a").tenant
    fleet.adopt(Nic("west", fleet.kinds[0], 7), [tenant])
    assert fleet.count_of(fleet.kinds[0]) == 2 and [nic.id for nic in fleet.all_nics()] == ["west", "east"]
    assert fleet.find("west") is fleet.nic_of("1")


def test_a_saved_nic_keeps_its_number_and_a_named_one_gets_another() -> None:
    """A state without names is continued with a fleet file that has some: numbers stay different."""
    fleet = Fleet([KIND])
    for number in (1, 2, 3):
        fleet.adopt(Nic(f"nic-{number}", KIND, number), [])
    numbers = {nic.id: nic.number for nic in fleet.all_nics()}
    assert {name: numbers[name] for name in ("nic-1", "nic-2", "nic-3")} == {"nic-1": 1, "nic-2": 2, "nic-3": 3}
    assert len(set(numbers.values())) == len(numbers) == 5 and fleet.open(KIND, "nic-9").number > 3


def test_of_kinds_that_cost_the_same_owned_nics_are_opened_first() -> None:
    """The second kind has one owned NIC left, then none; a cheaper kind comes first whatever is owned."""
    bought, owned = NicKind(0, "bought", 8, CORES_BY_NF), NicKind(1, "owned", 8, CORES_BY_NF, owned=1)
    cheap = NicKind(2, "cheap", 8, CORES_BY_NF, count=1, cost=0.5)
    fleet = Fleet([bought, owned, cheap])
    assert fleet.available() == [cheap, owned, bought]
    fleet.open(owned)
    assert fleet.available() == [cheap, bought, owned]


BLUEFIELD = NicKind(0, "toy", 8, CORES_BY_NF)
EAST = replace(BLUEFIELD, names=("east", "west"), count=3)
BIG = NicKind(1, "big", 16, {"a": 1}, names=("big-1",))


@pytest.mark.parametrize(
    ("kinds", "nic", "kind"),
    [
        ([BLUEFIELD], "anything", BLUEFIELD),
        ([BLUEFIELD], "nic-7", BLUEFIELD),
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
    assert faults([BLUEFIELD, BIG], arrival("a", 0, "a", nic="x"))[0].startswith("a: 'x' is no NIC of the fleet")
    unnamed = [BLUEFIELD, replace(BIG, names=())]
    assert faults(unnamed, arrival("a", 0, "a", nic="x")) == [
        "a: 'x' is no NIC of the fleet (give NICs names in the fleet file: names = [...])"
    ]
    many = replace(BIG, names=tuple(f"big-{number:03}" for number in range(100)))
    assert faults([BLUEFIELD, many], arrival("a", 0, "a", nic="x")) == [
        "a: 'x' is no NIC of the fleet (the fleet file has 100 names)"
    ]
    assert faults([BLUEFIELD], *four[:3], arrival("a", 0, "a", nic="west")) == []


def test_a_fleet_begins_with_what_already_runs() -> None:
    """Two of three run on one NIC; a NIC called nic-2 keeps its name, and the next ones get others."""
    trace = [
        arrival("1", 0, "a", nic="nic-2"),
        arrival("2", 1, "a"),
        arrival("3", 9, "b", nic="nic-2"),
        arrival("4", 9, "b", nic="x"),
    ]
    fleet = Fleet([BLUEFIELD])
    settle_running(trace, fleet)
    assert {nic.id: [one.id for one in nic.tenants] for nic in fleet.nics.values()} == {"nic-2": ["1", "3"], "x": ["4"]}
    assert [fleet.open(BLUEFIELD).id for _ in range(2)] == ["nic-4", "nic-5"]
    assert len({nic.number for nic in fleet.nics.values()}) == 4
    fleet = Fleet([BLUEFIELD])
    settle_running([arrival("1", 0, "a", nic="b"), arrival("2", 0, "a", nic="nic-1")], fleet)
    assert {nic.id: nic.number for nic in fleet.nics.values()} == {"nic-1": 1, "b": 2}
    fleet = Fleet([EAST])
    settle_running([arrival("1", 0, "a", nic="east"), arrival("2", 0, "a", nic="nic-1")], fleet)
    assert len({nic.number for nic in fleet.all_nics()}) == 3
    fleet = Fleet([BLUEFIELD])
    settle_running([arrival("1", 0, "a", nic="nic-3")], fleet)
    assert [fleet.open(BLUEFIELD).id for _ in range(2)] == ["nic-4", "nic-5"]
    assert [nic.tenants for nic in running_nics(trace, [BLUEFIELD])] == [
        (trace[0].tenant, trace[2].tenant),
        (trace[3].tenant,),
    ]


def test_a_change_in_one_step_is_removing_and_putting_back() -> None:
    """Of an instance beside another one: it is the last one of its NIC and of its group then."""
    kind = NicKind(0, "model", 8, CORES_BY_NF)
    fleet, expected = Fleet([kind]), Fleet([kind])
    for changed in (fleet, expected):
        for nic, ids in ((changed.open(kind), "ab"), (changed.open(kind), "c")):
            for identity in ids:
                changed.place(tenant(identity, "a", together="web"), nic)
    after = replace(tenant("a", "a", 0.1, together="web"), owner="us", reserved_until=9.0)
    fleet.change(after)
    expected.put_back(after, expected.remove("a"))
    for changed in (fleet, expected):
        assert [*changed.groups.members("together", "web")] == ["b", "c", "a"]
        assert [found.id for found in changed.nics["nic-1"].tenants] == ["b", "a"]
    assert (fleet.owned, fleet.reservations) == (expected.owned, expected.reservations) == ({"us": (1, 1)}, {"a": 9.0})
