"""The experiments: what one is given, what it answers, and how it makes itself known."""

from __future__ import annotations

import pkgutil
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from profiles import InputError

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "flowmon-bf2"
"""Where measurements of a real BlueField-2 lie, if they do: beside the project."""

Say = Callable[[str], None]


class CannotRun(Exception):
    """Something that the experiment needs is not here; the message says what. It is skipped then, not failed."""


@dataclass(frozen=True)
class Setting:
    """What an experiment is given.

    Parameters
    ----------
    seed
        Of every choice; the same seed gives the same tables.
    scale
        Share of the full number of runs.
    measurements
        Profile directory of FlowMonitor on a BlueField-2, with `validation.csv` in it.
    say
        Told what takes time, and what is left out.
    """

    seed: int = 0
    scale: float = 1.0
    measurements: Path = SHARED
    say: Say = lambda message: None

    def count(self, full: int, least: int = 4) -> int:
        """How many of `full` runs to make."""
        return max(round(full * self.scale), min(least, full))

    def rng(self, purpose: str) -> np.random.Generator:
        """A generator of its own for each purpose, so that one experiment's draws do not move another's."""
        return np.random.default_rng([self.seed, zlib.crc32(purpose.encode())])


@dataclass(frozen=True)
class Result:
    """What an experiment answers.

    Parameters
    ----------
    table
        Ours beside the published numbers; the column `worse` says where ours are worse.
    ran_on
        A sentence per testbed: what ran there, or why nothing did.
    draw
        Draws the plot.
    notes
        What the reader of the table should know.
    data
        Further tables by name: what the plot shows.
    """

    table: pd.DataFrame
    ran_on: tuple[str, ...]
    draw: Callable[[Figure], None]
    notes: tuple[str, ...] = ()
    data: Mapping[str, pd.DataFrame] = field(default_factory=dict)


Run = Callable[[Setting], Result]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, and the function that repeats it."""

    name: str
    title: str
    run: Run


_registered: dict[str, Experiment] = {}


def experiment(name: str, title: str) -> Callable[[Run], Run]:
    """Make the decorated function known as the experiment `name`."""

    def register(run: Run) -> Run:
        _registered[name] = Experiment(name, title, run)
        return run

    return register


def all_experiments() -> list[Experiment]:
    """Every experiment of every paper's folder, tables before figures, each in the order of the paper."""
    for module in pkgutil.walk_packages([str(Path(__file__).parent)], "experiments."):
        if re.fullmatch(r"(table|figure)\d+(_[a-z]+)?", module.name.rpartition(".")[2]):
            import_module(module.name)
    return sorted(_registered.values(), key=_place)


def find_experiment(name: str) -> Experiment:
    """The experiment of that name.

    Raises
    ------
    InputError
        When there is none; the hint names the nearest, or all.
    """
    known = {one.name: one for one in all_experiments()}
    if name not in known:
        whole = {one.partition("-")[0] for one in known}  # `table6` stands for both of its experiments
        near = get_close_matches(name, sorted({*known, *whole}), n=3) or list(known)
        raise InputError.of("NAME", f"'{name}' is not an experiment", hint=f"one of {', '.join(near)}, or all")
    return known[name]


def _place(one: Experiment) -> tuple[bool, int, str]:
    number = re.search(r"\d+", one.name)
    return one.name.startswith("figure"), int(number.group()) if number else 0, one.name
