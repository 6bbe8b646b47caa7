"""Random sequences of arrivals, evaluated on all cores of the machine (Tomur, section 7.5)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TextIO, TypeVar

import joblib

from experiments.registry import Setting
from placer.inputs.catalogue import Cards, open_catalogue
from traces.arrivals import Recipe, generate

SEQUENCES = 100
ARRIVALS = 500

Evaluated = TypeVar("Evaluated")


def sequence(seed: int, count: int = ARRIVALS) -> TextIO:
    """The sequence of that seed, as a CSV of arrivals."""
    return io.StringIO("".join(generate(Recipe(count=count, seed=seed))))


def each_sequence(setting: Setting, evaluate: Callable[[int], Evaluated], jobs: int = -1) -> Iterator[Evaluated]:
    """What `evaluate` returns for the seed of every sequence, in the order of the seeds.

    Parameters
    ----------
    setting
        Scales the number of sequences, and receives the progress.
    evaluate
        Runs in a separate process; its result must depend on the seed only.
    jobs
        Number of processes; -1 means one per core, 1 stays in this process.
    """
    sequences = setting.count(SEQUENCES)
    # train missing models here once, not in every process
    with ExitStack() as stack:
        open_catalogue(Cards(), stack, setting.say)
    calls = (joblib.delayed(evaluate)(setting.seed * SEQUENCES + number) for number in range(sequences))
    for done, result in enumerate(joblib.Parallel(n_jobs=jobs, return_as="generator")(calls), start=1):
        yield result
        if done % 10 == 0:
            setting.say(f"{done} of {sequences} sequences")
