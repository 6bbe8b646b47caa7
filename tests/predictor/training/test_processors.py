"""The same profile and seed are the same models, whatever the processor."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from predictor import train
from predictor.contention.neighbours import NeighbourCorrection
from predictor.model_folder import write_arrays
from tests.predictor.made_up import CRYPTO, LOOKUP, PLAIN, profile

REPO = Path(__file__).parents[3]

PROCESSORS = {
    "as it is": {},
    "an older one's matrix products": {"OPENBLAS_CORETYPE": "Prescott"},
    "an older one's exponentials and sums": {
        "NPY_DISABLE_CPU_FEATURES": "AVX512_ICL AVX512_SKX X86_V4 X86_V3 AVX2 FMA3"
    },
    "an older one's compiled code": {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": ""},
}
"""Processors that libraries are made to believe in, by environment variables."""


def digests(folder: Path) -> dict[str, str]:
    """Of every file of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "models.json")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Digests of models by processor; all are trained at the same time."""
    folders = {name: tmp_path_factory.mktemp("models") for name in PROCESSORS}
    command = [sys.executable, "-W", "ignore", "-m", "tests.predictor.training.test_processors"]
    running = [
        subprocess.Popen(
            [*command, str(folder / "models")],
            cwd=REPO,
            env=os.environ | PROCESSORS[name] | {"XDG_CACHE_HOME": str(folder)},
        )
        for name, folder in folders.items()
    ]
    assert [one.wait(timeout=300) for one in running] == [0] * len(running)
    return {name: digests(folder / "models") for name, folder in folders.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROCESSORS if PROCESSORS[name]])
def test_models_are_the_same_bytes_on_another_processor(name: str, trained: dict[str, dict[str, str]]) -> None:
    """Libraries round sums, products and exponentials differently there; models must not show it."""
    assert trained[name] == trained["as it is"]


if __name__ == "__main__":
    np.seterr(all="ignore")
    train(profile([PLAIN, CRYPTO, LOOKUP])).save(Path(sys.argv[1]))
    # the profile has too few co-locations for a correction by neighbours
    rng = np.random.default_rng(0)
    inputs, errors = rng.integers(0, 3, (60, 11)).astype(float), rng.standard_normal(60)
    correction = NeighbourCorrection(("a", "b"), np.full(11, 2.0), 0.7, 0.2, inputs, errors, np.full(60, 0.1))
    write_arrays(Path(sys.argv[1]) / "neighbours.npz", correction.as_arrays())
