"""The registry of experiments: what an experiment receives, what it returns, and how it is found by name. An experiment
is one file in the folder of its paper: `tableN.py`, `figureN.py`, or any name for what the paper does not have. Putting
the file there registers it. The registry differs from `profiles.registry`: experiments lie in one folder per paper and
are listed in the paper's order."""

import pkgutil
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from profiles import InputError

MEASUREMENTS_FOLDER = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "flowmon-bf2"
"""Default folder of the measurements on a real BlueField-2; it may be missing."""


class CannotRun(Exception):
    """A requirement of the experiment is missing, as the message explains. The experiment is skipped, not failed."""


@dataclass(frozen=True)
class Paper:
    """A paper whose tables and figures are reproduced: the constant `PAPER` of its folder."""

    name: str  # short name: `Tomur`
    title: str  # full title
    authors: str  # as cited: `Wu et al.`

    def __str__(self) -> str:
        return f"{self.title} ({self.authors})"


@dataclass(frozen=True)
class Setting:
    """What an experiment receives."""

    seed: int = 0  # seed of every random choice; the same seed gives the same tables
    scale: float = 1.0  # share of the full number of runs
    measurements: Path = MEASUREMENTS_FOLDER
    """Profile folder of FlowMonitor measured on a BlueField-2, including `validation.csv`."""
    chains: Path | None = None
    """Folder of chains measured at shares of cores (`python -m benches chains`); None for the simulated server."""
    sweep: Path | None = None
    """Folder of a sweep over table entries (`placer sweep`); None for flows on the simulated card."""
    say: Callable[[str], None] = lambda message: None
    """Called with a message before each long step and for each part that is skipped."""

    def count(self, full: int, least: int = 4) -> int:
        """How many of `full` runs to make at this scale."""
        return max(round(full * self.scale), min(least, full))

    def rng(self, purpose: str) -> np.random.Generator:
        """A separate generator for each purpose: the draws of one experiment do not change those of another."""
        return np.random.default_rng([self.seed, zlib.crc32(purpose.encode())])


@dataclass(frozen=True)
class Result:
    """What an experiment returns."""

    table: pd.DataFrame
    """Our numbers next to the published ones; the column `verdict` marks where ours are worse or differ."""
    testbeds: tuple[str, ...]  # one sentence per testbed: which runs were made there, or why none
    draw: Callable[[Figure], None]  # draws the plot
    notes: tuple[str, ...] = ()  # what a reader needs to know to interpret the table
    data: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # further tables by name: the data of the plot


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper, or a further experiment, and the function that makes it."""

    paper: Paper
    name: str
    title: str
    run: Callable[[Setting], Result]


EXPERIMENT_KINDS = ("table", "figure")

_registered: dict[str, Experiment] = {}


def experiment(
    paper: Paper, name: str, title: str
) -> Callable[[Callable[[Setting], Result]], Callable[[Setting], Result]]:
    """Register the decorated function as the experiment `name`. Raises `ValueError` when another experiment has that
    name."""

    def register(run: Callable[[Setting], Result]) -> Callable[[Setting], Result]:
        if name in _registered:
            raise ValueError(f"There are two experiments named '{name}'.")
        _registered[name] = Experiment(paper, name, title, run)
        return run

    return register


def all_experiments() -> list[Experiment]:
    """The experiments of every paper: tables, then figures, each by number, then others by name."""
    for folder in pkgutil.iter_modules([str(Path(__file__).parent)], "experiments."):
        if folder.ispkg and hasattr(package := import_module(folder.name), "PAPER"):
            for module in pkgutil.iter_modules(package.__path__, f"{folder.name}."):
                import_module(module.name)
    return sorted(_registered.values(), key=_order)


def find_experiment(name: str) -> Experiment:
    """The experiment of that name. Raises `InputError` when there is none; the hint names the nearest, or all."""
    known = all_experiments()
    for experiment in known:
        if experiment.name == name:
            return experiment
    raise _unknown(name, known)


def find_experiments(name: str, known: Sequence[Experiment]) -> list[Experiment]:
    """The experiments that a name stands for. `name`: `all`, the name of one experiment, or a table or figure with
    several: `table6` stands for `table6-online` and `table6-optimal`. `known`: the experiments to choose from. Raises
    `InputError` when it stands for none; the hint names the nearest, or all."""
    if name == "all":
        return list(known)
    exact = [experiment for experiment in known if experiment.name == name]
    found = exact or [experiment for experiment in known if experiment.name.startswith(f"{name}-")]
    if not found:
        raise _unknown(name, known)
    return found


def _unknown(name: str, known: Sequence[Experiment]) -> InputError:
    names = [experiment.name for experiment in known]
    without_variant = {name.partition("-")[0] for name in names}
    near = get_close_matches(name, sorted({*names, *without_variant}), n=3) or names
    return InputError.of("NAME", f"'{name}' is not an experiment", hint=f"one of {', '.join(near)}, or all")


def _order(one: Experiment) -> tuple[str, int, int, str]:
    match = re.match(r"(table|figure)(\d+)", one.name)
    kind, number = (EXPERIMENT_KINDS.index(match[1]), int(match[2])) if match else (len(EXPERIMENT_KINDS), 0)
    return one.paper.name, kind, number, one.name
