"""Retries: a run that fails is repeated on a restarted testbed, a limited number of times."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence

from profiler.testbed import Run, RunRefused, Testbed, TestbedChanged, TestbedError, refuse_invalid
from profiles import Load, TestbedDescription

ATTEMPTS = 3
PAUSES_S = (0.5, 2.0)
"""Before the second and the third attempt."""


class RetryingTestbed(Testbed):
    """A testbed that is closed and opened again whenever it fails.

    A run whose testbed ended, hung, answered late, under another id or with invalid values is attempted three times;
    the last failure is the error. A run that the testbed refuses is not repeated, because it would be refused again.
    A testbed that does not start, or first describes itself wrongly, is not restarted: the user has just started it
    and can correct the command.

    Parameters
    ----------
    reopen
        Starts the testbed. Called once at the beginning, then after each failure.
    notify
        Called with a message about every failure that is retried.
    pause
        Waits that many seconds.
    """

    def __init__(
        self,
        reopen: Callable[[], Testbed],
        notify: Callable[[str], None] = lambda message: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._reopen = reopen
        self._notify = notify
        self._pause = pause
        self._testbed: Testbed | None = reopen()
        self._batches = self._testbed.batches
        self._description: TestbedDescription | None = None

    @property
    def batches(self) -> bool:
        return self._batches

    def describe(self) -> TestbedDescription:
        if self._description is None:
            self._description = self._opened().describe()
        return self._description

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        return self.run_many([loads], noise=noise, seed=seed)[0]

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[Run]:
        for attempt, pause in enumerate((*PAUSES_S, None), start=1):
            try:
                runs = self._opened().run_many(co_locations, noise=noise, seed=seed)
                for run in runs:
                    refuse_invalid(run)
                return runs
            except (RunRefused, TestbedChanged):
                raise
            except TestbedError as error:
                self.close()
                if pause is None:
                    raise TestbedError(f"gave up after {ATTEMPTS} attempts at one run: {error}") from None
                self._notify(f"attempt {attempt} of {ATTEMPTS} failed, restarting the testbed: {error}")
                self._pause(pause)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        if self._testbed is not None:
            with contextlib.suppress(TestbedError):
                self._testbed.close()
        self._testbed = None

    def _opened(self) -> Testbed:
        """The testbed, restarted if it was closed; it must describe itself as before."""
        if self._testbed is None:
            testbed = self._reopen()
            if self._description is not None and (described := testbed.describe()) != self._description:
                testbed.close()
                raise TestbedChanged(
                    f"testbed {self._description.name} describes itself differently after a restart: {described}"
                )
            self._testbed = testbed
        return self._testbed
