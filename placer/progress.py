"""Progress on stderr: on a terminal, a bar for tasks longer than a second; elsewhere, a line every `LINE_EVERY_S`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

BAR_AFTER_S = 1.0
MESSAGE_AFTER_S = 3.0
LINE_EVERY_S = 15.0

Advance = Callable[[int, int], None]  # called with the number of finished steps and of all steps

Stage = Callable[[str, int, int | None], None]
"""Called with the name of a stage, the number of its finished steps, and the number of all its steps if known."""


class Progress:
    """Shows progress of tasks that take longer than a second."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    @cached_property
    def _console(self) -> Console | None:
        """The terminal, if stderr is one; rich, which draws on it, takes a while to load."""
        if not (sys.stderr.isatty() or os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE")):
            return None
        from rich.console import Console

        console = Console(stderr=True, quiet=self._quiet, highlight=False)
        return console if console.is_terminal else None

    def say(self, message: str) -> None:
        """Print a message."""
        if self._console is not None:
            self._console.print(message, markup=False, soft_wrap=True)
        elif not self._quiet:
            print(message, file=sys.stderr)

    @contextmanager
    def waiting(self, message: str, after_s: float = MESSAGE_AFTER_S) -> Iterator[None]:
        """A task of unknown progress: prints the message if the task takes longer than `after_s`."""
        timer = Timer(after_s, self.say, [message])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @contextmanager
    def task(self, name: str) -> Iterator[Advance]:
        """A task. The caller reports finished steps by calling the yielded function."""
        with self.stages() as stage:
            yield lambda done, total: stage(name, done, total)

    @contextmanager
    def stages(self, prefix: str = "") -> Iterator[Stage]:
        """A task of several stages. The caller reports stage and finished steps by calling the yielded function."""
        if self._console is None:
            yield self._lines(prefix)
            return
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        bar = Bar(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                  console=self._console, transient=True)  # fmt: skip
        task = bar.add_task(prefix, total=None)
        started = time.monotonic()

        def stage(name: str, done: int, total: int | None) -> None:
            if not bar.live.is_started and time.monotonic() - started > BAR_AFTER_S:
                bar.start()
            bar.update(task, description=prefix + name, completed=done, total=total)

        try:
            yield stage
        finally:
            bar.stop()

    def _lines(self, prefix: str) -> Stage:
        printed = time.monotonic()

        def stage(name: str, done: int, total: int | None) -> None:
            nonlocal printed
            if time.monotonic() - printed > LINE_EVERY_S:
                printed = time.monotonic()
                self.say(f"{prefix}{name}: {done} of {total or '?'}")

        return stage
