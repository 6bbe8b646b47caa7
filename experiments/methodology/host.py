"""The machine at hand as a testbed: opened for an experiment, and measured several times over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.registry import CannotRun, Setting
from profiler.retry import RetryingTestbed
from profiler.testbed import Testbed, TestbedError
from profiler.testbeds import open_testbed
from profiles import InputError, Load

REPEATS = 5
"""Measurements of every point: their spread is the error bar."""
STANDARD_ERROR_PCT = 2
"""Of one measurement, at most; the mean of five has less than half of it."""


@dataclass(frozen=True)
class Measured:
    """Throughputs (kpps) of one company, or what is made of them, shape (repeats, loads)."""

    kpps: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Shape (loads,)."""
        return np.asarray(self.kpps.mean(axis=0))

    @property
    def standard_error(self) -> np.ndarray:
        """Of the mean, shape (loads,); 0 after a single measurement, which tells nothing of it."""
        if len(self.kpps) == 1:
            return np.zeros(self.kpps.shape[1])
        return np.asarray(self.kpps.std(axis=0, ddof=1) / np.sqrt(len(self.kpps)))


def open_host(setting: Setting, *options: str) -> Testbed:
    """The host testbed, started with `options`, and started again where the machine has no rest for a while.

    Raises
    ------
    CannotRun
        When it is not built or does not start.
    """
    told = " ".join([f"--standard-error {STANDARD_ERROR_PCT}", *options])
    try:
        return RetryingTestbed(lambda: open_testbed(f"host:{told}"), setting.say)
    except InputError as error:
        fault = error.faults[0]
        raise CannotRun(f"{fault.message} ({fault.hint})" if fault.hint else fault.message) from error
    except TestbedError as error:
        raise CannotRun(f"the host testbed does not start: {error}") from error


def measure(
    testbed: Testbed, co_locations: Sequence[Sequence[Load]], setting: Setting, repeats: int = REPEATS
) -> list[Measured]:
    """Every company so many times, each time all of them in turn, so that a slow drift shows as spread.

    What belongs together, such as a load alone and in company, is best compared within each repeat.

    Raises
    ------
    CannotRun
        When the machine is too noisy for a measurement, or too small.
    """
    repeats = setting.count(repeats, least=2)
    rounds = []
    for done in range(repeats):
        setting.say(f"round {done + 1} of {repeats}: {len(co_locations)} runs")
        try:
            rounds.append([testbed.run(loads) for loads in co_locations])
        except TestbedError as error:
            raise CannotRun(f"this machine cannot measure it: {error}") from error
    return [
        Measured(np.array([[one.throughput_kpps for one in runs[at].measurements] for runs in rounds]))
        for at in range(len(co_locations))
    ]
