"""The examples, run as they are."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TOLD = {
    "place_and_report.py": "60 NF instances go on ",
    "how_many_nics.py": "more NICs for 1.5 times the arrivals",
    "why_is_it_slow.py": "from memory to regex at ",
}


def test_every_example_is_run() -> None:
    """None is left out of the tests."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(TOLD)


@pytest.mark.parametrize("name", TOLD)
def test_an_example_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an empty folder, and tells what it promises."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name))
    assert TOLD[name] in capsys.readouterr().out
