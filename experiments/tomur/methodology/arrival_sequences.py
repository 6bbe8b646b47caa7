"""Random sequences of arrivals, spread over the cores of the machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import joblib

from experiments.registry import Setting
from placer.inputs.catalogue import Cards, open_catalogue
from traces.arrivals import Recipe, generate

SEQUENCES = 100
ARRIVALS = 500

Told = TypeVar("Told")


@contextmanager
def written(seed: int, count: int = ARRIVALS) -> Iterator[str]:
    """The path of a sequence, while it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "arrivals.csv"
        trace.write_text("".join(generate(Recipe(count=count, seed=seed))), encoding="utf-8")
        yield str(trace)


def each_sequence(setting: Setting, tell: Callable[[int], Told], jobs: int = -1) -> Iterator[Told]:
    """What `tell` answers to the seed of every sequence, in order, whichever core was first.

    Parameters
    ----------
    setting
        How many sequences, and who is told of progress.
    tell
        Runs in a process of its own; its answer must depend on nothing but the seed.
    jobs
        Processes; -1 is one per core, 1 stays in this process.
    """
    sequences = setting.count(SEQUENCES)
    # Models are made here if there are none yet, not by every process at once.
    with ExitStack() as stack:
        open_catalogue(Cards(), stack, setting.say)
    calls = (joblib.delayed(tell)(setting.seed * SEQUENCES + number) for number in range(sequences))
    for done, told in enumerate(joblib.Parallel(n_jobs=jobs, return_as="generator")(calls), start=1):
        yield told
        if done % 10 == 0:
            setting.say(f"{done} of {sequences} sequences")
