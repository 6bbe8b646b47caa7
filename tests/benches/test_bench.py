"""Benchmarks by name, with options of their own."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pytest
import typer

from benches import __main__ as program
from benches import bench


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two benchmarks, of which one has an option."""

    def counted(times: int = 1) -> pd.DataFrame:
        return pd.DataFrame({"times": [times]})

    def plain() -> pd.DataFrame:
        return pd.DataFrame({"plain": [1]})

    monkeypatch.setattr(bench, "_registered", {"counted": counted, "plain": plain})
    monkeypatch.setattr(program, "bench_names", lambda: ("counted", "plain"))
    monkeypatch.setattr(program, "described", lambda name: f"{name}.")


def test_options_behind_a_name_are_those_of_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    program.main(["counted", "--times", "3"])
    assert capsys.readouterr().out.split() == ["counted", "times", "3"]


def test_without_options_a_benchmark_has_its_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    program.main([])
    assert capsys.readouterr().out.split() == ["counted", "times", "1", "plain", "plain", "1"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["counted", "--tims", "3"], "No such option: --tims"),
        (["plain", "--times", "3"], "No such option: --times"),
        (["counted", "plain", "--times", "3"], "--times 3: options of one benchmark\nhint: NAME --times"),
        (["countd"], "countd: no such benchmark\nhint: one of counted, plain"),
    ],
)
def test_what_is_not_known_is_refused(arguments: Sequence[str], fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An option of no benchmark, of another one, or of two; a name. Nothing is on stdout."""
    with pytest.raises((typer.Exit, SystemExit)) as ended:
        program.main(list(arguments))
    shown = capsys.readouterr()
    assert getattr(ended.value, "exit_code", None) == 2 or getattr(ended.value, "code", None) == 2
    assert fault in shown.err and shown.out == ""
