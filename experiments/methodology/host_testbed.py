"""Measurements on this machine: opens the host testbed for an experiment and repeats every run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.registry import CannotRun, Setting
from profiler.testbed import Testbed, TestbedError
from profiler.testbed_stack import RetryingTestbed
from profiler.testbeds import open_testbed
from profiles import InputError, Load

HOST_REPEATS = 5  # measurements of every co-location: their standard error is the error bar
STANDARD_ERROR_PCT = 2  # largest standard error of one measurement; that of the mean of five is less than half


@dataclass(frozen=True)
class RepeatedRuns:
    """A quantity of every load of one co-location, measured several times."""

    values: np.ndarray  # throughputs (kpps), or what is computed from them; shape (repeats, loads)

    @property
    def mean(self) -> np.ndarray:
        """Mean over the repeats, shape (loads,)."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def standard_error(self) -> np.ndarray:
        """Standard error of the mean, shape (loads,); 0 after a single measurement, where it is unknown."""
        if len(self.values) == 1:
            return np.zeros(self.values.shape[1])
        return np.asarray(self.values.std(axis=0, ddof=1) / np.sqrt(len(self.values)))


def open_host_testbed(setting: Setting, *options: str) -> Testbed:
    """The host testbed, started with `options`, and restarted when a run fails. Raises `CannotRun` when it is not built
    or does not start."""
    arguments = " ".join([f"--standard-error {STANDARD_ERROR_PCT}", *options])
    try:
        return RetryingTestbed(lambda: open_testbed(f"host:{arguments}"), setting.say)
    except InputError as error:
        fault = error.faults[0]
        raise CannotRun(f"{fault.message} ({fault.hint})" if fault.hint else fault.message) from error
    except TestbedError as error:
        raise CannotRun(f"the host testbed does not start: {error}") from error


def measure(
    testbed: Testbed, co_locations: Sequence[Sequence[Load]], setting: Setting, repeats: int = HOST_REPEATS
) -> list[RepeatedRuns]:
    """Measure every co-location `repeats` times; the throughputs (kpps) of each. Each round measures all of them in
    turn, so that a slow drift of the machine appears as spread. To compare a load alone and co-located, compare them
    within each round. Raises `CannotRun` when the machine is too noisy for a measurement, or too small."""
    repeats = setting.count(repeats, least=2)
    rounds = []
    for done in range(repeats):
        setting.say(f"round {done + 1} of {repeats}: {len(co_locations)} runs")
        try:
            rounds.append([testbed.run(loads) for loads in co_locations])
        except TestbedError as error:
            raise CannotRun(f"this machine cannot measure it: {error}") from error
    return [
        RepeatedRuns(np.array([[nf.throughput_kpps for nf in runs[at].measurements] for runs in rounds]))
        for at in range(len(co_locations))
    ]
