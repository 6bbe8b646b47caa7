"""`placer compare` as a whole: what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from placer.cli import app


def placer(*arguments: object) -> str:
    """The stdout of a command that succeeds."""
    ended = CliRunner().invoke(app, [*map(str, arguments)])
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def test_compare_prints_medians_and_writes_every_row(risky: Path, tmp_path: Path) -> None:
    """Table, JSON and Parquet have a row per strategy and risk; the page names the best."""
    out, page = tmp_path / "out", tmp_path / "page.html"
    rows = json.loads(placer("compare", risky, "--out", out, "--format", "json", "--quiet"))
    assert [row["strategy"] for row in rows] == ["greedy", "contention-aware", "contention-aware", "optimal"]
    assert len(pd.read_parquet(out / "results.parquet")) == 4
    table = placer("compare", risky, "--out", out, "--report", page, "--quiet")
    assert table.splitlines()[0].split() == ["strategy", "predictor", "risk", "draws", "NICs", "wastage", "%", "SLA",
                                             "violations", "%", "rejected"]  # fmt: skip
    assert "Least wastage with at most 2 % SLA violations" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("format", ["csv", "json"])
def test_csv_and_json_have_the_same_columns(study: Path, tmp_path: Path, format: str) -> None:
    """Both have the labels, and median, low and high of NICs."""
    output = placer("compare", study, "--out", tmp_path / "out", "--format", format, "--quiet")
    header = output.splitlines()[0].split(",") if format == "csv" else list(json.loads(output)[0])
    assert {"trace", "fleet", "strategy", "risk", "draws", "nics", "nics_low", "nics_high"} <= set(header)
