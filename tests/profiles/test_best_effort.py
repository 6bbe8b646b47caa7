"""`best-effort.csv` of a profile: read, summarized, refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles import InputError
from profiles.best_effort import BEST_EFFORT, best_effort_summary, read_best_effort

HEADER = "run,purpose,kind,name,settings,throughput_kpps,standard_error_pct,disturbed_pct\n"
ROWS = (
    "0,FlowStats,nf,FlowStats,flows=16,9000,2.5,80\n"
    "0,FlowStats,bench,mem-bench,wss_mb=1,100,7,80\n"
    "1,benches,bench,mem-bench,wss_mb=1,100,3,\n"
)


def test_a_profile_without_the_file_has_no_best_efforts(tmp_path: Path) -> None:
    """Its table is empty."""
    assert len(read_best_effort(tmp_path)) == 0


def test_the_largest_error_of_each_run_counts(tmp_path: Path) -> None:
    """7 % of the first and 3 % of the second have the median 5 %."""
    (tmp_path / BEST_EFFORT).write_text(HEADER + ROWS)
    assert best_effort_summary(read_best_effort(tmp_path), 10) == (
        "best-effort runs, disturbed by other work: 2 of 10; standard error 5.0 % in the median, 7.0 % at most "
        "(best-effort.csv)"
    )


def test_unknown_errors_are_not_counted(tmp_path: Path) -> None:
    """Where no error is known, that is said."""
    (tmp_path / BEST_EFFORT).write_text(HEADER + "0,x,nf,x,,9000,,\n")
    assert best_effort_summary(read_best_effort(tmp_path)) == (
        "best-effort runs, disturbed by other work: 1, with unknown errors (best-effort.csv)"
    )


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """With file, line and column."""
    (tmp_path / BEST_EFFORT).write_text(HEADER + "0,x,nf,x,y,fast,,\n")
    with pytest.raises(InputError, match=r"best-effort.csv:2: throughput_kpps: 'fast' is not a number"):
        read_best_effort(tmp_path)
