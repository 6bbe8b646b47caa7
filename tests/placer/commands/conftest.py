"""Runs `placer` in this process, and what several commands read."""

import csv
import gc
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from placer.cli import main
from predictor.training.gpu import train_gpu
from profiler.gpu.profiling import profile_gpu
from profiles.gpu_tables import read_gpu_profile
from tests.artefacts import made_once
from tests.profiler.gpu import toy_gpu as toy_gpu_module
from tests.profiler.gpu.toy_gpu import ToyGpu
from traces.arrivals import Recipe, generate


class Ended(NamedTuple):
    status: int
    stdout: str
    stderr: str


Placer = Callable[..., Ended]


def rows(text: str) -> list[dict[str, str]]:
    """The rows of printed CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def run_placer(*arguments: object, stdin: str | bytes = "") -> Ended:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True) for _ in range(2))
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        file.write(stdin if isinstance(stdin, bytes) else stdin.encode())
        file.seek(0)
        patch.setattr(sys, "argv", ["placer", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(file, encoding="utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        finally:
            gc.enable()  # services freeze what they have opened
            gc.unfreeze()
    status = code if isinstance(code, int) else 0 if code is None else 1
    return Ended(status, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def refuse(*arguments: object, stdin: str | bytes = "") -> str:
    """What `placer` says on stderr where it refuses arguments: with status 2, and nothing on stdout."""
    ended = run_placer(*arguments, stdin=stdin)
    assert (ended.status, ended.stdout) == (2, ""), ended
    return ended.stderr


@pytest.fixture
def placer() -> Placer:
    return run_placer


@pytest.fixture(scope="session")
def toy_gpu() -> Path:
    """A folder with the profile of both NFs of the toy GPU server, and models of it."""

    def make(folder: Path) -> None:
        train_gpu(read_gpu_profile(profile_gpu(ToyGpu(), folder / "profile", quota=80))).save(folder / "models")

    return made_once("toy-gpu", make, Path(toy_gpu_module.__file__))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Thirty arrivals of the nine NFs at default traffic."""
    path = tmp_path / "arrivals.csv"
    path.write_text("".join(generate(Recipe(count=30, seed=5))), encoding="utf-8")
    return path


@pytest.fixture
def arrivals(tmp_path: Path) -> Path:
    path = tmp_path / "arrivals.csv"
    path.write_text("id,time,nf,sla_drop\na,0,NAT,0.5\nb,1,NAT,0.5\n", encoding="utf-8")
    return path
