"""`placer generate`: exit status, stdout and stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer, refuse


@pytest.mark.long
def test_generate_writes_what_run_reads(placer: Placer, tmp_path: Path) -> None:
    """A generated trace is the same on stdout and in a file, and is read without a fault."""
    out = tmp_path / "t.csv"
    options = [
        "generate",
        "--count",
        12,
        "--traffic",
        "mixed",
        "--departures",
        40,
        "--sla",
        "0.1-0.2",
        "--nfs",
        "NAT,ACL",
    ]
    assert placer(*options, "--out", out).status == 0
    assert placer(*options).stdout == out.read_text(encoding="utf-8")
    printed = json.loads(placer("run", out, "--format", "json").stdout)
    assert printed["arrivals"] == 12


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--sla", "0.2-0.1"], "--sla: '0.2-0.1' is not a range"),
        (["--sla", "0.0_5-0.2"], "--sla: '0.0_5-0.2' is not a range"),
        (["--nfs", ","], "--nfs: names no NF"),
        (["--traffic", "heavy"], "--traffic: 'heavy' is not understood"),
    ],
)
def test_bad_recipes_are_refused(arguments: list[str], printed: str) -> None:
    """Options of generate that describe no trace are refused."""
    assert printed in refuse("generate", *arguments)
