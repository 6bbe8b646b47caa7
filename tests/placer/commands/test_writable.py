"""Outputs that cannot be written are refused before the work for them is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from placer.commands.options import refuse_unwritable, refuse_unwritable_folder
from profiles import InputError
from tests.placer.commands.conftest import Placer

EXAMPLES = Path(__file__).parents[3] / "examples" / "sweeps"
NO_FILES = Path("/proc")
"""A folder that takes no file, not even of root."""

needs_proc = pytest.mark.skipif(not (NO_FILES / "self").exists(), reason="no /proc here")


@needs_proc
@pytest.mark.parametrize(
    "command",
    [
        ("fit", "absent.csv", "--out"),
        ("fit", "absent.csv", "--report"),
        ("fit", "absent.csv", "--plots"),
        ("diagnose", "FlowMonitor", "--plots"),
        ("train", "absent", "--out"),
        ("sweep", str(EXAMPLES / "mtbr.toml"), "--out"),
        ("profile", "--testbed", "simulated", "--out"),
    ],
    ids=lambda command: f"{command[0]} {command[-1]}",
)
def test_it_is_refused_by_the_name_that_was_given(placer: Placer, command: tuple[str, ...]) -> None:
    """Before inputs are read, and with a hint."""
    ended = placer(*command, NO_FILES / "x")
    assert (ended.status, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"{command[-1]}: {NO_FILES / 'x'} cannot be written\nhint: name a f")


@pytest.mark.parametrize("command", [("train", "absent"), ("fit", "absent.csv")], ids=" ".join)
def test_a_file_is_no_folder(placer: Placer, tmp_path: Path, command: tuple[str, ...]) -> None:
    """It stays as it is."""
    file = tmp_path / "notes"
    file.write_text("mine")
    ended = placer(*command, "--out" if command[0] == "train" else "--plots", file)
    assert ended.status == 2
    assert f"{file} is a file\nhint: name a folder" in ended.stderr
    assert file.read_text() == "mine"


def test_what_can_be_written_is_not_refused_and_not_touched(tmp_path: Path) -> None:
    """A new file in a new folder, an old file, a device, a pipe; looking leaves nothing behind."""
    (tmp_path / "old").write_text("old")
    for path in (tmp_path / "a" / "b" / "new", tmp_path / "old", Path("/dev/null"), None):
        refuse_unwritable("--out", path)
    for path in (tmp_path / "a" / "b", tmp_path, None):
        refuse_unwritable_folder("--plots", path)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    with pytest.raises(InputError, match="cannot be written"):
        refuse_unwritable("--out", tmp_path)
