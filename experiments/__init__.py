"""The experiments of the Tomur paper, repeated; one file each, which registers itself. Read `table2.py` first."""

from experiments.registry import Experiment, Result, Setting, all_experiments, find_experiment
from experiments.report import as_text, write_index, write_result

__all__ = [
    "Experiment",
    "Result",
    "Setting",
    "all_experiments",
    "as_text",
    "find_experiment",
    "write_index",
    "write_result",
]
