"""Sizing: the options, recommendations checked by hand, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from placer.cli import app
from placer.report.text.sizing import curves_of, recommendation_line
from placer.studies.sizing import Sizing, best_risks, option_tasks, options_of, points_of, recommendation_of
from profiles import InputError
from tests.placer.commands.test_compare import placer
from traces.arrivals import Recipe, generate

SIZING = Sizing("now.csv", next_year=2.0, growth=(1.0, 2.0), draws=2, budget_pct=2.0)


def results(*options: tuple[str, int, tuple[int, int], float, int]) -> pd.DataFrame:
    """Rows of a sizing: per strategy NICs today, NICs in two draws of next year, SLA violations (%), and rejected."""
    rows = []
    for strategy, today, nics, violations, rejected in options:
        fixed = {"fleet": "unlimited", "strategy": strategy, "predictor": None, "risk": None, "wastage_pct": 0.0,
                "violations_pct": violations, "rejected": rejected, "truth": "simulated"}  # fmt: skip
        rows.append({**fixed, "axis": "today", "factor": 1.0, "draw": 0, "nics": today, "cost": float(today)})
        rows += [
            {**fixed, "axis": "arrivals", "factor": 2.0, "draw": draw, "nics": count, "cost": float(count)}
            for draw, count in enumerate(nics)
        ]
    return pd.DataFrame(rows)


def at_risk(rows: pd.DataFrame, risk: float) -> pd.DataFrame:
    """The same rows for tomur at that risk."""
    return rows.assign(predictor="tomur", risk=risk)


def test_the_cheapest_within_the_budget_is_bought() -> None:
    """Ten NICs violate too many SLAs, twelve reject an arrival, so it is 20: the most that a draw needs."""
    recommendation = recommendation_of(
        results(("rash", 5, (10, 10), 3.0, 0), ("small", 5, (12, 12), 0.0, 1), ("safe", 9, (18, 20), 1.0, 0)), SIZING
    )
    assert (recommendation.option["strategy"], recommendation.today, recommendation.nics, recommendation.more) == (
        "safe",
        9,
        20,
        11,
    )
    assert recommendation_line(recommendation, SIZING) == (
        "Buy 11 more NICs for 2 times the arrivals: 20 instead of 9 (18 to 20 in 2 draws), placed by safe; "
        "1.0 % SLA violations, budget 2 %."
    )


def test_without_an_option_within_the_budget_the_closest_is_recommended() -> None:
    """The recommendation says that it does not keep the budget."""
    recommendation = recommendation_of(results(("rash", 5, (10, 10), 9.0, 0), ("bold", 6, (12, 12), 3.0, 0)), SIZING)
    assert recommendation.option["strategy"] == "bold"
    assert recommendation_line(recommendation, SIZING).startswith(
        "No option keeps the budget; the closest one: Buy 6 more NICs"
    )


def test_rejected_arrivals_are_in_the_recommendation() -> None:
    """Where every option rejects arrivals, the line says how many."""
    recommendation = recommendation_of(results(("small", 5, (5, 5), 0.0, 7)), SIZING)
    assert recommendation_line(recommendation, SIZING).endswith(
        "0.0 % SLA violations, budget 2 %; 7 arrivals rejected."
    )


def test_without_ground_truth_the_cheapest_option_is_recommended() -> None:
    """Unknown violations exclude no option, and the line says that they are unknown."""
    recommendation = recommendation_of(
        results(("one", 5, (4, 5), float("nan"), 0), ("two", 6, (12, 12), float("nan"), 0)), SIZING
    )
    assert recommendation.more == 0
    assert recommendation_line(recommendation, SIZING).startswith(
        "Buy no NICs for 2 times the arrivals: 5 instead of 5"
    )
    assert recommendation_line(recommendation, SIZING).endswith("SLA violations unknown.")


def test_next_year_is_a_point_of_the_curve() -> None:
    """For any factors; the other axes are at next year's arrivals."""
    points = points_of(replace(SIZING, next_year=1.3, sla=(0.5,)))
    assert [(axis, factor) for axis, factor, _ in points] == [
        ("arrivals", 1.0), ("arrivals", 1.3), ("arrivals", 2.0), ("sla", 0.5),
    ]  # fmt: skip
    assert (points[-1][2].arrivals, points[-1][2].sla) == (1.3, 0.5)


def test_curves_use_the_best_risk() -> None:
    """The curve of a strategy uses its risk within the budget; without one, the risk with fewest violations."""
    rows = pd.concat(
        [
            at_risk(results(("one", 5, (10, 10), 3.0, 0), ("two", 5, (9, 9), 7.0, 0)), 0.5),
            at_risk(results(("one", 5, (12, 12), 1.0, 0), ("two", 5, (9, 9), 6.0, 0)), 0.05),
            at_risk(results(("one", 5, (14, 14), 0.0, 0), ("two", 5, (9, 9), 8.0, 0)), 0.01),
        ]
    )
    kept = best_risks(options_of(rows, SIZING))
    assert kept[["strategy", "risk"]].to_numpy().tolist() == [["one", 0.05], ["two", 0.05]]
    assert set(curves_of(rows, SIZING)["option"]) == {"one, tomur at risk 0.05", "two, tomur at risk 0.05"}


def test_fleets_of_the_same_name_are_refused() -> None:
    """Two files of the same name in two folders would be one option in the results."""
    sizing = replace(SIZING, arrivals="any.csv", fleets=(Path("a/few.toml"), Path("b/few.toml")))
    with pytest.raises(InputError, match="--fleet: two fleets are called few"):
        option_tasks(sizing, print)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Twenty arrivals."""
    path = tmp_path / "now.csv"
    path.write_text("".join(generate(Recipe(count=20, seed=3))), encoding="utf-8")
    return path


def test_size_prints_the_recommendation_in_its_first_line(trace: Path, tmp_path: Path) -> None:
    """Line, JSON and page agree; NICs with fewer cores are no fewer."""
    small = tmp_path / "four-cores.toml"
    small.write_text('[[nic]]\nmodel = "bluefield-2"\ncores = 4\n', encoding="utf-8")
    common = ["size", trace, "--growth", "1", "--draws", "2", "--risk", "0.25", "--strategy", "contention-aware",
              "--out", tmp_path / "out", "--quiet"]  # fmt: skip
    page = tmp_path / "page.html"
    line = placer(*common, "--report", page).splitlines()[0]
    answer = json.loads(placer(*common, "--format", "json"))["answer"]
    assert line.startswith(f"Buy {answer['more_nics']} more NICs for 1.5 times the arrivals")
    html = page.read_text(encoding="utf-8").replace("&#39;", "'")
    assert line in html
    assert f"size {trace} --growth 1 --strategy contention-aware --risk 0.25 --draws 2 --report FILE.html" in html
    narrow = json.loads(placer(*common, "--fleet", small, "--format", "json"))["answer"]
    assert narrow["fleet"] == "four-cores"
    assert narrow["nics"] >= answer["nics"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--next-year", "0"], "--next-year: 0 is not between 0.01 and 1000"),
        (["--next-year", "1e308"], "--next-year: 1e+308 is not between 0.01 and 1000"),
        (["--next-year", "nan"], "--next-year: nan is not between 0.01 and 1000"),
        (["--budget", "-1"], "--budget: -1 is not between 0 and 100"),
        (["--budget", "nan"], "--budget: nan is not between 0 and 100"),
        (["--draws", "0"], "--draws: 0 is not between 1 and 100000"),
        (["--draws", "99999999999999999999"], "--draws: 1e+20 is not between 1 and 100000"),
        (["--growth", "1,-2"], "--growth: '1,-2' is not a list of numbers above 0 and at most 1000"),
        (["--growth", "1e308"], "--growth: '1e308' is not a list of numbers above 0 and at most 1000"),
        (["--sla", "nan"], "--sla: 'nan' is not a list of numbers above 0 and at most 1000"),
        (["--risk", "0.7"], "--risk: '0.7' is not a list of numbers above 0 and at most 0.5"),
        (
            ["--growth", "1000", "--draws", "9999"],
            "--draws: all draws of all points are 200,279,970 arrivals",
        ),
    ],
)
def test_numbers_out_of_range_are_refused(trace: Path, tmp_path: Path, arguments: list[str], fault: str) -> None:
    """The fault names the option and its range."""
    ended = CliRunner().invoke(app, ["size", str(trace), "--out", str(tmp_path / "out"), *arguments])
    assert fault in str(ended.exception)
    assert not (tmp_path / "out").exists()
