"""Every experiment in a tiny setting: that it runs, tells what it promises, and tells it again."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from experiments import (
    Experiment,
    Outcome,
    Result,
    Setting,
    all_experiments,
    as_text,
    find_experiment,
    write_index,
    write_result,
)
from experiments.methodology.accuracy import METRICS, PUBLISHED

NOWHERE = Path("nowhere")
TINY = Setting(scale=0.02, measurements=NOWHERE)
NAMES = [
    *(f"table{number}" for number in (2, 3, 4, 5, 7, 11, 12)),
    *(f"figure{number}" for number in range(1, 8)),
]
STUDIES = ("table6-online", "table6-optimal", "table8", "figure8")
"""They take minutes even when tiny, and are run by their own command."""
ON_THE_HOST = ("table2-host", "figure4-host", "figure9-host")
"""They measure the machine at hand, which has other work while tests run."""
SCORES = ("table2", "table3", "table5", "table11", "table12")


@pytest.fixture(scope="module")
def results() -> dict[str, tuple[Experiment, Result]]:
    """Every experiment with its result, without BlueField-2 measurements."""
    return {one.name: (one, one.run(TINY)) for one in all_experiments() if one.name in NAMES}


def test_all_are_there() -> None:
    """The experiments are the tables and figures that were promised, in the order of the paper."""
    names = [one.name for one in all_experiments()]
    assert [name for name in names if name not in STUDIES + ON_THE_HOST] == NAMES
    assert set(names) == {*NAMES, *STUDIES, *ON_THE_HOST}


@pytest.mark.parametrize("name", NAMES)
def test_says_what_is_published_what_is_worse_and_what_ran_where(
    name: str, results: dict[str, tuple[Experiment, Result]]
) -> None:
    """A table has published numbers and the column `worse`, and both testbeds are accounted for."""
    _, result = results[name]
    assert len(result.table)
    assert "worse" in result.table
    published = [column for column in result.table if column.startswith("published")]
    assert result.table[published].notna().any(axis=None)
    assert any("the simulated BlueField-2" in where for where in result.ran_on)
    assert any(where.startswith("BlueField-2: ") for where in result.ran_on)


@pytest.mark.parametrize("name", SCORES)
def test_tables_of_errors_have_the_three_metrics(name: str, results: dict[str, tuple[Experiment, Result]]) -> None:
    """MAPE and both accuracies, ours complete and each beside the published one."""
    table = results[name][1].table
    assert {"nf", "predictor", "testbed", "runs"} <= set(table)
    assert table[list(METRICS)].notna().all(axis=None)
    assert all(PUBLISHED + metric in table for metric in METRICS)


@pytest.mark.parametrize("name", NAMES)
def test_files_are_written_whole(name: str, results: dict[str, tuple[Experiment, Result]], tmp_path: Path) -> None:
    """CSV, SVG and PNG appear under the experiment's name and nothing is left beside them."""
    written = write_result(*results[name], tmp_path)
    assert {f"{name}.csv", f"{name}.svg", f"{name}.png"} <= {path.name for path in written}
    assert sorted(tmp_path.iterdir()) == sorted(written)
    assert len(pd.read_csv(tmp_path / f"{name}.csv")) == len(results[name][1].table)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["table2", "table5", "figure3", "figure4"])
def test_same_seed_same_bytes(name: str, results: dict[str, tuple[Experiment, Result]], tmp_path: Path) -> None:
    """Run again, an experiment writes the same bytes, plot included."""
    one, result = results[name]
    before = [path.read_bytes() for path in write_result(one, result, tmp_path / "before")]
    after = [path.read_bytes() for path in write_result(one, one.run(TINY), tmp_path / "after")]
    assert before == after


def test_another_seed_draws_other_runs(results: dict[str, tuple[Experiment, Result]]) -> None:
    """The seed decides which contention is met."""
    one, result = results["table12"]
    assert not one.run(Setting(seed=1, scale=0.02, measurements=NOWHERE)).table.equals(result.table)


def test_index_shows_everything(results: dict[str, tuple[Experiment, Result]], tmp_path: Path) -> None:
    """The page has a section, a table, the plot and the data of each."""
    for one, result in results.values():
        write_result(one, result, tmp_path)
    written, _ = write_index([Outcome(*both) for both in results.values()], TINY, tmp_path)
    page = written.read_text(encoding="utf-8")
    assert "Seed 0, 0.02 of the full number of runs." in page
    for name, (one, result) in results.items():
        assert f"## {name}\n" in page
        assert one.title in page
        assert f"({name}.svg)" in page
        assert all(f"({name}-{data}.csv)" in page for data in result.data)


def test_text_marks_what_is_not_published(results: dict[str, tuple[Experiment, Result]]) -> None:
    """An unknown number is a dash, and what was left out is told below the table."""
    text = as_text(*results["table3"])
    assert "SKIPPED" in text
    assert "nan" not in "".join(as_text(*one) for one in results.values())


def test_skipping_is_said() -> None:
    """Without measurements, whoever asked is told at once, not only in the result."""
    told: list[str] = []
    find_experiment("table3").run(Setting(scale=0.02, measurements=NOWHERE, say=told.append))
    assert any("SKIPPED" in message for message in told)
