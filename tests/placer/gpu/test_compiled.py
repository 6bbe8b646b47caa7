"""Inner loops are compiled anew when a file changes whose loops they call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOOP = """
from pathlib import Path
from numba import njit
from predictor.regression.compiled import cache_kernel
FOLDERS = (Path(__file__).parent,)
"""


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """Two files: a loop that calls one of the other file."""
    (tmp_path / "inner.py").write_text(
        LOOP + "inner = cache_kernel(njit()(lambda x: x + 1), FOLDERS)\n", encoding="utf-8"
    )
    (tmp_path / "outer.py").write_text(
        LOOP + "from inner import inner\nouter = cache_kernel(njit()(lambda x: inner(x)), FOLDERS)\nprint(outer(1))\n",
        encoding="utf-8",
    )
    return tmp_path


def printed(room: Path) -> str:
    repo = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(room)!r}, {str(repo)!r}]; import outer"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=room).stdout


def test_a_change_in_another_file_is_noticed(room: Path) -> None:
    """Numba alone would look at the outer file, and go on with the old inner loop."""
    assert printed(room) == "2\n"
    assert list((room / "__pycache__").glob("outer*.nbc"))
    inner = room / "inner.py"
    inner.write_text(inner.read_text(encoding="utf-8").replace("x + 1", "x + 2"), encoding="utf-8")
    assert printed(room) == "3\n"


def test_what_another_version_left_is_not_read(room: Path) -> None:
    """Its files name modules that are gone, which Numba would import."""
    assert printed(room) == "2\n"
    outer = room / "outer.py"
    outer.write_text(outer.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    for index in (room / "__pycache__").glob("outer*.nbi"):
        index.write_bytes(b"\x80\x04c" + b"gone_module\nname\n.")
    assert printed(room) == "2\n"
