"""The runtime of the GPU: one launch serves the tasks of four network functions, each once, on every engine here."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.nfs.builds import ROOT, build_nfs, require, run

GPU = ROOT / "nfs" / "gpu"
LIMIT_S = 280


@pytest.fixture(scope="session")
def tasks() -> Path:
    """The program that serves tasks."""
    require()
    return build_nfs("nfs", target="gpu/nf-gpu-tasks") / "gpu" / "nf-gpu-tasks"


def serve(program: Path, *options: str, threads: int = 0) -> dict[str, int | float | str]:
    """What the program reports; the test is skipped if the build or this machine lacks the engine."""
    env = os.environ | ({"POCL_MAX_PTHREAD_COUNT": str(threads)} if threads else {})
    done = subprocess.run([program, *options], capture_output=True, text=True, check=False, timeout=LIMIT_S, env=env)
    if "not built" in done.stderr or "no device" in done.stderr:
        pytest.skip(f"no such engine here: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


def assert_once(report: dict[str, int | float | str]) -> None:
    """Each part of a task was served once, and each packet came back in order with its own result."""
    assert report["parts_served"] == report["parts"]
    assert report["lost"] == report["wrong"] == 0


@pytest.mark.parametrize("backend", ["plain", "opencl"])
def test_one_launch_serves_tasks_of_four_functions_once(tasks: Path, backend: str) -> None:
    """One executor, and more executors than cores, serve every part once; PoCL runs the second engine."""
    report = serve(tasks, "--backend", backend, "--tasks", "20000", "--executors", "1")
    assert_once(report)
    assert int(report["tasks"]) >= 20000
    assert_once(serve(tasks, "--backend", backend, "--tasks", "5000", "--executors", "3", "--sms", "2", threads=6))


@pytest.mark.parametrize("backend", ["plain", "opencl"])
def test_batches_and_orders_change_while_tasks_are_served(tasks: Path, backend: str) -> None:
    """With new batch sizes and transfer orders all the time, each part is served once."""
    options = ("--backend", backend, "--tasks", "5000", "--executors", "2", "--sms", "2", "--rebatch")
    assert_once(serve(tasks, *options, threads=4))


def test_pocl_refuses_executors_that_would_wait_for_ever(tasks: Path) -> None:
    """More executors than PoCL has threads are refused, with the setting that would help."""
    serve(tasks, "--backend", "opencl", "--tasks", "100", "--executors", "1")
    done = subprocess.run(
        [tasks, "--backend", "opencl", "--executors", "3"],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env=os.environ | {"POCL_MAX_PTHREAD_COUNT": "2"},
    )
    assert done.returncode == 1
    assert "runs 2 at once\nhint: fewer executors, or POCL_MAX_PTHREAD_COUNT=3" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--backend", "vulkan"), "--backend: vulkan: not built\nhint: one of"),
        (("--tasks", "0"), '--tasks: "0" is not a whole number from 1'),
        (("--batch", "65"), '--batch: "65" is not a whole number from 1 to 64'),
        (("--executors", "two"), '--executors: "two"'),
        (("more",), "more: arguments are options"),
    ],
)
def test_bad_options_are_refused(tasks: Path, options: tuple[str, ...], message: str) -> None:
    """What cannot be is named, and the program ends with 2."""
    done = subprocess.run([tasks, *options], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_threads_do_not_race(tmp_path: Path) -> None:
    """The thread sanitizer finds nothing in workers, gate, tables and executors, while settings change."""
    if shutil.which("clang") is None:
        pytest.skip("clang not installed: the thread sanitizer is its")
    if subprocess.run(["pkg-config", "--exists", "cmocka"], check=False).returncode:
        pytest.skip("cmocka not installed")
    runtime = [*sorted((GPU / "host").glob("*.c")), GPU / "backends/backend.c", *(GPU / "backends").glob("plain*.c")]
    compiler = [
        "clang",
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-O1",
        "-g",
        "-fsanitize=thread",
        f"-I{ROOT / 'nfs'}",
        "-pthread",
    ]
    run([*compiler, *runtime, ROOT / "nfs/core/command_line.c", "-o", tmp_path / "tasks"])
    without_main = [file for file in runtime if file.name != "tasks_main.c"]
    run([*compiler, *without_main, ROOT / "nfs/tests/test_gpu_runtime.c", "-lcmocka", "-o", tmp_path / "unit"])
    assert_once(serve(tmp_path / "tasks", "--tasks", "5000", "--rebatch", "--executors", "3", "--sms", "2"))
    run([tmp_path / "unit"], timeout=LIMIT_S)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["plain", "opencl"])
def test_one_launch_serves_a_million_tasks(tasks: Path, backend: str) -> None:
    """A million tasks of four functions by one launch, each part once."""
    report = serve(tasks, "--backend", backend, "--tasks", "1000000")
    print(json.dumps(report))
    assert_once(report)
    assert int(report["tasks"]) >= 1_000_000
