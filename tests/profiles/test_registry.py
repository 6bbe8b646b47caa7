"""What is registered is found by its name, from the room's files and from other packages."""

import sys
from pathlib import Path

import pytest

from profiles import InputError
from profiles.registry import Registry

FILE = """
from {room} import COLOURS

COLOURS.register("{name}")({value})
"""


@pytest.fixture
def colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[int]:
    """A registry whose room is a package with two files."""
    room = tmp_path / "colour_room"
    room.mkdir()
    (room / "__init__.py").write_text(
        "from profiles.registry import Registry\n"
        "COLOURS = Registry('colour', 'colour_room', 'no.such.group', '--colour')\n"
    )
    for name, value in (("blue", 2), ("red", 1)):
        (room / f"{name}.py").write_text(FILE.format(room="colour_room", name=name, value=value))
    monkeypatch.syspath_prepend(tmp_path)
    for module in [name for name in sys.modules if name.startswith("colour_room")]:
        monkeypatch.delitem(sys.modules, module)
    from colour_room import COLOURS  # type: ignore[import-not-found]

    return COLOURS  # type: ignore[no-any-return]


def test_every_file_of_the_room_is_registered(colours: Registry[int]) -> None:
    assert dict(colours) == {"blue": 2, "red": 1}


def test_an_unknown_name_is_refused_with_the_nearest(colours: Registry[int]) -> None:
    with pytest.raises(InputError, match=r"(?s)--colour: 'Rad' is not a colour.*did you mean red\?"):
        colours.find("Rad")


def test_two_of_one_name_are_refused(colours: Registry[int]) -> None:
    with pytest.raises(ValueError, match="two colour definitions named 'red'"):
        colours.find("red") and colours.register("red")(3)


def test_another_package_never_replaces_ours(colours: Registry[int]) -> None:
    assert colours["red"] == 1
    with pytest.warns(UserWarning, match="'red' of another package is ignored"):
        colours._add_foreign("red", lambda: 3)
    assert colours["red"] == 1


def test_a_package_that_does_not_load_is_left_out(colours: Registry[int]) -> None:
    assert len(colours) == 2

    def fails() -> int:
        raise ImportError("no module named 'green'")

    with pytest.warns(UserWarning, match="'green' of another package does not load: no module"):
        colours._add_foreign("green", fails)
    assert "green" not in colours


def test_looking_up_a_name_imports_its_file_alone(colours: Registry[int]) -> None:
    assert colours["red"] == 1 and "colour_room.red" in sys.modules
    assert "colour_room.blue" not in sys.modules


def test_names_are_listed_in_alphabetical_order_whatever_was_imported_first(colours: Registry[int]) -> None:
    assert colours["red"] == 1 and list(colours) == ["blue", "red"]


@pytest.mark.parametrize("name", ["", "no such", "../red", "red.blue", "__init__"])
def test_a_name_that_names_no_file_is_unknown(colours: Registry[int], name: str) -> None:
    assert name not in colours


def test_some_names_are_listed_first(colours: Registry[int]) -> None:
    registry: Registry[int] = Registry("colour", "colour_room", "no.such.group", "--colour", first=("red", "absent"))
    for name, value in colours.items():
        registry.register(name)(value)
    assert list(registry) == ["red", "blue"]
