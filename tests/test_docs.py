"""The documentation: built without a warning, and no command in it that is not there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from placer.cli import app

REPO = Path(__file__).parents[1]
PAGES = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Page and words of every line in a code block that calls `placer`."""
    for page in PAGES:
        for block in re.findall(r"```(?:sh|console)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.splitlines():
                if found := re.match(r"(?:\$ )?placer (.*)", line):
                    yield page.name, shlex.split(re.split(r"\s[|>#]", found[1])[0])


def test_every_command_that_is_shown_exists() -> None:
    """Its name is a command, and its options are options of it."""
    known = get_command(app)
    told = list(commands())
    assert len(told) > 15
    for page, (name, *words) in told:
        command = known.commands.get(name)  # type: ignore[attr-defined]
        assert command is not None, f"{page}: placer {name}"
        options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        for word in words:
            if word.startswith("--"):
                assert word.partition("=")[0] in options, f"{page}: placer {name} {word}"


def test_every_command_is_in_the_readme() -> None:
    """The table of commands has a row for each."""
    readme = (REPO / "README.md").read_text(encoding="utf-8")
    for name in get_command(app).commands:  # type: ignore[attr-defined]
        assert f"| `placer {name}" in readme, name


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Every link leads somewhere and every docstring is understood."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: the site is not built")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: the site is not built")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "reference" / "studies.html").is_file()
