"""Execution of a study: results are kept, continued, and the same to the byte; statistics over draws."""

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal

import pandas as pd
import pytest

from placer.studies import (
    GROUP_COLUMNS,
    execute,
    read_study,
    summarize,
    tasks_of_study,
)
from placer.studies.execute import RESULTS_FILE, fingerprint
from profiles import InputError


@pytest.mark.long
def test_an_interrupted_study_continues_to_the_same_bytes(study: Path, tmp_path: Path) -> None:
    """A study interrupted after its first run and continued by two workers gives the bytes of an uninterrupted one."""
    tasks = tasks_of_study(read_study(study), print)
    execute(tasks, tmp_path / "whole")

    def stop(done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(tasks, tmp_path / "parted", advance=stop)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "parted" / "parts").iterdir()}
    assert len(kept) == 1
    execute(tasks, tmp_path / "parted", jobs=2)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert (tmp_path / "parted" / RESULTS_FILE).read_bytes() == (tmp_path / "whole" / RESULTS_FILE).read_bytes()


def test_a_result_is_named_after_what_it_depends_on(study: Path, risky: Path, tmp_path: Path) -> None:
    """Another risk gives another name, and so does a changed fleet file; the same task gives the same name."""
    one, other = tasks_of_study(read_study(risky), print)
    assert fingerprint(one) == fingerprint(one) != fingerprint(other)
    fleet = tmp_path / "fleet.toml"
    study.write_text(f'fleets = ["{fleet.name}"]\n[[trace]]\ncount = 5\n', encoding="utf-8")
    names = set()
    for count in (3, 4):
        fleet.write_text(f'[[nic]]\nmodel = "bluefield-2"\ncount = {count}\n', encoding="utf-8")
        names |= {fingerprint(task) for task in tasks_of_study(read_study(study), print)}
    assert len(names) == 2


@pytest.mark.long
def test_ctrl_c_keeps_finished_results(study: Path, tmp_path: Path) -> None:
    """Interrupted while two runs are active, the command exits with status 130, and only whole results are kept."""
    study.write_text('strategies = ["greedy"]\n[[trace]]\ncount = 20\ndraws = 100\n', encoding="utf-8")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "placer", "compare", str(study), "--out", str(out), "--jobs", "2", "--quiet"]
    # a shell that starts these tests in the background makes them and their children ignore interrupts
    restored = partial(signal, SIGINT, SIG_DFL)
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=restored)
    for _ in range(600):
        if list(out.glob("parts/*.parquet")):
            break
        time.sleep(0.05)
    running.send_signal(SIGINT)
    _, stderr = running.communicate(timeout=20)
    assert running.returncode == 130 and "the same command" in stderr
    assert all(len(pd.read_parquet(part)) == 1 for part in out.glob("parts/*.parquet"))
    assert not (out / RESULTS_FILE).exists()


def test_statistics_of_five_and_of_two_draws() -> None:
    """The median of five draws is the third, their range all five; the median of two counts is the upper."""
    figures = {"wastage_pct": 0.0, "violations_pct": 1.0, "rejected": 0, "cost": 1.0}
    rows = [{"strategy": "s", "predictor": None, "nics": nics, **figures} for nics in (10, 20, 30, 40, 50)]
    (row,) = summarize(pd.DataFrame(rows), ["strategy", "predictor"]).to_dict("records")
    assert (row["draws"], row["nics"], row["nics_low"], row["nics_high"]) == (5, 30, 10, 50)
    (row,) = summarize(pd.DataFrame(rows[:2]), ["strategy", "predictor"]).to_dict("records")
    assert (row["nics"], row["nics_low"], row["nics_high"]) == (20, 10, 20)


@pytest.mark.parametrize("draws", [1, 4, 5, 10, 11, 37, 100])
def test_four_draws_in_five_lie_between_low_and_high(draws: int) -> None:
    """For any number of draws, at most a tenth is outside at either end."""
    figures = {"strategy": "s", "wastage_pct": 0.0, "violations_pct": None, "rejected": 0, "cost": 1.0}
    rows = pd.DataFrame([{**figures, "nics": nics} for nics in range(draws)]).astype({"violations_pct": float})
    (row,) = summarize(rows, ["strategy"]).to_dict("records")
    assert 10 * (rows["nics"] < row["nics_low"]).sum() <= draws
    assert 10 * (rows["nics"] > row["nics_high"]).sum() <= draws


def test_statistics_keep_the_order_of_the_study(risky: Path, tmp_path: Path) -> None:
    """Rows are ordered by strategy, then by risk, as in the study."""
    statistics = summarize(execute(tasks_of_study(read_study(risky), print), tmp_path / "out"), GROUP_COLUMNS)
    assert statistics["strategy"].tolist() == ["greedy", "contention-aware", "contention-aware", "optimal"]
    assert statistics["risk"].tolist()[1:3] == [0.05, 0.5] and (statistics["draws"] == 1).all()


def test_results_of_earlier_versions_are_summarized() -> None:
    """They have no budgets: a risk was given, and whether a budget was kept is not known."""
    figures = {"nics": 5, "wastage_pct": 0.0, "violations_pct": 1.0, "rejected": 0, "cost": 1.0}
    named = {"trace": "t", "fleet": "f", "strategy": "s", "predictor": "tomur", "risk": 0.05}
    (row,) = summarize(pd.DataFrame([{**named, **figures}]), GROUP_COLUMNS).to_dict("records")
    assert row["risk"] == row["chosen_risk"] == 0.05
    assert row["keeps_budget"] is None and pd.isna(row["budget_pct"])


def test_the_risks_that_a_budget_chose_are_draws_of_one_row() -> None:
    """Two draws for one budget at two risks are one row with the median risk and the mean of what is expected."""
    figures = {"nics": 5, "wastage_pct": 0.0, "violations_pct": 1.0, "rejected": 0, "cost": 1.0, "strategy": "s"}
    rows = [{**figures, "budget_pct": 2.0, "risk": 0.1 * n, "expected_violations_pct": float(n)} for n in (1, 3)]
    (row,) = summarize(pd.DataFrame(rows), ["strategy", "budget_pct", "risk"]).to_dict("records")
    assert (row["draws"], row["expected_violations_pct"], row["keeps_budget"]) == (2, 2.0, True)
    assert pd.isna(row["risk"]) and row["chosen_risk"] == pytest.approx(0.2)


def test_zero_jobs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--jobs: 0 runs at a time can finish no study"):
        execute([], tmp_path, jobs=0)
