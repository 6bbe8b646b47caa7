"""Compiled kernels do not check the bounds of arrays: what lies beyond one is read as if it were a number."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]


def _passes(checks: dict[str, str], *tests: str) -> None:
    """Whether the tests pass in a process of their own with these settings of Numba."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    ended = subprocess.run(
        [*command, *(str(TESTS / test) for test in tests)],
        env=os.environ | checks, cwd=TESTS.parent, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-3000:]


@pytest.mark.long
def test_the_dual_simplex_stays_inside_its_arrays_and_packed_models_are_read() -> None:
    """Interpreted, where an index beyond an array is an error; prices once took up what memory held there."""
    packed = "predictor/contention/test_correcting.py::test_copied_models_are_read_where_they_are"
    _passes({"NUMBA_DISABLE_JIT": "1"}, "placer/policy/test_dual_simplex.py", packed)


@pytest.mark.slow
def test_every_kernel_stays_inside_its_arrays(tmp_path: Path) -> None:
    """Compiled with checks, all that placement and prediction do in their tests."""
    checks = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    _passes(checks, "placer/policy", "placer/strategies", "predictor", "placer/budget/test_rounds.py")
