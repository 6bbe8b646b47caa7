"""Runs `placer` in this process, and what several commands read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from placer.cli import main
from traces.arrivals import Recipe, generate


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


Placer = Callable[..., Ended]


@pytest.fixture
def placer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Placer:
    """Runs `placer` with arguments, in this process."""

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["placer", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0 if code is None else 1, printed.out, printed.err)

    return run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Sixty arrivals of the nine NFs at default traffic."""
    path = tmp_path / "arrivals.csv"
    path.write_text("".join(generate(Recipe(count=60, seed=5))), encoding="utf-8")
    return path
