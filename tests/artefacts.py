"""What many tests start from and takes seconds to make: made once, for all workers and for the next run, too."""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
HOME = REPO / "build" / "test-artefacts"
CODE = ("predictor", "profiler", "profiles")
"""What artefacts are made with, besides the function that makes one and its inputs."""


def made_once(name: str, make: Callable[[Path], object], *inputs: Path) -> Path:
    """The folder `name`, which `make` has filled: by this process, by another one, or in a run before.

    It is made again when code of the packages, the file of `make`, or an input (a file, or a folder) has changed.
    """
    source = inspect.getsourcefile(make)
    assert source
    home = HOME / name
    folder, unfinished = home / _digest(Path(source), *inputs), home / "unfinished"
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker that wants it waits here
        if not folder.exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            make(unfinished)
            unfinished.rename(folder)
    return folder


def _digest(*inputs: Path) -> str:
    digest = hashlib.sha256(_code().encode())
    for path in inputs:
        _add(digest, path, "*")
    return digest.hexdigest()[:12]


@cache
def _code() -> str:
    digest = hashlib.sha256()
    for package in CODE:
        _add(digest, REPO / package, "*.py")
    return digest.hexdigest()


def _add(digest: hashlib._Hash, root: Path, pattern: str) -> None:
    for path in sorted([root] if root.is_file() else root.rglob(pattern)):
        if path.is_file():
            digest.update(str(path.relative_to(root.parent)).encode() + b"\0" + path.read_bytes())
