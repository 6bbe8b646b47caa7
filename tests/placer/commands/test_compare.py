"""`placer compare` as a whole: what is printed, and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from placer.cli import app


def placer(*arguments: object) -> str:
    """What a command prints, once it ended well."""
    ended = CliRunner().invoke(app, [*map(str, arguments)])
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def test_compare_prints_medians_and_writes_every_row(risky: Path, tmp_path: Path) -> None:
    """Table, JSON and Parquet have a row per strategy and risk; the page tells the best."""
    out, page = tmp_path / "out", tmp_path / "page.html"
    told = json.loads(placer("compare", risky, "--out", out, "--format", "json", "--quiet"))
    assert [row["strategy"] for row in told] == ["greedy", "contention-aware", "contention-aware", "optimal"]
    assert len(pd.read_parquet(out / "results.parquet")) == 4
    table = placer("compare", risky, "--out", out, "--report", page, "--quiet")
    assert table.splitlines()[0].split() == ["strategy", "predictor", "risk", "draws", "NICs", "wastage", "%", "SLAs",
                                             "broken", "%", "rejected"]  # fmt: skip
    assert "Least waste with at most 2 % of SLAs broken" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("format", ["csv", "json"])
def test_both_formats_for_programs_hold_the_same(study: Path, tmp_path: Path, format: str) -> None:
    """CSV and JSON have the same columns."""
    told = placer("compare", study, "--out", tmp_path / "out", "--format", format, "--quiet")
    header = told.splitlines()[0].split(",") if format == "csv" else list(json.loads(told)[0])
    assert {"trace", "fleet", "strategy", "risk", "draws", "nics", "nics_low", "nics_high"} <= set(header)
