"""Tables and figures of the papers, repeated: a folder per paper, one file each, which registers itself."""

from experiments.outcome import Outcome, outcomes_of
from experiments.page import page_of_outcomes
from experiments.registry import CannotRun, Experiment, Result, Setting, all_experiments, find_experiment
from experiments.report import as_text, write_index, write_result

__all__ = [
    "CannotRun",
    "Experiment",
    "Outcome",
    "Result",
    "Setting",
    "all_experiments",
    "as_text",
    "find_experiment",
    "outcomes_of",
    "page_of_outcomes",
    "write_index",
    "write_result",
]
