"""The same arrivals, models and seed are the same plan, whatever the processor."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.predictor.training.test_nf import PROCESSORS, REPO

OTHERS = [name for name in PROCESSORS if PROCESSORS[name]]


def planned(processor: str, folder: Path) -> bytes:
    """The plan of the trace in the repository on a processor."""
    plan = folder / "plan.csv"
    command = [sys.executable, "-m", "placer", "run", "traces/arrivals-500.csv", "--quiet", "--plan", str(plan)]
    only = ["--strategy", "contention-aware", "--predictor", "tomur"]
    compiled = {"NUMBA_CACHE_DIR": str(folder)} if "compiled" in processor else {}
    environment = os.environ | PROCESSORS[processor] | compiled
    subprocess.run([*command, *only], cwd=REPO, env=environment, check=True, capture_output=True)
    return plan.read_bytes()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The plan on this processor."""
    return planned("as it is", tmp_path_factory.mktemp("here"))


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS)
def test_plans_are_the_same_bytes_on_another_processor(other: str, here: bytes, tmp_path: Path) -> None:
    """A throughput or a price that differs in its last digit would decide between two NICs of equal worth."""
    assert planned(other, tmp_path) == here
