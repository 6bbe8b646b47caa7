"""Output that README and docs show, compared with what the commands print; `python -m tests.shown_output` renews it.

A block of ```console begins with `$ placer ...`, or `$ python examples/...`, and shows standard output; a line `...`
stands for any lines. Times and rates depend on the machine and are compared as such.
"""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from placer.cli import app
from placer.rack.compiler.execute import find_programs
from profiles import InputError

REPO = Path(__file__).parents[1]
PAGES = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]

PLACER, PYTHON = "placer", "python"
BLOCK = re.compile(r"```console\n\$ (?P<program>placer|python) (?P<command>[^\n]*)\n(?P<output>.*?)```", re.DOTALL)
OF_THE_MACHINE = re.compile(r"\d[\d,.]* s\b|[\d,.]+(?=\s*$)", re.MULTILINE)
"""Seconds, and the last number of a row: decisions per second."""
ANY_LINES = "...\n"
RACK_EXAMPLE = "examples/compile_and_run.py"


@dataclass(frozen=True)
class Shown:
    """A command and its output as a page shows it."""

    page: Path
    program: str
    command: str
    output: str

    def missing(self) -> str | None:
        """What an example needs and this machine lacks."""
        if self.program == PYTHON and shutil.which("clang") is None:
            return "clang is not installed: `make deps` installs it"
        if self.command != RACK_EXAMPLE:
            return None
        try:
            find_programs(with_nics=True)
        except InputError:
            return "programs of the rack are not built: `make deps nfs` builds them"
        return None if os.geteuid() == 0 else "the kernel loads programs of the SmartNIC for root only"

    def printed(self) -> str:
        """What the command prints; an example runs in an empty folder."""
        words = shlex.split(self.command)
        if self.program == PLACER:
            with contextlib.chdir(REPO):
                ended = CliRunner().invoke(app, words, catch_exceptions=False)
            assert ended.exit_code == 0, ended.output
            return ended.stdout
        with tempfile.TemporaryDirectory() as folder:
            return _output([sys.executable, str(REPO / words[0]), *words[1:]], Path(folder))

    def matches(self, printed: str) -> bool:
        """Whether the page shows this output, times and rates aside."""
        head, more, tail = self.output.partition(ANY_LINES)
        true = _comparable(printed)
        if not more:
            return true == _comparable(head)
        return true.startswith(_comparable(head)) and true.endswith(_comparable(tail))


def _output(command: list[str], folder: Path) -> str:
    path = os.pathsep.join((str(REPO), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=folder, env=os.environ | {"PYTHONPATH": path}
    )
    return done.stdout


def shown_outputs() -> Iterator[Shown]:
    """Every command of README and docs whose output is shown."""
    for page in PAGES:
        for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
            yield Shown(page, found["program"], found["command"], found["output"])


def renew(page: Path) -> None:
    """Write the output of today into a page; what `...` leaves out stays left out."""

    def renewed(found: re.Match[str]) -> str:
        shown = Shown(page, found["program"], found["command"], found["output"])
        if missing := shown.missing():
            print(f"{page.name}: {shown.program} {shown.command} is left as it is: {missing}", file=sys.stderr)
            return found[0]
        printed = shown.printed()
        head, more, tail = shown.output.partition(ANY_LINES)
        lines = printed.splitlines(keepends=True)
        begin, end = head.count("\n"), len(lines) - tail.count("\n")
        kept = "".join([*lines[:begin], more, *lines[end:]]) if more else printed
        return f"```console\n$ {shown.program} {shown.command}\n{kept}```"

    text = page.read_text(encoding="utf-8")
    page.write_text(BLOCK.sub(renewed, text), encoding="utf-8")


def _comparable(text: str) -> str:
    words = OF_THE_MACHINE.sub("#", text)
    return "\n".join(" ".join(line.split()) for line in words.splitlines()).strip()


if __name__ == "__main__":
    for one in PAGES:
        renew(one)
