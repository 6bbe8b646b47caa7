"""What became of experiments that were run one after another: one that fails, or cannot run here, loses no other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from experiments.registry import CannotRun, Experiment, Result, Setting
from profiler.testbed import TestbedError
from profiles import InputError

Keep = Callable[[Experiment, Result], None]
"""Puts a result where it belongs, before the next experiment begins."""


@dataclass(frozen=True)
class Outcome:
    """What became of one experiment.

    Parameters
    ----------
    experiment
        Which.
    result
        What it answers; None where it did not come to an end.
    failed
        Whether it should have.
    reason
        Why there is no result.
    """

    experiment: Experiment
    result: Result | None = None
    failed: bool = False
    reason: str = ""

    @property
    def status(self) -> str:
        """`ran`, `skipped` or `failed`."""
        return "ran" if self.result else "failed" if self.failed else "skipped"

    @property
    def marked(self) -> int:
        """Rows in which ours are worse than published, or differ."""
        table = self.result.table if self.result else None
        return 0 if table is None or "worse" not in table else int((table["worse"] != "").sum())


def outcomes_of(chosen: Sequence[Experiment], setting: Setting, keep: Keep) -> Iterator[Outcome]:
    """Run them in order, and keep each result as soon as it is there; a result that cannot be kept has failed, too."""
    return (_outcome_of(one, setting, keep) for one in chosen)


def _outcome_of(one: Experiment, setting: Setting, keep: Keep) -> Outcome:
    setting.say(f"{one.name}: {one.title}")
    try:
        # matrices are small: more threads wait for each other
        with threadpool_limits(1):
            result = one.run(setting)
        keep(one, result)
        return Outcome(one, result)
    except CannotRun as lacking:
        setting.say(f"{one.name}: SKIPPED, {lacking}")
        return Outcome(one, reason=str(lacking))
    except (InputError, TestbedError, OSError) as failed:
        setting.say(f"{one.name}: FAILED, {failed}")
        return Outcome(one, failed=True, reason=str(failed))
    except Exception as failed:
        setting.say(f"{one.name}: FAILED\n{traceback.format_exc()}")
        return Outcome(one, failed=True, reason=f"{type(failed).__name__}: {failed}")
