"""Runs the model checker Spin on a model; a test that needs it is skipped with a message where it is missing."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.nfs.builds import ROOT, run

MODELS = ROOT / "nfs" / "gpu" / "model"
DEPTH = 100_000
LIMIT_S = 280


@dataclass(frozen=True)
class Verdict:
    """What Spin says of a model: the first error, empty if there is none, and how many states it stored."""

    error: str
    states: int


def require_spin() -> None:
    """Skip the test without Spin or a compiler for the checkers that it writes."""
    missing = [program for program in ("spin", "cc") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: nothing can check the models of the GPU's tables")


def check_model(model: str, folder: Path, *defined: str, liveness: bool = False, optimized: bool = False) -> Verdict:
    """Search all states of `model` with `defined` names.

    Assertions and ends in which a process waits for ever are errors; with `liveness` also runs, fair to every process,
    in which the model's formula never comes true. An `optimized` checker takes longer to compile than most models take.
    """
    run(["spin", "-a", *[f"-D{name}" for name in defined], MODELS / model], cwd=folder)
    kind = ["-DNFAIR=3"] if liveness else ["-DSAFETY", "-DNOCLAIM"]
    run(["cc", "-w", "-O1" if optimized else "-O0", "-DVECTORSZ=2048", *kind, "-o", "pan", "pan.c"], cwd=folder)
    done = subprocess.run(
        [folder / "pan", f"-m{DEPTH}", "-n", *(["-a", "-f"] if liveness else [])],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=LIMIT_S,
        check=False,
    )
    states = re.search(r"(\d+) states, stored", done.stdout)
    errors = re.search(r"errors: (\d+)", done.stdout)
    assert states and errors, done.stdout + done.stderr
    assert "max search depth too small" not in done.stdout, done.stdout
    error = re.search(r"pan:\d+: (.*) \(at depth", done.stdout)
    assert bool(error) == (errors[1] != "0"), done.stdout
    return Verdict(error[1] if error else "", int(states[1]))
