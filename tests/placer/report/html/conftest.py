"""One run and its page, for all tests of HTML reports."""

from pathlib import Path

import pytest

from placer.progress import Progress
from placer.report.html import Page, page_of_run, write_page
from placer.run import Comparison, RunRequest, run
from traces.arrivals import Recipe, generate


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Forty arrivals with departures, placed by every strategy."""
    trace = tmp_path_factory.mktemp("report") / "arrivals.csv"
    trace.write_text("".join(generate(Recipe(count=40, mean_stay_s=300, seed=5))), encoding="utf-8")
    return run(RunRequest(arrivals=str(trace), time_limit=2.0), Progress(quiet=True))


@pytest.fixture(scope="session")
def page(comparison: Comparison) -> Page:
    """The page of the run."""
    return page_of_run(comparison, "arrivals.csv")


@pytest.fixture(scope="session")
def report(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the page."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(page, path)
    return path
