"""Output that README and docs show, compared with what the commands print; `python -m tests.shown_output` renews it.

A block of ```console begins with `$ placer ...` and shows standard output; `...` stands for any lines. Times and rates
depend on the machine and are compared as such.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).parents[1]
PAGES = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]

BLOCK = re.compile(r"```console\n\$ placer (?P<command>[^\n]*)\n(?P<output>.*?)```", re.DOTALL)
OF_THE_MACHINE = re.compile(r"\d[\d,.]* s\b|[\d,.]+(?=\s*$)", re.MULTILINE)
"""Seconds, and the last number of a row: decisions per second."""
ANY_LINES = "..."


@dataclass(frozen=True)
class Shown:
    """A command and its output as a page shows it."""

    page: Path
    command: str
    output: str

    def printed(self) -> str:
        """What the command prints."""
        done = subprocess.run(
            [sys.executable, "-m", "placer", *shlex.split(self.command)],
            capture_output=True, text=True, check=True, cwd=REPO,
        )  # fmt: skip
        return done.stdout

    def matches(self, printed: str) -> bool:
        """Whether the page shows this output, times and rates aside."""
        head, more, _ = self.output.partition(ANY_LINES)
        shown, true = map(_comparable, (head, printed))
        return true.startswith(shown) if more else true == shown


def shown_outputs() -> Iterator[Shown]:
    """Every command of README and docs whose output is shown."""
    for page in PAGES:
        for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
            yield Shown(page, found["command"], found["output"])


def renew(page: Path) -> None:
    """Write the output of today into a page; what `...` leaves out stays left out."""

    def renewed(found: re.Match[str]) -> str:
        shown = Shown(page, found["command"], found["output"])
        printed = shown.printed()
        head, more, _ = shown.output.partition(ANY_LINES)
        lines = printed.splitlines(keepends=True)
        kept = "".join(lines[: head.count("\n")]) + f"{ANY_LINES}\n" if more else printed
        return f"```console\n$ placer {shown.command}\n{kept}```"

    text = page.read_text(encoding="utf-8")
    page.write_text(BLOCK.sub(renewed, text), encoding="utf-8")


def _comparable(text: str) -> str:
    words = OF_THE_MACHINE.sub("#", text)
    return "\n".join(" ".join(line.split()) for line in words.splitlines()).strip()


if __name__ == "__main__":
    for one in PAGES:
        renew(one)
