"""Two small study files, for tests of studies and of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

PLAIN = """
seed = 4
strategies = ["greedy", "optimal"]

[[trace]]
count = 24
draws = 3
"""

RISKY = """
seed = 4
strategies = ["greedy", "contention-aware", "optimal"]
predictors = ["tomur"]
risks = [0.05, 0.5]

[[trace]]
count = 12
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Three draws of 24 arrivals, two fast strategies: three runs."""
    path = tmp_path / "study.toml"
    path.write_text(PLAIN, encoding="utf-8")
    return path


@pytest.fixture
def risky(tmp_path: Path) -> Path:
    """One draw of 12 arrivals at two risks, which affect one strategy: two runs."""
    path = tmp_path / "risky.toml"
    path.write_text(RISKY, encoding="utf-8")
    return path
