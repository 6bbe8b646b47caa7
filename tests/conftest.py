"""Fixtures that all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.postgres import Cluster, cluster, programs

# before numpy is loaded: its threads would wait for one another and for those of other tests
os.environ.setdefault("OMP_NUM_THREADS", "1")

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real measurements and packing instances that lie beside the project; tests of them are skipped without it."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("../shared/data is not there: real measurements are not tested")
    return data


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL server; tests of it are skipped where there are no programs of one."""
    if programs() is None:
        pytest.skip("there is no PostgreSQL server: a state in a database is not tested")
    with cluster() as started:
        yield started


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without -m, leave out the studies that are marked slow: `make slow` runs them."""
    if not config.option.markexpr:
        items[:] = [item for item in items if "slow" not in item.keywords]


settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")
