"""The command `placer reproduce`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

from experiments import CannotRun, Experiment, Paper, Result, Setting, all_experiments
from experiments.reproduce import command
from profiles import InputError

PAPER = Paper("Toy", "Toy: A Paper of One Row", "Doe et al.")


def fake_experiments(monkeypatch: pytest.MonkeyPatch, *runs: tuple[str, Callable[[Setting], Result]]) -> None:
    """Replace the experiments by these, given as name and function; the title is the name of the function."""
    fakes = [Experiment(PAPER, name, run.__name__, run) for name, run in runs]
    monkeypatch.setattr("experiments.all_experiments", lambda: fakes)


def test_without_a_name_the_experiments_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The title of each paper, then names and titles; no experiment runs, no file is written."""
    command(out=tmp_path / "results")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len({one.paper for one in all_experiments()}) + len(all_experiments())
    tomur = [line.startswith("Tomur: Traffic-Aware Performance Prediction") for line in lines].index(True)
    assert lines[tomur + 1].startswith("  table2 ") and not (tmp_path / "results").exists()


def test_list_takes_precedence_over_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    """With `--list`, the named experiment does not run."""
    command(name="table2", list_=True)
    papers = {one.paper for one in all_experiments()}
    assert len(capsys.readouterr().out.splitlines()) == len(papers) + len(all_experiments())


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"name": "tabel2"}, r"'tabel2' is not an experiment\nhint: one of .*table2"),
        ({"name": "tabel6"}, r"hint: one of .*table6,"),
        ({"name": "table3", "measurements": Path("nowhere")}, "--measurements: nowhere has no validation.csv"),
        ({"name": "table3", "seed": -1}, "--seed: -1 is negative"),
    ],
)
def test_invalid_arguments_are_refused_before_an_experiment_runs(
    arguments: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    """An unknown name, with the nearest ones as a hint; a missing folder; a negative seed."""
    with pytest.raises(InputError, match=fault):
        command(**arguments, out=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_the_table_is_on_stdout_and_progress_on_stderr(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Stdout has the table, the testbeds and the notes; stderr has the progress and the paths written."""
    command(name="table12", out=tmp_path / "results", scale=0.02)
    captured = capsys.readouterr()
    assert "published_mape_pct" in captured.out
    assert "Testbed: Simulated BlueField-2: " in captured.out and "written:" in captured.err
    assert (tmp_path / "results" / "table12.svg").is_file()


def test_quiet_leaves_stderr_empty(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`--quiet` suppresses the progress."""
    command(name="figure4", out=tmp_path, scale=0.02, quiet=True)
    assert capsys.readouterr().err == ""


def done(setting: Setting) -> Result:
    """An experiment of one row, which is worse than published."""
    table = pd.DataFrame({"ours": [1.0], "verdict": ["worse: MAPE"]})
    return Result(table, ("Paper: all rows.",), lambda figure: None, ("Invented.",))


def cannot_run(setting: Setting) -> Result:
    """An experiment without its testbed."""
    raise CannotRun("no card is available")


def broken(setting: Setting) -> Result:
    """An experiment whose plot fails."""
    return Result(pd.DataFrame(), ("Paper: no rows.",), lambda figure: figure.no_such_method())  # type: ignore[attr-defined]


def test_a_table_with_several_experiments_runs_all_of_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`table6` runs `table6-a` and `table6-b`, not `table60-c`; `figure4` runs only the experiment of that name."""
    fake_experiments(
        monkeypatch, *((name, done) for name in ("table6-a", "table6-b", "table60-c", "figure4", "figure4-host"))
    )
    command(name="figure4", out=tmp_path, quiet=True)
    assert "figure4-host" not in capsys.readouterr().out
    command(name="table6", out=tmp_path, quiet=True)
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("Toy")] == [
        "Toy, table6-a: done",
        "Toy, table6-b: done",
    ]


def test_the_list_has_a_heading_per_paper(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each paper's title stands above its experiments."""
    other = Paper("Other", "Other: Another Paper", "Roe et al.")
    fakes = [Experiment(other, "table1", "one", done), Experiment(PAPER, "table2", "two", done)]
    monkeypatch.setattr("experiments.all_experiments", lambda: fakes)
    command()
    assert capsys.readouterr().out.splitlines() == [
        "Other: Another Paper (Roe et al.)",
        "  table1  one",
        "Toy: A Paper of One Row (Doe et al.)",
        "  table2  two",
    ]


@pytest.mark.parametrize(
    ("runs", "status"), [((done, broken, done), 1), ((done, cannot_run, done), 0), ((cannot_run,), 1), ((done,), 0)]
)
def test_a_failed_or_skipped_experiment_does_not_stop_the_others(
    runs: tuple[Any, ...],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both pages give the reason; the exit status is 1 when an experiment failed or none ran."""
    fake_experiments(monkeypatch, *((f"table{number}", run) for number, run in enumerate(runs, start=1)))
    ended = 0
    try:
        command(name="all", out=tmp_path)
    except typer.Exit as left:
        ended = left.exit_code
    assert ended == status
    markdown, html = ((tmp_path / f"index.{kind}").read_text(encoding="utf-8") for kind in ("md", "html"))
    assert html.count('<img src="data:image/svg+xml;base64,') == markdown.count("![done]") == runs.count(done)
    for page in (markdown, html):
        assert ("Skipped: no card is available" in page) == (cannot_run in runs)
        assert ("Failed: AttributeError: " in page) == (broken in runs)
    assert ("Traceback" in capsys.readouterr().err) == (broken in runs)
    assert "http://" not in html.replace("http://www.w3.org", "")


def test_an_interrupt_leaves_a_page_of_the_results_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the second experiment leaves a page with the result of the first."""

    def interrupted(setting: Setting) -> Result:
        raise KeyboardInterrupt

    fake_experiments(monkeypatch, ("table1", done), ("table2", interrupted))
    with pytest.raises(KeyboardInterrupt):
        command(name="all", out=tmp_path)
    assert "![done]" in (tmp_path / "index.md").read_text(encoding="utf-8")
