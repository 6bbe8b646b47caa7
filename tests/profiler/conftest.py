"""Slow studies are run when asked for: `pytest -m slow tests/profiler`."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without -m, leave out what is marked slow."""
    if not config.option.markexpr:
        items[:] = [item for item in items if "slow" not in item.keywords]
