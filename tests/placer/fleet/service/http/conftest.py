"""Where a service keeps its fleet: a file, or a database of PostgreSQL."""

import asyncio
from inspect import iscoroutinefunction, signature
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


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines, each in a loop of its own."""
    if not iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in signature(pyfuncitem.obj).parameters}))
    return True
