"""Commands on a full disk: one line on stderr, exit status 1, nothing half-written. Outputs that cannot be written are
refused before the work for them is done."""

import errno
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments import Experiment, Paper, Result
from placer.commands.options import refuse_unwritable, refuse_unwritable_folder
from profiles import InputError
from profiles.aside import write_files
from tests.placer.commands.conftest import refuse, run_placer


def no_space() -> OSError:
    """The error of a full disk."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing a file or a table stops after its first byte."""

    def write(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:1])
        raise no_space()

    def write_table(table: pd.DataFrame, path: Path, **options: Any) -> None:
        write(Path(path), b"P")

    monkeypatch.setattr(Path, "write_bytes", write)
    monkeypatch.setattr(pd.DataFrame, "to_parquet", write_table)


def fails(*arguments: object) -> str:
    """The only line on stderr of a command that fails, with nothing on stdout."""
    ended = run_placer(*arguments)
    assert (ended.status, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    return line


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_compare_on_a_full_disk(arrivals: Path, tmp_path: Path, full_disk: None) -> None:
    """No part of the results is left."""
    study = tmp_path / "study.toml"
    study.write_text(f'strategies = ["greedy"]\n[[trace]]\nfile = "{arrivals}"\n', encoding="utf-8")
    line = fails("compare", study, "--out", tmp_path / "out", "--jobs", 1, "--quiet")
    assert "no space left" in line.lower() and files(tmp_path / "out") == []


@pytest.mark.long
def test_run_on_a_full_disk(arrivals: Path, tmp_path: Path, full_disk: None) -> None:
    """Neither the plan nor the page is left."""
    out = tmp_path / "out"
    fails("run", arrivals, "--quiet", "--plan", out / "plan.csv", "--report", out / "page.html")
    assert files(out) == []


def test_a_page_that_fails_leaves_no_plan(arrivals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written when all of them are ready."""

    def page_of_run(*arguments: object) -> None:
        raise no_space()

    monkeypatch.setattr("placer.report.html.page_of_run", page_of_run)
    out = tmp_path / "out"
    fails("run", arrivals, "--quiet", "--plan", out / "plan.csv", "--report", out / "page.html")
    assert files(out) == []


def test_reproduce_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failed experiment is on stderr even with --quiet."""

    def toy(setting: object) -> Result:
        raise no_space()

    experiment = Experiment(Paper("Toy", "Toy: A Paper", "Doe et al."), "toy", "toy", toy)
    monkeypatch.setattr("experiments.all_experiments", lambda: [experiment])
    line = fails("reproduce", "toy", "--out", tmp_path / "out", "--quiet")
    assert line == "error: toy: [Errno 28] No space left on device"


def test_if_one_file_cannot_be_written_none_is(tmp_path: Path) -> None:
    """The second path is a folder: the first file is not left behind, an older one is kept."""
    first, second = tmp_path / "first.txt", tmp_path / "second"
    second.mkdir()
    (second / "inside").touch()
    first.write_text("old", encoding="utf-8")
    with pytest.raises(OSError):
        write_files({second / "inside" / "x": b"new", first: b"new"})
    assert first.read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.txt", "second"]


EXAMPLES = Path(__file__).parents[3] / "examples" / "sweeps"
NO_FILES = Path("/proc")  # a folder that takes no file, not even of root

needs_proc = pytest.mark.skipif(not (NO_FILES / "self").exists(), reason="no /proc here")


@needs_proc
@pytest.mark.parametrize(
    "command",
    [
        ("fit", "absent.csv", "--out"), ("fit", "absent.csv", "--report"), ("fit", "absent.csv", "--plots"),
        ("diagnose", "FlowMonitor", "--plots"), ("train", "absent", "--out"),
        ("sweep", str(EXAMPLES / "mtbr.toml"), "--out"), ("profile", "--testbed", "simulated", "--out"),
    ],
    ids=lambda command: f"{command[0]} {command[-1]}",
)  # fmt: skip
def test_it_is_refused_by_the_name_that_was_given(command: tuple[str, ...]) -> None:
    """Before inputs are read, and with a hint."""
    printed = refuse(*command, NO_FILES / "x")
    assert printed.startswith(f"{command[-1]}: {NO_FILES / 'x'} cannot be written\nhint: name a f")


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
