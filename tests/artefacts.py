"""What many tests start from and takes seconds to make: made once, for all workers and for the next run, too."""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TextIO

REPO = Path(__file__).resolve().parents[1]
HOME = REPO / "build" / "test-artefacts"
CODE = ("predictor", "profiler", "profiles")
"""What artefacts are made with, besides the function that makes one and its inputs."""
LONGEST_COMPILATION_S = 120.0


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


@contextmanager
def compiling_once() -> Iterator[None]:
    """Of several workers that need a kernel, one compiles it; the others wait, and read it from the cache of kernels.

    They wait at most LONGEST_COMPILATION_S each time, since threads of two workers could wait for one another.
    """
    from numba.core.dispatcher import Dispatcher  # not earlier: it loads numpy

    compile_kernel, held = Dispatcher.compile, set()
    locks = HOME / "kernels.locks"
    locks.mkdir(parents=True, exist_ok=True)

    def compile_alone(kernel: Any, signature: object) -> object:
        called = "-called" if kernel.targetoptions.get("no_cpython_wrapper") else ""
        name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}{called}"
        if name in held:
            return compile_kernel(kernel, signature)
        with (locks / name).open("w") as lock:
            until = time.monotonic() + LONGEST_COMPILATION_S
            while not _is_locked(lock) and time.monotonic() < until:
                time.sleep(0.02)
            held.add(name)
            try:
                return compile_kernel(kernel, signature)
            finally:
                held.discard(name)

    Dispatcher.compile = compile_alone
    try:
        yield
    finally:
        Dispatcher.compile = compile_kernel


def _is_locked(lock: TextIO) -> bool:
    """Whether the file is now locked by this process."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
