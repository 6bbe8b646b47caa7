"""Repeated measurements on the host testbed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from experiments.methodology import host_testbed
from experiments.methodology.host_testbed import RepeatedRuns, measure, open_host_testbed
from experiments.registry import CannotRun, Setting
from profiler.testbed import Run, Testbed, TestbedError
from profiles import InputError, Load, TestbedDescription

TINY = Setting(scale=0.1)


class Noisy(Testbed):
    """A testbed whose measurements never reach the standard error."""

    def describe(self) -> TestbedDescription:
        raise NotImplementedError

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        raise TestbedError("too-noisy: standard error 3 %")


def test_the_standard_error_is_that_of_the_mean() -> None:
    """Of 1, 2 and 3 the mean is 2 with a standard error of 1/sqrt(3); of a single value it is 0."""
    runs = RepeatedRuns(np.array([[1.0], [2.0], [3.0]]))
    assert runs.mean[0] == 2.0
    assert runs.standard_error[0] == pytest.approx(1 / np.sqrt(3))
    assert RepeatedRuns(np.array([[1.0]])).standard_error[0] == 0.0


def test_an_experiment_cannot_run_without_the_host_testbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason has the hint how to build it."""

    def refuse(spec: str) -> Testbed:
        raise InputError.of("--testbed", "host: is not built", hint="make nfs")

    monkeypatch.setattr(host_testbed, "open_testbed", refuse)
    with pytest.raises(CannotRun, match=r"is not built \(make nfs\)"):
        open_host_testbed(TINY)


def test_an_experiment_cannot_run_on_a_noisy_machine() -> None:
    """The reason repeats the error of the testbed."""
    with pytest.raises(CannotRun, match="standard error 3 %"):
        measure(Noisy(), [[]], TINY)
