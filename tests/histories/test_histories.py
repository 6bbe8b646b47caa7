"""Under kills, stops and cut connections no answer is wrong: checked against every order that is possible."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.histories.faults import check, run

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="there is no go")


@needs_go
@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path) -> None:
    """60,000 operations of 24 clients on instances that they share, and 20 faults."""
    study = run(tmp_path, operations=60_000, faults=20)
    assert len(study.faults) == 20
    assert study.different == 0
    found, text = check(tmp_path / "history.jsonl")
    assert found, text


@needs_go
@pytest.mark.slow
@pytest.mark.parametrize("flaw", ["forgets-keys", "answers-early"])
def test_a_service_with_a_flaw_is_found_out(tmp_path: Path, flaw: str) -> None:
    """One that decides again on what is sent again, and one that answers before its disk has written."""
    study = run(tmp_path, operations=12_000, faults=6, flaw=flaw)
    assert study.different > 0 or not check(tmp_path / "history.jsonl")[0]
