"""Sizing: the options, the answer by hand, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from placer.report.text.sizing import curves_of, line_of
from placer.studies.sizing import Sizing, answer_of, best_risks, options_of, points_of, units_of_options
from profiles import InputError
from tests.placer.commands.test_compare import placer
from traces.arrivals import Recipe, generate

SIZING = Sizing("now.csv", next_year=2.0, growth=(1.0, 2.0), draws=2, budget_pct=2.0)


def results(*options: tuple[str, int, tuple[int, int], float, int]) -> pd.DataFrame:
    """Rows of a sizing by hand: per strategy NICs today, in two draws of next year, SLAs broken, and rejected."""
    rows = []
    for strategy, today, nics, broken, rejected in options:
        told = {"fleet": "unlimited", "strategy": strategy, "predictor": None, "risk": None, "wastage_pct": 0.0,
                "violations_pct": broken, "rejected": rejected, "truth": "simulated"}  # fmt: skip
        rows.append({**told, "axis": "today", "factor": 1.0, "draw": 0, "nics": today, "cost": float(today)})
        rows += [
            {**told, "axis": "arrivals", "factor": 2.0, "draw": draw, "nics": count, "cost": float(count)}
            for draw, count in enumerate(nics)
        ]
    return pd.DataFrame(rows)


def at_risk(rows: pd.DataFrame, risk: float) -> pd.DataFrame:
    """The same rows of a predictor at that risk."""
    return rows.assign(predictor="tomur", risk=risk)


def test_the_cheapest_within_the_budget_is_bought() -> None:
    """Ten NICs would break too many SLAs, twelve reject somebody, so it is 20: the most that a draw took."""
    answer = answer_of(
        results(("rash", 5, (10, 10), 3.0, 0), ("small", 5, (12, 12), 0.0, 1), ("safe", 9, (18, 20), 1.0, 0)), SIZING
    )
    assert (answer.option["strategy"], answer.today, answer.nics, answer.more) == ("safe", 9, 20, 11)
    assert line_of(answer, SIZING) == (
        "Buy 11 more NICs for 2 times the arrivals: 20 instead of 9 (18 to 20, drawn 2 times), placed by safe; "
        "1.0 % of SLAs break, 2 % may."
    )


def test_where_no_option_keeps_to_the_budget_that_is_said() -> None:
    """The least bad is told, and that it is not good enough."""
    answer = answer_of(results(("rash", 5, (10, 10), 9.0, 0), ("bold", 6, (12, 12), 3.0, 0)), SIZING)
    assert answer.option["strategy"] == "bold"
    assert line_of(answer, SIZING).startswith("No option keeps to the budget; the least bad: Buy 6 more NICs")


def test_who_finds_no_place_is_told() -> None:
    """Where every option rejects somebody, the line says how many."""
    answer = answer_of(results(("small", 5, (5, 5), 0.0, 7)), SIZING)
    assert line_of(answer, SIZING).endswith("0.0 % of SLAs break, 2 % may; 7 instances find no place.")


def test_where_nobody_tells_the_truth_the_cheapest_is_taken() -> None:
    """Unknown violations keep nobody out, and the line says that they are unknown."""
    answer = answer_of(results(("one", 5, (4, 5), float("nan"), 0), ("two", 6, (12, 12), float("nan"), 0)), SIZING)
    assert answer.more == 0
    assert line_of(answer, SIZING).startswith("Buy no NICs for 2 times the arrivals: 5 instead of 5")
    assert line_of(answer, SIZING).endswith("whether SLAs break is unknown.")


def test_next_year_is_a_point_of_the_curve() -> None:
    """Whatever factors are drawn; other axes are at next year's arrivals."""
    points = points_of(replace(SIZING, next_year=1.3, sla=(0.5,)))
    assert [(axis, factor) for axis, factor, _ in points] == [
        ("arrivals", 1.0), ("arrivals", 1.3), ("arrivals", 2.0), ("sla", 0.5),
    ]  # fmt: skip
    assert (points[-1][2].arrivals, points[-1][2].sla) == (1.3, 0.5)


def test_curves_are_drawn_at_the_best_risk() -> None:
    """Of one strategy the risk within the budget is kept, of another, which keeps to none, the least bad."""
    rows = pd.concat(
        [
            at_risk(results(("one", 5, (10, 10), 3.0, 0), ("two", 5, (9, 9), 7.0, 0)), 0.5),
            at_risk(results(("one", 5, (12, 12), 1.0, 0), ("two", 5, (9, 9), 6.0, 0)), 0.05),
            at_risk(results(("one", 5, (14, 14), 0.0, 0), ("two", 5, (9, 9), 8.0, 0)), 0.01),
        ]
    )
    kept = best_risks(options_of(rows, SIZING))
    assert kept[["strategy", "risk"]].to_numpy().tolist() == [["one", 0.05], ["two", 0.05]]
    assert set(curves_of(rows, SIZING)["curve"]) == {"one, tomur at risk 0.05", "two, tomur at risk 0.05"}


def test_fleets_that_results_could_not_tell_apart_are_refused() -> None:
    """Two files of the same name in two folders would be one option."""
    sizing = replace(SIZING, arrivals="any.csv", fleets=(Path("a/few.toml"), Path("b/few.toml")))
    with pytest.raises(InputError, match="--fleet: two fleets are called few"):
        units_of_options(sizing, print)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Twenty arrivals."""
    path = tmp_path / "now.csv"
    path.write_text("".join(generate(Recipe(count=20, seed=3))), encoding="utf-8")
    return path


def test_size_answers_in_its_first_line(trace: Path, tmp_path: Path) -> None:
    """The same answer as a line, as JSON and on the page; on fewer cores a fleet takes no fewer NICs."""
    small = tmp_path / "four-cores.toml"
    small.write_text('[[nic]]\nmodel = "bluefield-2"\ncores = 4\n', encoding="utf-8")
    common = ["size", trace, "--growth", "1", "--draws", "2", "--risk", "0.25", "--strategy", "contention-aware",
              "--out", tmp_path / "out", "--quiet"]  # fmt: skip
    page = tmp_path / "page.html"
    line = placer(*common, "--report", page).splitlines()[0]
    told = json.loads(placer(*common, "--format", "json"))["answer"]
    assert line.startswith(f"Buy {told['more_nics']} more NICs for 1.5 times the arrivals")
    said = page.read_text(encoding="utf-8").replace("&#39;", "'")
    assert line in said
    assert f"size {trace} --growth 1 --strategy contention-aware --risk 0.25 --draws 2 --report FILE.html" in said
    narrow = json.loads(placer(*common, "--fleet", small, "--format", "json"))["answer"]
    assert narrow["fleet"] == "four-cores"
    assert narrow["nics"] >= told["nics"]
