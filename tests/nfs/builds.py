"""Builds of the C network functions for tests; a test that needs a missing package is skipped with a message.

With SANITIZE=1 (`make sanitized`) programs are tested with sanitizers, which takes several times as long.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SANITIZED = ("-Db_sanitize=address,undefined", "-Db_lundef=false", "-Doptimization=1")
SANITIZE = os.environ.get("SANITIZE") == "1"  # whether programs are tested with sanitizers

LINKER = {"CC_LD": "gold"} if shutil.which("ld.gold") else {}
"""A linker that takes a quarter of the time, for a hundred test programs."""

PACKAGES = ("libdpdk >= 22.11", "libpcap", "libhs", "zlib", "jansson", "cmocka")


def require(*programs: str) -> None:
    """Skip the test if a program or package that the full build needs is missing."""
    missing = [program for program in ("meson", "ninja", "pkg-config", *programs) if shutil.which(program) is None]
    if "pkg-config" not in missing:
        missing += [
            name for name in PACKAGES if subprocess.run(["pkg-config", "--exists", name], check=False).returncode
        ]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: `make deps` installs what the functions in C need")


def build_nfs(folder: str, *options: str, compiler: str = "cc", target: str = "all") -> Path:
    """Build `target` in build/`folder`; return that folder."""
    build = ROOT / "build" / folder
    again = ["--reconfigure"] if (build / "build.ninja").exists() else []
    with locked(build):
        run(["meson", "setup", *again, build, ROOT / "nfs", *options], env=os.environ | LINKER | {"CC": compiler})
        run(["ninja", "-C", build, target])
    return build


def build_tested(target: str) -> Path:
    """Build `target` as it is to be tested; return the folder."""
    return build_sanitized(target) if SANITIZE else build_nfs("nfs", target=target)


def build_sanitized(target: str) -> Path:
    """Build `target` with the address and undefined-behaviour sanitizers; return the folder.

    clang builds C tests, host testbed and fuzzer from the same objects, instrumented for the fuzzer. Without clang, cc
    builds all but the fuzzer.
    """
    if shutil.which("clang"):
        return build_nfs("nfs-sanitized-fuzz", *SANITIZED, "-Dfuzz=true", compiler="clang", target=target)
    require("cc")
    return build_nfs("nfs-sanitized", *SANITIZED, target=target)


@contextmanager
def locked(build: Path) -> Iterator[None]:
    """Hold the lock of a build folder: tests run in several processes and share build folders."""
    build.parent.mkdir(exist_ok=True)
    with build.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(command: list[object], **options: object) -> str:
    """Run a command and return its stdout; the test fails with its output if the command fails."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, errors="replace", check=False, **options
    )  # type: ignore[call-overload]
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return str(done.stdout)
