"""Reproduces tables and figures of papers: a folder per paper, in it one file per table or figure."""

from experiments.outcome import Outcome, outcomes_of
from experiments.registry import (
    CannotRun,
    Experiment,
    Paper,
    Result,
    Setting,
    all_experiments,
    find_experiment,
    find_experiments,
)
from experiments.report import as_text, page_of_outcomes, write_index, write_result

__all__ = [
    "CannotRun",
    "Experiment",
    "Outcome",
    "Paper",
    "Result",
    "Setting",
    "all_experiments",
    "as_text",
    "find_experiment",
    "find_experiments",
    "outcomes_of",
    "page_of_outcomes",
    "write_index",
    "write_result",
]
