"""Runs experiments one after another: one that fails or cannot run here does not stop the others."""

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from experiments.registry import CannotRun, Experiment, Result, Setting
from profiler.testbed import TestbedError
from profiles import InputError


@dataclass(frozen=True)
class Outcome:
    """How the run of one experiment ended."""

    experiment: Experiment
    result: Result | None = None  # its result; None when it was skipped or failed
    failed: bool = False  # whether it failed; without a result and not failed, it was skipped
    reason: str = ""  # why there is no result

    @property
    def status(self) -> str:
        """`ran`, `skipped` or `failed`."""
        return "ran" if self.result else "failed" if self.failed else "skipped"

    @property
    def rows(self) -> int:
        """Rows of its table."""
        return len(self.result.table) if self.result else 0

    @property
    def rows_with_verdict(self) -> int:
        """Rows in which ours are worse than the published numbers, or differ from them."""
        table = self.result.table if self.result else None
        return 0 if table is None or "verdict" not in table else int((table["verdict"] != "").sum())


def outcomes_of(
    chosen: Sequence[Experiment], setting: Setting, save: Callable[[Experiment, Result], None]
) -> Iterator[Outcome]:
    """Run experiments in order. `chosen`: the experiments. `setting`: what each receives. `save`: called with each
    result before the next experiment begins; when it raises, the experiment has failed."""
    began = time.monotonic()
    for number, experiment in enumerate(chosen, start=1):
        if len(chosen) > 1:
            minutes = (time.monotonic() - began) / 60
            setting.say(f"{number} of {len(chosen)} experiments, {minutes:.0f} minutes so far")
        yield _outcome_of(experiment, setting, save)


def _outcome_of(one: Experiment, setting: Setting, save: Callable[[Experiment, Result], None]) -> Outcome:
    setting.say(f"{one.name}: {one.title}")
    try:
        # the matrices are small: with several threads, BLAS spends its time on synchronisation
        with threadpool_limits(1):
            result = one.run(setting)
        save(one, result)
        return Outcome(one, result)
    except CannotRun as error:
        setting.say(f"{one.name}: skipped, {error}")
        return Outcome(one, reason=str(error))
    except (InputError, TestbedError, OSError) as error:
        setting.say(f"{one.name}: failed, {error}")
        return Outcome(one, failed=True, reason=str(error))
    except Exception as error:
        setting.say(f"{one.name}: failed\n{traceback.format_exc()}")
        return Outcome(one, failed=True, reason=f"{type(error).__name__}: {error}")
