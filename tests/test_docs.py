"""The documentation: its commands exist, print what it shows, and the site is built without a warning."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from placer.cli import COMMANDS, app
from tests.shown_output import PAGES, REPO, Shown, shown_outputs

LONGEST_LINE = 92
"""Characters of a code line: longer ones are cut off at the edge of a page."""

SLOW = ("size",)
"""Commands that take minutes."""


def commands() -> Iterator[tuple[str, list[str]]]:
    """Page and words of every line in a code block that calls `placer`."""
    for page in PAGES:
        for block in re.findall(r"```(?:sh|console)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                if found := re.match(r"(?:\$ )?placer (.*)", line):
                    yield page.name, shlex.split(re.split(r"\s[|>#]", found[1])[0])


def test_every_command_that_is_shown_exists() -> None:
    """Its name is a command, and its options are options of it."""
    known = get_command(app)
    shown = list(commands())
    assert len(shown) > 15
    for page, (name, *words) in shown:
        command = known.get_command(None, name)  # type: ignore[attr-defined]
        assert command is not None, f"{page}: placer {name}"
        if hasattr(command, "commands"):
            assert words and words[0] in command.commands, f"{page}: placer {name} {' '.join(words[:1])}"
            command = command.commands[words[0]]
        options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        for word in words:
            if word.startswith("--"):
                assert word.partition("=")[0] in options, f"{page}: placer {name} {word}"


def test_every_command_is_in_the_readme() -> None:
    """The table of commands has a row for each."""
    readme = (REPO / "README.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"| `placer {name}" in readme, name


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Every link leads somewhere and every docstring is understood."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: the site is not built")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: the site is not built")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "reference" / "studies.html").is_file()


def shown_by_command() -> Iterator[object]:
    """Every output that is shown, those of slow commands marked."""
    for one in shown_outputs():
        marks = [pytest.mark.slow] if one.command.split()[0] in SLOW else []
        yield pytest.param(one, id=f"{one.page.name}: {one.program} {one.command}", marks=marks)


@pytest.mark.parametrize("shown", [*shown_by_command()])
def test_commands_print_what_is_shown(shown: Shown) -> None:
    """`python -m tests.shown_output` renews a page whose output changed."""
    if missing := shown.missing():
        pytest.skip(missing)
    printed = shown.printed()
    assert shown.matches(printed), printed


def test_code_lines_fit_the_page() -> None:
    for page in PAGES:
        for block in re.findall(r"```(?:sh|toml|python|csv)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            assert [line for line in block.splitlines() if len(line) > LONGEST_LINE] == [], page.name
