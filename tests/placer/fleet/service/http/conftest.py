"""Where a service keeps its fleet: a file, or a database of PostgreSQL."""

from pathlib import Path

import pytest

from tests.postgres import Cluster


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """An empty state of either kind: the path of a file, or the address of a database."""
    if request.param == "sqlite":
        return tmp_path / "s.db"
    started: Cluster = request.getfixturevalue("postgres")
    return started.database()
