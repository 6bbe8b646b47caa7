"""Write aside, then rename: nobody ever sees half a file or half a directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_aside(target: Path) -> Iterator[Path]:
    """A path to write to, which becomes `target` when the block ends well and vanishes when it does not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        aside.chmod(0o666 & ~_umask())
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def directory_aside(target: Path) -> Iterator[Path]:
    """An empty directory to fill, which replaces `target` when the block ends well and vanishes when it does not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield aside
        aside.chmod(0o777 & ~_umask())
        if target.exists():
            retired = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
            target.rename(retired / target.name)
            aside.rename(target)
            shutil.rmtree(retired)
        else:
            aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
