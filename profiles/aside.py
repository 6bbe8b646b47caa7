"""Write aside, then rename: no reader ever sees half a file or half a directory."""

import ctypes
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

UNFINISHED_PREFIX = ".unfinished."  # begins the names of folders that are written aside

AT_FDCWD = -100
RENAME_EXCHANGE = 2


@contextmanager
def file_aside(target: Path, mode: int = 0o666) -> Iterator[Path]:
    """A path to write to, which becomes `target` when the block ends well and is removed when it does not. A link
    stays, and what it points to is replaced; a device or a pipe stays, and gets the content. `mode`: permissions of the
    file, less those that the umask takes."""
    if target.exists() and not target.is_file() and not target.is_dir():
        with _copy_into(target) as aside:
            yield aside
        return
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with _faults_named(target):
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        aside.chmod(mode & ~_umask())
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _copy_into(device: Path) -> Iterator[Path]:
    """A path to write to, whose content is written to a device or a pipe when the block ends well."""
    with tempfile.TemporaryDirectory() as folder:
        aside = Path(folder) / "content"
        yield aside
        with aside.open("rb") as content, device.open("wb") as out:
            shutil.copyfileobj(content, out)


@contextmanager
def directory_aside(target: Path) -> Iterator[Path]:
    """An empty directory to fill, which replaces `target` when the block ends well and is removed when it does not.
    Everything in the old `target` is removed. Where the file system can exchange two directories (Linux), `target` is
    never missing. What processes left that were killed is removed, too."""
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f"{UNFINISHED_PREFIX}{target.name}."
    for abandoned in target.parent.glob(f"{glob.escape(prefix)}*"):
        with _lock(abandoned) as is_ours:
            if is_ours:
                shutil.rmtree(abandoned, ignore_errors=True)
    with _faults_named(target):
        aside = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        with _lock(aside):
            yield aside
            aside.chmod(0o777 & ~_umask())
            if not target.exists():
                aside.rename(target)
            elif not _exchange(aside, target):
                retired = Path(tempfile.mkdtemp(prefix=f"{prefix}old.", dir=target.parent))
                target.rename(retired / target.name)
                aside.rename(target)
                shutil.rmtree(retired)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _lock(folder: Path) -> Iterator[bool]:
    """Whether no other process writes to a folder; then none does until the block ends."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:  # it has its name now
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


@contextmanager
def files_aside(target: Path, outdated: Iterable[Path] = ()) -> Iterator[Path]:
    """An empty directory to fill, whose content moves into the directory `target` when the block ends well. Each file
    replaces the one of its name in a single step; a folder that `target` does not have, and `target` itself where there
    is none, appears whole. Every other file in `target` stays. Only one process may write into `target`. `target`: the
    directory to write into. `outdated`: files that are removed just before the others are replaced."""
    if not target.exists():
        with directory_aside(target) as aside:
            yield aside
        return
    for abandoned in target.glob(f"{UNFINISHED_PREFIX}*"):  # by a process that was killed
        shutil.rmtree(abandoned)
    with _faults_named(target):
        aside = Path(tempfile.mkdtemp(prefix=UNFINISHED_PREFIX, dir=target))
    try:
        yield aside
        for path in outdated:
            path.unlink(missing_ok=True)
        _move_into(aside, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _faults_named(target: Path) -> Iterator[None]:
    """Errors about what is written aside are about `target`, whose name users know."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error


def _move_into(folder: Path, target: Path) -> None:
    for path in sorted(folder.iterdir()):
        place = target / path.name
        if path.is_dir() and place.is_dir():
            _move_into(path, place)
        else:
            path.replace(place)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two directories in a single step; False where the system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# The files of a report: all of them, or none.


Files = dict[Path, bytes]  # contents by path


def write_files(files: Mapping[Path, bytes]) -> list[Path]:
    """Write all files aside, then rename them: if one cannot be written, none is."""
    with ExitStack() as stack:
        for path, content in files.items():
            stack.enter_context(file_aside(path)).write_bytes(content)
    return list(files)
