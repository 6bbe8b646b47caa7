"""Fleet files: what is read and what is refused."""

from pathlib import Path

import pytest

from placer.inputs.fleet import NicTable, read_fleet
from profiles import InputError


def written(folder: Path, text: str) -> Path:
    """A fleet file with this text."""
    path = folder / "fleet.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_tables_are_read_in_order(tmp_path: Path) -> None:
    """Every key is read; what is left out has its default; `models` lies beside the file."""
    path = written(
        tmp_path,
        '[[nic]]\nmodel = "bluefield-2"\n\n[[nic]]\nmodel = "big"\ncount = 3\ncost = 2.5\ncores = 16\n'
        'models = "big-models"\ntestbed = "none"\n',
    )
    assert read_fleet(path) == [
        NicTable(model="bluefield-2"),
        NicTable(model="big", count=3, cost=2.5, cores=16, models=str(tmp_path / "big-models"), testbed="none"),
    ]


def test_the_file_of_a_gpu_lies_beside_the_fleet_file(tmp_path: Path) -> None:
    """A GPU is described by a file or by models, not by both."""
    text = '[[nic]]\nmodel = "g"\ndevice = "gpu.json"\n'
    assert read_fleet(written(tmp_path, text)) == [NicTable(model="g", device=str(tmp_path / "gpu.json"))]
    with pytest.raises(InputError, match=":3: device: is given together with models"):
        read_fleet(written(tmp_path, text + 'models = "m"\n'))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[[nic]]\ncount = 3\n", ":1: model: is missing"),
        ('[[nic]]\nmodel = "a"\n[[nic]]\nmodel = "b"\ncount = -1\n', ":5: count: "),
        ('[[nic]]\nmodel = "a"\ncount = 1.5\n', ":3: count: "),
        ('[[nic]]\nmodel = "a"\ncost = -1\n', ":3: cost: "),
        ('[[nic]]\nmodel = "a"\ncost = nan\n', ":3: cost: "),
        ('[[nic]]\nmodel = "a"\ncost = 0\n', ":3: cost: "),
        ('[[nic]]\nmodel = "a"\ncores = 0\n', ":3: cores: "),
        ('[[nic]]\nmodel = ""\n', ":2: model: "),
        ('[[nic]]\nmodel = "a"\ncolour = "red"\n', ":3: colour: unknown key"),
        ('price = 3\n[[nic]]\nmodel = "a"\n', ":1: price: unknown key"),
        ('[[nic]]\nmodel = "a"\ncost = 1e308\n', ":3: cost: 1e+308 is above"),
        ('[[nic]]\nmodel = "a"\ncount = 9223372036854775808\n', ":3: count: 9223372036854775808 is above 1000000000"),
        ('[[nic]]\nmodel = "a"\ncores = 1000000000\n', ":3: cores: 1000000000 is above 1024"),
        ('[[nic]]\nmodel = "a"\ncount = 0\n', ":3: count: the fleet has no NIC"),
        ('[[nic]]\nmodel = "a"\nname = "x"\ncount = 2\n', ":4: count: 2 NICs cannot all be called 'x'"),
        ('[[nic]]\nmodel = "a"\nname = "x"\nnames = ["y"]\n', ":3: name: is given together with names"),
        ('[[nic]]\nmodel = "a"\nnames = []\n', ":3: names: is too short"),
        ('[[nic]]\nmodel = "a"\nnames = ["x", 3]\n', ":3: names: 3 is not text"),
        ('[[nic]]\nmodel = "a"\nnames = ["x", "y"]\ncount = 1\n', ":3: names: 2 names are more than the 1 NICs"),
        ('[[nic]]\nmodel = "a"\nnames = ["x", "x"]\n', ":3: names: 'x' is the name of 2 NICs"),
        ('[[nic]]\nmodel = "a"\nname = "x"\n[[nic]]\nmodel = "b"\nnames = ["x"]\n', ":6: names: 'x' is already the"),
        ('[[nic]]\nmodel = "a"\nname = "x"\n[[nic]]\nmodel = "b"\nnames = ["x"]\n', "a NIC on line 3"),
        ('[[nic]]\nmodel = "a"\nname = "nic-7"\n', ":3: name: 'nic-7' is reserved for NICs without a name"),
        ('[[nic]]\nmodel = "a"\nname = " "\n', ":3: name: a name is empty"),
        ('[[nic]]\nmodel = "a"\nname = " x"\n', ":3: name: ' x' has blanks around it"),
        ('[[nic]]\nmodel = "a"\nname = "x\\ty"\n', ":3: name: 'x\\ty' has a line break or another control"),
        ('[[nic]]\nmodel = "a"\ncount = 3\nowned = 4\n', ":4: owned: 4 are more than the 3 NICs"),
        ('[[nic]]\nmodel = "a"\nowned = -1\n', ":3: owned: -1 is below 0"),
        ("a = " + "[" * 5000, ": is nested too deeply"),
        ("", ": nic: no "),
        ("[nic]\n", ": nic: no "),
        ("[[nic]\n", ":1: is not TOML"),
    ],
)
def test_bad_fleets_are_refused(tmp_path: Path, text: str, fault: str) -> None:
    """A fleet that breaks a rule is refused with the line and the key."""
    path = written(tmp_path, text)
    with pytest.raises(InputError) as refused:
        read_fleet(path)
    assert (f"{path}{fault}" if fault.startswith(":") else fault) in str(refused.value)


def test_a_missing_fleet_is_a_fault(tmp_path: Path) -> None:
    """A path that leads nowhere is refused like bad content."""
    with pytest.raises(InputError, match="No such file"):
        read_fleet(tmp_path / "nowhere.toml")


def test_tables_that_differ_only_in_their_count_become_one(tmp_path: Path) -> None:
    """A thousand tables of one NIC each cost no more time than one table of a thousand; without a count is no limit."""
    same = '[[nic]]\nmodel = "a"\ncount = 1\n' * 1000
    other = '[[nic]]\nmodel = "b"\ncount = 2\n[[nic]]\nmodel = "b"\n'
    assert read_fleet(written(tmp_path, same + other)) == [NicTable(model="a", count=1000), NicTable(model="b")]


def test_named_nics_of_one_description_become_one_kind(tmp_path: Path) -> None:
    """Their names are listed in order; those that are owned add up, and a table that does not say has none."""
    named = "".join(f'[[nic]]\nmodel = "a"\nname = "rack-{number}"\nowned = 1\n' for number in (1, 2))
    text = named + '[[nic]]\nmodel = "a"\ncount = 3\n[[nic]]\nmodel = "b"\nnames = ["x", "y"]\n'
    assert read_fleet(written(tmp_path, text)) == [
        NicTable(model="a", names=("rack-1", "rack-2"), count=5, owned=2),
        NicTable(model="b", names=("x", "y")),
    ]
