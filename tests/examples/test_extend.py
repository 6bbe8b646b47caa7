"""The examples of how to add something: each is one file that the command line knows by being there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
EXTEND = REPO / "examples" / "extend"
PACKAGES = ("experiments", "placer", "predictor", "profiler", "profiles", "traces")
ROOMS = {
    "half_full.py": "placer/strategies",
    "linear_drop.py": "predictor/predictors",
    "formula.py": "profiler/testbeds",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages, with every example copied into its room and no other edit."""
    folder = tmp_path_factory.mktemp("project")
    for package in PACKAGES:
        shutil.copytree(REPO / package, folder / package, ignore=_not_machine_code)
    for file, room in ROOMS.items():
        shutil.copy(EXTEND / file, folder / room)
    return folder


def _not_machine_code(folder: str, names: list[str]) -> list[str]:
    """What caches hold beside machine code, which takes a minute to compile again."""
    cache = Path(folder).name == "__pycache__"
    return [name for name in names if cache and not name.endswith((".nbi", ".nbc"))]


def placer(project: Path, *arguments: str | Path) -> str:
    """Standard output of a command of the copied project."""
    command = [sys.executable, "-m", "placer", *map(str, arguments)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_room() -> None:
    assert {path.name for path in EXTEND.glob("*.py")} == set(ROOMS)


def test_a_profile_a_predictor_and_a_plan_come_from_three_copied_files(project: Path, tmp_path: Path) -> None:
    """The testbed is profiled, the predictor trained on that, and the strategy compared on both."""
    placer(project, "profile", "--testbed", "formula", "--out", tmp_path / "profile", "--quota", 60, "--quiet")
    placer(project, "train", tmp_path / "profile", "--out", tmp_path / "models", "--predictor", "linear-drop")
    trace = tmp_path / "arrivals.csv"
    trace.write_text(
        "id,time,nf,sla_drop\n" + "".join(f"{i},{i},{nf},0.1\n" for i, nf in enumerate(["Forwarder", "Counter"] * 8))
    )
    printed = placer(
        project, "run", trace, "--models", tmp_path / "models", "--testbed", "formula", "--format", "json", "--quiet",
        "--strategy", "half-full", "--strategy", "contention-aware", "--strategy", "optimal",
    )  # fmt: skip
    rows = {(row["strategy"], row["predictor"]): row for row in json.loads(printed)["strategies"]}
    assert rows["half-full", None]["nics"] == 8  # two NFs of two cores on eight
    assert rows["contention-aware", "linear-drop"]["nics"] < 8
    assert rows["optimal", None]["sla_violations_pct"] == 0


def test_help_and_hints_list_what_is_in_the_rooms(project: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "placer", "run", "traces/arrivals-500.csv", "--strategy", "half-ful"]
    refused = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "did you mean half-full?" in refused.stderr


def test_the_examples_conform(project: Path) -> None:
    """By the kit that their page recommends."""
    checks = (
        "from placer.strategies import STRATEGIES\n"
        "from placer.testing import check_predictor, check_strategy, check_testbed\n"
        "check_strategy(STRATEGIES['half-full'])\ncheck_predictor('linear-drop')\ncheck_testbed('formula:0.2')\n"
    )
    done = subprocess.run([sys.executable, "-c", checks], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
