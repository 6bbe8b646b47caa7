"""The network functions in C, built for tests; where they cannot be, tests are skipped visibly."""

from __future__ import annotations

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
PACKAGES = ("libdpdk >= 22.11", "libpcap", "libhs", "zlib", "jansson", "cmocka")


def needs(*programs: str) -> None:
    """Skip, visibly, where not all of the network functions can be built."""
    missing = [program for program in ("meson", "ninja", "pkg-config", *programs) if shutil.which(program) is None]
    if "pkg-config" not in missing:
        missing += [
            name for name in PACKAGES if subprocess.run(["pkg-config", "--exists", name], check=False).returncode
        ]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: `make deps` installs what the functions in C need")


def built(folder: str, *options: str, compiler: str = "cc", target: str = "all") -> Path:
    """The folder in which `target` is built."""
    build = ROOT / "build" / folder
    again = ["--reconfigure"] if (build / "build.ninja").exists() else []
    with only_one_at_work_in(build):
        run(["meson", "setup", *again, build, ROOT / "nfs", *options], env=os.environ | {"CC": compiler})
        run(["ninja", "-C", build, target])
    return build


@contextmanager
def only_one_at_work_in(build: Path) -> Iterator[None]:
    """Tests run in several processes, which use the same builds."""
    build.parent.mkdir(exist_ok=True)
    with build.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(command: list[object], **how: object) -> str:
    """What a command says; the test fails with it when the command does."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, errors="replace", check=False, **how
    )  # type: ignore[call-overload]
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return str(done.stdout)
