"""Models that are loaded once a process, and two small study files, for tests of studies and of commands."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from placer.inputs import models
from predictor import Models
from predictor.model_folder import MANIFEST_FILE

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


@pytest.fixture(scope="session", autouse=True)
def loaded() -> Iterator[None]:
    """Models that a command has loaded in this process are there for the next one, with what they have computed."""
    load = models.load_models

    @cache
    def load_once(folder: Path, changed: int) -> Models:
        return load(folder)

    def load_models(folder: Path) -> Models:
        manifest = Path(folder) / MANIFEST_FILE
        return load_once(folder, manifest.stat().st_mtime_ns) if manifest.exists() else load(folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "load_models", load_models)
        yield


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
