"""GPUs drawn at random, which share no code with the project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from placer.testing import check_testbed
from profiler.testbeds.exec import ExecTestbed
from profiles import GpuSettings, PacedWorkload, Workload

PROGRAM = Path(__file__).parents[2] / "data" / "random_gpu.py"


def command(seed: int) -> str:
    return f"{sys.executable} {PROGRAM} --seed {seed}"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_random_gpu_is_a_testbed(seed: int) -> None:
    """With stages that add up to the latency."""
    with ExecTestbed(command(seed)) as gpu:
        check_testbed(gpu)
        described = gpu.describe()
        loads = [
            PacedWorkload(Workload(nf.name, described.traffic), 200.0, GpuSettings.of([(0, 16)], order=at))
            for at, nf in enumerate(described.nfs[:3])
        ]
        for one in gpu.run(loads, seed=1).measurements:
            assert one.latency_us is not None and one.stages_us is not None
            assert sum(one.stages_us.as_dict().values()) == pytest.approx(one.latency_us.mean, rel=1e-3)


def test_random_gpus_differ() -> None:
    """In hardware, NFs, and how parts share an SM."""
    described = set()
    for seed in range(3):
        with ExecTestbed(command(seed)) as gpu:
            described.add(gpu.describe().model_dump_json())
    assert len(described) == 3


def test_the_program_imports_nothing_of_the_project() -> None:
    """It runs in a Python without any package."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r}); import random_gpu",
        ],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
