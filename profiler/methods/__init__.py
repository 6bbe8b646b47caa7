"""Profiling methods by name: what `--method NAME` chooses. A method is one file here that registers a class under the
file's name. Another package adds one through an entry point of the group `placer.methods`."""

from abc import ABC, abstractmethod
from typing import ClassVar

from numpy.random import Generator

from profiler.runs.nf_runs import NfRuns
from profiles.registry import Registry

DEFAULT_QUOTA = 400
"""Runs per NF, chosen by measurement. Mean error (%) on the simulated card with random neighbours, at random and at
default traffic: 1.6 and 0.7 after 120 runs, 0.87 and 0.52 after 200, 0.79 and 0.46 after 300, 0.68 and 0.44 after 400,
0.61 and 0.39 after 600, 0.59 and 0.37 after 800."""


class Method(ABC):
    """Chooses the runs from which the memory model of one NF is learnt: traffic and memory contention of each."""

    quota: ClassVar[int | None] = DEFAULT_QUOTA  # runs per NF unless the user gives another number; None for no limit
    alone: ClassVar[float] = 0.2
    """The share of the quota that goes, before the method's own runs, to the NF alone over all traffic."""

    @abstractmethod
    def profile(self, runs: NfRuns, rng: Generator) -> None:
        """Measure with `runs.measure` until done; QuotaSpent, raised there, ends the method as well. `runs`: makes the
        runs, and knows the NF's traffic attributes and memory contention. `rng`: the only source of randomness."""


METHODS: Registry[type[Method]] = Registry("profiling method", "profiler.methods", "placer.methods", "--method")


def find_method(name: str) -> Method:
    """The method of that name; InputError, with the nearest name, when there is none."""
    return METHODS.find(name)()


def list_methods() -> str:
    """The name of every method, without importing any, for help texts."""
    return ", ".join(METHODS.file_names())
