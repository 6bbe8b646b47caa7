"""`placer compare` as a whole: what it prints and writes."""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from placer.commands.options import results_folder
from placer.studies import RunTask
from tests.placer.commands.conftest import run_placer


def placer(*arguments: object) -> str:
    ended = run_placer(*arguments)
    assert ended.status == 0, ended.stderr
    return ended.stdout


@pytest.mark.long
def test_compare_prints_medians_and_writes_every_row(risky: Path, tmp_path: Path) -> None:
    """Table, JSON and Parquet have a row per strategy and risk; the page names the best."""
    out, page = tmp_path / "out", tmp_path / "page.html"
    rows = json.loads(placer("compare", risky, "--jobs", 1, "--out", out, "--format", "json", "--quiet"))
    assert [row["strategy"] for row in rows] == ["greedy", "contention-aware", "contention-aware", "optimal"]
    assert len(pd.read_parquet(out / "results.parquet")) == 4
    table = placer("compare", risky, "--jobs", 1, "--out", out, "--report", page, "--quiet")
    assert table.splitlines()[0].split() == ["strategy", "predictor", "risk", "draws", "NICs", "wastage", "%", "SLA",
                                             "violations", "%", "expected", "%", "rejected"]  # fmt: skip
    recommended = next(
        line for line in table.splitlines() if line.startswith("Least wastage with at most 2 % SLA viol")
    )
    assert recommended in page.read_text(encoding="utf-8")
    assert table.endswith("\nThroughput is measured on the simulated card, not on hardware.\n")
    assert {row["budget_pct"] for row in rows} == {None}


@pytest.mark.long
@pytest.mark.parametrize("format", ["csv", "json"])
def test_csv_and_json_have_the_same_columns(study: Path, tmp_path: Path, format: str) -> None:
    """Both have the labels, and median, low and high of NICs."""
    output = placer("compare", study, "--jobs", 1, "--out", tmp_path / "out", "--format", format, "--quiet")
    header = output.splitlines()[0].split(",") if format == "csv" else list(json.loads(output)[0])
    assert {"trace", "fleet", "strategy", "risk", "draws", "nics", "nics_low", "nics_high"} <= set(header)


@pytest.mark.long
def test_a_study_is_placed_for_the_budget_of_the_command(study: Path, tmp_path: Path) -> None:
    """Every row has it, with whether it was kept; Parquet has the columns."""
    out = tmp_path / "out"
    rows = json.loads(placer("compare", study, "--jobs", 1, "--budget", 5, "--out", out, "--format", "json", "--quiet"))
    for row in rows:
        assert row["budget_pct"] == 5 and row["keeps_budget"] is (row["violations_mean_pct"] <= 5)
        assert row["expected_violations_pct"] >= 0
    assert {"budget_pct", "expected_violations_pct", "risk"} <= set(pd.read_parquet(out / "results.parquet"))


def test_a_missed_budget_is_followed_by_smaller_ones(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A half, a quarter and an eighth, unless the study lists its budgets."""
    asked: list[float | None] = []

    def executed(tasks: Sequence[RunTask], out: Path, **_: object) -> pd.DataFrame:
        asked[:] = [task.cards.budget_pct for task in tasks]
        fixed = {"trace": "t", "fleet": "unlimited", "strategy": "contention-aware", "predictor": "tomur", "nics": 9}
        figures = {"wastage_pct": 1.0, "rejected": 0, "cost": 9.0, "draw": 0, "truth": "simulated", "risk": 0.1}
        rows = [{**fixed, **figures, "budget_pct": one, "violations_pct": 2.0 * float(one or 0)} for one in set(asked)]
        return pd.DataFrame(rows)

    monkeypatch.setattr("placer.studies.execute", executed)
    listed = study.with_name("listed.toml")
    text = study.read_text(encoding="utf-8").replace('"greedy"', '"contention-aware"')
    study.write_text(text.replace("draws = 3", ""), encoding="utf-8")
    listed.write_text("budgets = [4]\n" + text, encoding="utf-8")
    shown = placer("compare", study, "--jobs", 1, "--out", tmp_path / "out", "--quiet")
    assert sorted(set(asked), reverse=True) == [2.0, 1.0, 0.5, 0.25]
    assert "Least wastage with at most 2 % SLA violations: contention-aware, tomur at budget " in shown
    missed = placer("compare", listed, "--jobs", 1, "--out", tmp_path / "out", "--quiet")
    assert "8.0 % SLA violations; more than the budget of 4 %.\n" in missed and set(asked) == {4.0}


def test_results_are_kept_in_the_users_cache_unless_a_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file continues in its folder; another one of the same name has another."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    ours, others = (results_folder(None, tmp_path / folder / "study.toml") for folder in ("ours", "others"))
    assert ours.parent == tmp_path / "cache" / "nf-placer" / "studies"
    assert ours == results_folder(None, tmp_path / "ours" / "study.toml") != others
    assert results_folder(tmp_path, tmp_path / "study.toml") == tmp_path
