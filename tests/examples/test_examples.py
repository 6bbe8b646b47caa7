"""The examples run as they are."""

from __future__ import annotations

import ast
import runpy
import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = {
    "place_and_report.py": "places 30 NF instances on ",
    "how_many_nics.py": "more NICs for 1.5 times the arrivals",
    "why_is_it_slow.py": "from memory to regex at ",
    "follow_a_packet.py": "switch -> n0: 113 bytes, path 1, index 254: chain5/UrlFilter is next",
}
"""A part of what each example prints."""
SLOW = {"how_many_nics.py": pytest.mark.slow}
"""A study of its own."""
ELSEWHERE = ("compile_and_run.py",)
"""Tested in `test_compiled_chains.py`."""
NEEDS = {"follow_a_packet.py": "clang"}


def test_every_example_has_a_test() -> None:
    """The folder has no other example."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*PRINTED, *ELSEWHERE}


@pytest.mark.parametrize("name", [*PRINTED, *ELSEWHERE])
def test_an_example_begins_with_a_docstring(name: str) -> None:
    """Its first paragraph describes what the example shows; the next one names the command that does the same."""
    docstring = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8")))
    assert docstring
    summary, _, details = docstring.partition("\n\n")
    assert summary.endswith(".")
    assert details.startswith("This is what `placer ")


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(one, marks=SLOW.get(one, ())) for one in PRINTED])
def test_an_example_runs_in_an_empty_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It needs no file of the project, and prints its result."""
    if (needed := NEEDS.get(name)) and shutil.which(needed) is None:
        pytest.skip(f"{needed} not installed: `make deps` installs it")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name))
    assert PRINTED[name] in capsys.readouterr().out
