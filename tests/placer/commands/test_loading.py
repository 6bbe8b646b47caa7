"""What the commands load: nothing that they do not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHARTS = ("altair", "vl_convert", "matplotlib")
HEAVY = ("numpy", "pandas", "pydantic", "scipy", "sklearn", "numba", "ortools", *CHARTS)

SCRIPT = """
import sys
from placer.cli import main
sys.argv = ["placer", *sys.argv[1:]]
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def loaded_by(*arguments: object) -> set[str]:
    """The packages that a command loads."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)], input="", capture_output=True, text=True, check=True
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two arrivals."""
    path = tmp_path / "arrivals.csv"
    path.write_text("id,time,nf,sla_drop\na,0,NAT,0.5\nb,1,NAT,0.5\n", encoding="utf-8")
    return path


def test_run_loads_no_charts(trace: Path, tmp_path: Path) -> None:
    """Unless a page is requested."""
    assert loaded_by("run", trace).isdisjoint(CHARTS)
    assert "altair" in loaded_by("run", trace, "--report", tmp_path / "page.html")


@pytest.mark.slow
def test_compare_loads_no_charts(trace: Path, tmp_path: Path) -> None:
    """A study of one run."""
    study = tmp_path / "study.toml"
    study.write_text(f'strategies = ["greedy"]\n[[trace]]\nfile = "{trace}"\n', encoding="utf-8")
    assert loaded_by("compare", study, "--jobs", 1, "--out", tmp_path / "out").isdisjoint(CHARTS)


@pytest.mark.slow
def test_size_loads_no_charts(trace: Path, tmp_path: Path) -> None:
    """A sizing of one option and one point."""
    options = ("--growth", "1", "--draws", "1", "--strategy", "greedy", "--jobs", "1", "--out", tmp_path / "out")
    assert loaded_by("size", trace, *options).isdisjoint(CHARTS)


@pytest.mark.slow
def test_diagnose_loads_no_charts() -> None:
    """A diagnosis along one attribute."""
    assert loaded_by("diagnose", "NAT", "--along", "flows", "--steps", 2).isdisjoint(CHARTS)


def test_help_loads_no_heavy_library() -> None:
    """So that it answers at once."""
    assert loaded_by("--help").isdisjoint(HEAVY)


@pytest.mark.slow
def test_online_loads_no_solver_and_no_charts() -> None:
    """A fleet of SmartNICs is decided on without."""
    assert loaded_by("online", "--quiet", "--risk", 0.3).isdisjoint(("ortools", "sklearn", *CHARTS))


def test_predict_loads_no_solver_and_no_charts(tmp_path: Path) -> None:
    """Nor what only training uses."""
    scenarios = tmp_path / "one.jsonl"
    scenarios.write_text('{"workloads": [{"name": "NAT"}]}\n', encoding="utf-8")
    assert loaded_by("predict", "--scenarios", scenarios).isdisjoint(("ortools", "sklearn", *CHARTS))
