"""`placer reproduce` as a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

from experiments import Experiment, Result, all_experiments
from experiments.registry import CannotRun, Setting
from placer.commands.reproduce import command
from profiles import InputError


def test_lists_without_a_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Names and titles go to stdout, nothing is run or written."""
    command(out=tmp_path / "results")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(all_experiments())
    assert lines[0].startswith("table2 ")
    assert not (tmp_path / "results").exists()


def test_list_lists_whatever_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    """`--list` wins over a name."""
    command(name="table2", list_=True)
    assert len(capsys.readouterr().out.splitlines()) == len(all_experiments())


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"name": "tabel2"}, r"'tabel2' is not an experiment\nhint: one of .*table2"),
        ({"name": "tabel6"}, r"hint: one of .*table6,"),
        ({"name": "table3", "measurements": Path("nowhere")}, "--measurements: nowhere holds no validation.csv"),
        ({"name": "table3", "seed": -1}, "--seed: -1 is negative"),
    ],
)
def test_refused_before_anything_runs(arguments: dict[str, Any], fault: str, tmp_path: Path) -> None:
    """Unknown names are refused with the nearest ones, as are a folder that is not there and a negative seed."""
    with pytest.raises(InputError, match=fault):
        command(**arguments, out=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_table_on_stdout_progress_on_stderr(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The table and what it ran on are data; what is being done and where it was written are not."""
    command(name="table12", out=tmp_path / "results", scale=0.02)
    told = capsys.readouterr()
    assert "published_mape_pct" in told.out
    assert "ran on the simulated BlueField-2" in told.out
    assert "written:" in told.err
    assert (tmp_path / "results" / "table12.svg").is_file()


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`--quiet` leaves the table alone."""
    command(name="figure4", out=tmp_path, scale=0.02, quiet=True)
    assert capsys.readouterr().err == ""


def test_a_table_with_several_experiments_is_all_of_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`table6` is `table6-online` and `table6-optimal`, not `table60-other`; what has that very name is alone."""
    fakes = [Experiment(name, name, done) for name in ("table6-a", "table6-b", "table60-c", "figure4", "figure4-host")]
    monkeypatch.setattr("experiments.all_experiments", lambda: fakes)
    command(name="figure4", out=tmp_path, quiet=True)
    assert "figure4-host" not in capsys.readouterr().out
    command(name="table6", out=tmp_path, quiet=True)
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("table6")] == [
        "table6-a: table6-a",
        "table6-b: table6-b",
    ]


def done(setting: Setting) -> Result:
    """An experiment of one row, which is worse than published."""
    return Result(pd.DataFrame({"ours": [1.0], "worse": ["MAPE"]}), ("paper.",), lambda figure: None, ("hand-made.",))


def lacking(setting: Setting) -> Result:
    """An experiment that needs what is not here."""
    raise CannotRun("no card is at hand")


def broken(setting: Setting) -> Result:
    """An experiment with a fault."""
    return Result(pd.DataFrame(), ("paper.",), lambda figure: figure.nothing_of_that_name())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("runs", "status"), [((done, broken, done), 1), ((done, lacking, done), 0), ((lacking,), 1), ((done,), 0)]
)
def test_all_is_one_page_whatever_becomes_of_one(
    runs: tuple[Any, ...],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What failed or cannot run here is told on both pages and loses no other; only what failed, or nothing, is 1."""
    fakes = [Experiment(f"table{number}", run.__name__, run) for number, run in enumerate(runs, start=1)]
    monkeypatch.setattr("experiments.all_experiments", lambda: fakes)
    ended = 0
    try:
        command(name="all", out=tmp_path)
    except typer.Exit as left:
        ended = left.exit_code
    assert ended == status
    markdown, html = ((tmp_path / f"index.{kind}").read_text(encoding="utf-8") for kind in ("md", "html"))
    assert html.count('<img src="data:image/svg+xml;base64,') == markdown.count("![done]") == runs.count(done)
    for page in (markdown, html):
        assert ("Skipped: no card is at hand" in page) == (lacking in runs)
        assert ("Failed: AttributeError: " in page) == (broken in runs)
    assert ("Traceback" in capsys.readouterr().err) == (broken in runs)
    assert "http://" not in html.replace("http://www.w3.org", "")


def test_an_interrupt_leaves_a_page_of_what_there_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the second experiment leaves the first one's result on the page."""

    def interrupted(setting: Setting) -> Result:
        raise KeyboardInterrupt

    fakes = [Experiment(f"table{number}", run.__name__, run) for number, run in enumerate((done, interrupted), start=1)]
    monkeypatch.setattr("experiments.all_experiments", lambda: fakes)
    with pytest.raises(KeyboardInterrupt):
        command(name="all", out=tmp_path)
    assert "![done]" in (tmp_path / "index.md").read_text(encoding="utf-8")
