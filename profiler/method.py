"""What a profiling method is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from numpy.random import Generator

from profiler.nf_runs import NfRuns

QUOTA = 400
"""Runs per NF, chosen by measurement.

Mean error (%) on the simulated card with random neighbours, at random and at default traffic: 1.6 and 0.7 after 120
runs, 0.87 and 0.52 after 200, 0.79 and 0.46 after 300, 0.68 and 0.44 after 400, 0.61 and 0.39 after 600, 0.59 and 0.37
after 800.
"""


class Method(ABC):
    """Chooses the runs from which the memory model of one NF is learnt: traffic and memory contention of each.

    Attributes
    ----------
    quota
        Runs per NF unless the user gives another number; None for no limit.
    alone
        The share of the quota that goes, before the method's own runs, to the NF alone over all traffic.
    """

    quota: ClassVar[int | None] = QUOTA
    alone: ClassVar[float] = 0.2

    @abstractmethod
    def profile(self, runs: NfRuns, rng: Generator) -> None:
        """Measure with `runs.measure` until done; QuotaSpent, raised there, ends the method as well.

        Parameters
        ----------
        runs
            Makes the runs, and knows the NF's traffic attributes and memory contention.
        rng
            The only source of randomness.
        """
