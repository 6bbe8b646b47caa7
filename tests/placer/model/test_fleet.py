"""The fleet: names of NICs, and which kind is opened next."""

from dataclasses import replace

from placer.model.fleet import Fleet, Nic, NicKind
from placer.testing.strategies import CORES_BY_NF, arrival

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
