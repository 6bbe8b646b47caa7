"""A small study that all tests of the workbench read."""

from __future__ import annotations

from pathlib import Path

import pytest

STUDY = """
seed = 4
strategies = ["greedy", "contention-aware", "optimal"]
predictors = ["tomur"]
risks = [0.05, 0.5]

[[trace]]
count = 24
draws = 2
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Two draws of 24 arrivals, three strategies, two risks: four units."""
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path
