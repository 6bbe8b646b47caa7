"""`placer reproduce` as a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments import Experiment, Result, all_experiments
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
    """`table6` is `table6-online` and `table6-optimal`, and not `table60-other`."""
    result = Result(pd.DataFrame({"one": [1]}), ("paper.",), lambda figure: None)
    fakes = [Experiment(name, name, lambda setting: result) for name in ("table6-a", "table6-b", "table60-c")]
    monkeypatch.setattr("experiments.all_experiments", lambda: fakes)
    command(name="table6", out=tmp_path, quiet=True)
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("table6")] == [
        "table6-a: table6-a",
        "table6-b: table6-b",
    ]
