"""Every experiment with few runs: it runs, reports completely, and gives the same files again."""

import resource
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from experiments import (
    CannotRun,
    Experiment,
    Outcome,
    Paper,
    Result,
    Setting,
    all_experiments,
    as_text,
    find_experiment,
    page_of_outcomes,
    write_index,
    write_result,
)
from experiments.data_planes import PAPER as DATA_PLANES
from experiments.grus import PAPER as GRUS
from experiments.lemur import PAPER as LEMUR
from experiments.methodology.accuracy import ACCURACY_METRICS, PUBLISHED_PREFIX
from experiments.registry import experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology import synthetic_nfs
from experiments.tomur.methodology.bluefield2 import MISSING_NOTE

NOWHERE = Path("nowhere")
TINY = Setting(scale=0.02, measurements=NOWHERE)
NAMES = [
    *(f"table{number}" for number in (2, 3, 4, 5, 7, 9, 11, 12)),
    *(f"figure{number}" for number in (1, 2, 3, 4, 5, 6, 7, 9)),
]
QUICK = ("table3", "table12", "figure4", "figure6")
"""The small cases of `make test`: a table of errors with measurements and one without, and two figures."""
EACH = [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in NAMES]
STUDIES = ("table6-online", "table6-optimal", "table8", "figure8", "budget")
"""These take minutes even with few runs; parts of them have tests of their own."""
CHAINS = ("chains-figure13", "chains-figure14", "chains-scaling", "chains-table3", "chains-table4")
"""Those of van Rossem et al. have tests of their own."""
ON_THE_HOST = ("table2-host", "figure4-host", "figure9-host")
"""These measure this machine, which is busy while tests run."""
SCORES = ("table2", "table3", "table5", "table9", "table11", "table12")


@pytest.fixture(scope="module", autouse=True)
def quick_training() -> Iterator[None]:
    """Models of made-up NFs from few runs: their errors do not matter here. Predictors are as they are: models of the
    recorded profiles may be trained here, for other tests, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic_nfs, "RUNS_PER_NF", 100)
        patch.setattr(synthetic_nfs, "_cached", {})
        yield


Results = Callable[[str], tuple[Experiment, Result]]


@pytest.fixture(scope="module")
def results(quick_training: None) -> Results:
    """An experiment of this name with its result, which is made once, without BlueField-2 measurements."""

    @cache
    def run(name: str) -> tuple[Experiment, Result]:
        one = find_experiment(name)
        return one, one.run(TINY)

    return run


Written = Callable[[str], list[Path]]


@pytest.fixture(scope="module")
def written(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The files of a result, which are drawn once, in a folder of their own."""

    @cache
    def write(name: str) -> list[Path]:
        return write_result(*results(name), tmp_path_factory.mktemp(name))

    return write


def test_tables_come_before_figures_in_the_order_of_their_numbers() -> None:
    """Every table and figure is found; what is neither comes last. Papers are in the order of their names."""
    names = [one.name for one in all_experiments() if one.paper == PAPER]
    assert names[-1] == "budget"
    of_data_planes, of_grus, of_lemur = (
        [one.name for one in all_experiments() if one.paper == paper] for paper in (DATA_PLANES, GRUS, LEMUR)
    )
    assert [one.name for one in all_experiments()] == [*of_data_planes, *of_grus, *of_lemur, *names, *CHAINS]
    assert [name for name in names if name not in STUDIES + ON_THE_HOST] == NAMES
    assert set(names) == {*NAMES, *STUDIES, *ON_THE_HOST}


@pytest.mark.long
@pytest.mark.parametrize("name", EACH)
def test_a_table_has_published_numbers_verdicts_and_both_testbeds(name: str, results: Results) -> None:
    """Published numbers, the column `verdict`, and the runs on the simulated card and on the hardware."""
    _, result = results(name)
    assert len(result.table) and "verdict" in result.table
    assert result.table[[column for column in result.table if column.startswith("published")]].notna().any(axis=None)
    assert [one.partition(":")[0] for one in result.testbeds] == [SIMULATED_CARD, HARDWARE_CARD]


@pytest.mark.long
@pytest.mark.parametrize("name", EACH)
def test_testbeds_and_notes_are_sentences(name: str, results: Results) -> None:
    """Each ends with a full stop."""
    result = results(name)[1]
    assert all(sentence.endswith(".") for sentence in (*result.testbeds, *result.notes))


@pytest.mark.parametrize("name", [one for one in EACH if one.values[0] in SCORES])
@pytest.mark.long
def test_tables_of_errors_have_the_three_metrics(name: str, results: Results) -> None:
    """MAPE and both accuracies; ours are complete, and each has a column of published numbers."""
    table = results(name)[1].table
    assert {"nf", "predictor", "testbed", "runs"} <= set(table)
    assert table[list(ACCURACY_METRICS)].notna().all(axis=None)
    assert all(PUBLISHED_PREFIX + metric in table for metric in ACCURACY_METRICS)


@pytest.mark.parametrize("name", EACH)
def test_a_result_is_csv_svg_and_png(name: str, results: Results, written: Written) -> None:
    """The files have the experiment's name; the folder has no other files."""
    paths = written(name)
    folder = paths[0].parent
    assert {f"{name}.csv", f"{name}.svg", f"{name}.png"} <= {path.name for path in paths}
    assert sorted(folder.iterdir()) == sorted(paths)
    assert len(pd.read_csv(folder / f"{name}.csv")) == len(results(name)[1].table)
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [one for one in EACH if one.values[0] in ("table2", "table3", "figure3", "figure4")])
def test_the_same_seed_gives_the_same_bytes(name: str, written: Written, tmp_path: Path) -> None:
    """Run again, an experiment writes the same tables and plots."""
    one = find_experiment(name)
    before = [path.read_bytes() for path in written(name)]
    assert before == [path.read_bytes() for path in write_result(one, one.run(TINY), tmp_path)]


def test_another_seed_draws_other_runs(results: Results) -> None:
    """The seed determines the contention levels."""
    one, result = results("table12")
    assert not one.run(Setting(seed=1, scale=0.02, measurements=NOWHERE)).table.equals(result.table)


@pytest.mark.parametrize("names", [QUICK, pytest.param(NAMES, marks=pytest.mark.long)], ids=["quick", "all"])
def test_the_index_has_a_section_per_experiment(
    names: Sequence[str], results: Results, written: Written, tmp_path: Path
) -> None:
    """Each has its title, plot and data; the page names the papers, the seed and the scale."""
    made = {name: results(name) for name in names}
    for name in names:
        _copied(written(name), tmp_path)
    index, _ = write_index([Outcome(*both) for both in made.values()], TINY, tmp_path)
    page = index.read_text(encoding="utf-8")
    assert page.startswith("# Tomur: reproduced tables and figures\n")
    assert f"- {PAPER.title} (Wu et al.)\n" in page and "2 % of the full number of runs, seed 0." in page
    for name, (one, result) in made.items():
        assert f"## {name}\n" in page
        assert one.title in page and f"({name}.svg)" in page
        assert all(f"({name}-{data}.csv)" in page for data in result.data)


def test_the_text_has_dashes_for_unpublished_numbers(results: Results) -> None:
    """An unknown number is a dash; the reason for missing runs is below the table."""
    text = as_text(*results("table3"))
    assert text.startswith("Tomur, table3: ") and f"Testbed: {MISSING_NOTE}\n" in text


@pytest.mark.parametrize("name", EACH)
def test_the_text_has_no_number_that_is_none(name: str, results: Results) -> None:
    assert "nan" not in as_text(*results(name))


def test_missing_measurements_are_reported_at_once() -> None:
    """The message comes while the experiment runs, not only with the result."""
    messages: list[str] = []
    find_experiment("table3").run(Setting(scale=0.02, measurements=NOWHERE, say=messages.append))
    assert MISSING_NOTE in messages


def test_two_experiments_cannot_have_the_same_name() -> None:
    """The second registration raises, so that a later paper cannot replace an experiment."""
    find_experiment("table2")
    with pytest.raises(ValueError, match="two experiments named 'table2'"):
        experiment(PAPER, "table2", "Another table")(lambda setting: results())


@pytest.mark.parametrize("name", [one.name for one in all_experiments()])
def test_a_title_does_not_repeat_the_paper(name: str) -> None:
    """The paper's name stands in front of every title."""
    paper = find_experiment(name).paper
    assert (paper == PAPER) == (name not in CHAINS and paper not in (LEMUR, DATA_PLANES, GRUS))
    assert "of Tomur" not in find_experiment(name).title and paper.name not in find_experiment(name).title


@pytest.mark.parametrize("name", ["table3"])
def test_an_interrupted_result_replaces_no_file(name: str, results: Results, written: Written, tmp_path: Path) -> None:
    """When the plot is interrupted, the table of before is still that of the plot."""
    one, result = results(name)
    before = {path: path.read_bytes() for path in _copied(written(name), tmp_path)}

    def interrupt(figure: Figure) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_result(one, replace(result, table=result.table.head(1), draw=interrupt), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("limit", [0, 3000, 20_000])
def test_a_page_that_does_not_fit_replaces_no_page(
    limit: int, results: Results, written: Written, tmp_path: Path
) -> None:
    """Whichever of the two formats fails, both pages of before are left and no temporary file."""
    _copied(written("table3"), tmp_path)
    write_index([Outcome(*results("table3"))], TINY, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with largest_file(limit), pytest.raises(OSError, match="File too large"):
        write_index([Outcome(*results("table3"))], Setting(seed=1), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def _copied(paths: list[Path], folder: Path) -> list[Path]:
    return [Path(shutil.copy(path, folder)) for path in paths]


@contextmanager
def largest_file(limit: int) -> Iterator[None]:
    """Let writes beyond this file size fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


PAPERS = Paper("One", "One: A Paper", "Doe et al."), Paper("Two", "Two: Another", "Roe et al.")


def unused(setting: Setting) -> Result:
    """Never called: the outcomes are given."""
    raise CannotRun("unused")


@pytest.fixture()
def outcomes(tmp_path: Path) -> list[Outcome]:
    """A result of the first paper and a skipped experiment of the second; the plot is in `tmp_path`."""
    table = pd.DataFrame({"nf": ["NAT"], "published_mape_pct": [1.0], "solo_kpps": [2.0], "verdict": ["differs"]})
    result = Result(table, ("Card: all runs.",), lambda figure: None, ("Invented.",))
    ran, skipped = (Experiment(paper, f"table{paper.name}", "A title", unused) for paper in PAPERS)
    write_result(ran, result, tmp_path)
    return [Outcome(ran, result), Outcome(skipped, reason="no card is available")]


def test_the_title_names_every_paper(outcomes: list[Outcome], tmp_path: Path) -> None:
    """The summary cites them in full."""
    page = page_of_outcomes(outcomes, Setting(), tmp_path)
    assert page.title == "One, Two: reproduced tables and figures"
    assert "Papers: One: A Paper (Doe et al.); Two: Another (Roe et al.)." in page.summary[-1]


def test_the_summary_counts_rows_worse_or_different(outcomes: list[Outcome], tmp_path: Path) -> None:
    """One of one row differs, and one of two experiments ran."""
    summary = page_of_outcomes(outcomes, Setting(), tmp_path).summary[0]
    assert summary.startswith("1 of 2 experiments ran. Rows that are worse than published or different: 1 of 1.")


def test_a_section_has_headings_with_units_and_notes(outcomes: list[Outcome], tmp_path: Path) -> None:
    """Column names become headings; testbeds come before the notes; a skipped experiment gives its reason."""
    _, ran, skipped = page_of_outcomes(outcomes, Setting(), tmp_path).sections
    assert ran.table is not None and list(ran.table) == ["NF", "published MAPE, %", "solo, kpps", "verdict"]
    assert ran.notes == ("Testbed: Card: all runs.", "Invented.")
    assert skipped.title == "Two, tableTwo" and "Skipped: no card is available" in repr(skipped)
