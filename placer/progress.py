"""Progress on stderr: a bar for what takes over a second on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

PATIENCE_S = 1.0
MOMENT_S = 3.0
LINE_EVERY_S = 15.0

Advance = Callable[[int, int], None]
"""Told how many of how many steps are done."""

Stage = Callable[[str, int, int | None], None]
"""Told the stage, how many of its steps are done, and how many there are, if that is known."""


class Progress:
    """Tells what is going on, and nothing of what ends within a second."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False)

    def say(self, message: str) -> None:
        """Print a message."""
        self._console.print(message, markup=False, soft_wrap=True)

    @contextmanager
    def waiting(self, message: str) -> Iterator[None]:
        """What cannot tell how far it is: the message comes when it has taken more than a moment."""
        timer = Timer(MOMENT_S, self.say, [message])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @contextmanager
    def task(self, name: str) -> Iterator[Advance]:
        """A task; what it yields is told how many of how many steps are done."""
        with self.stages() as stage:
            yield lambda done, total: stage(name, done, total)

    @contextmanager
    def stages(self, prefix: str = "") -> Iterator[Stage]:
        """A task of several stages; what it yields is told the stage, and how many of its steps are done."""
        if not self._console.is_terminal:
            yield self._lines(prefix)
            return
        bar = Bar(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                  console=self._console, transient=True)  # fmt: skip
        task = bar.add_task(prefix, total=None)
        begun = time.monotonic()

        def stage(name: str, done: int, total: int | None) -> None:
            if not bar.live.is_started and time.monotonic() - begun > PATIENCE_S:
                bar.start()
            bar.update(task, description=prefix + name, completed=done, total=total)

        try:
            yield stage
        finally:
            bar.stop()

    def _lines(self, prefix: str) -> Stage:
        told = time.monotonic()

        def stage(name: str, done: int, total: int | None) -> None:
            nonlocal told
            if time.monotonic() - told > LINE_EVERY_S:
                told = time.monotonic()
                self.say(f"{prefix}{name}: {done} of {total or '?'}")

        return stage
