"""No reader ever sees half a file or half a directory."""

import errno
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from profiles import aside as aside_module
from profiles.aside import directory_aside, file_aside, files_aside


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    """The target does not change until the block ends, and nothing else is left behind."""
    target = tmp_path / "new" / "file"
    with file_aside(target) as aside:
        aside.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole" and list(target.parent.iterdir()) == [target]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """A disk that fills up in the middle leaves the old file, and no trace of the new one."""
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(OSError, match="full"), file_aside(target) as aside:
        aside.write_text("ne")
        raise OSError("disk full")
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("write", [file_aside, directory_aside, files_aside])
def test_what_cannot_be_written_has_the_name_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], AbstractContextManager[Path]]
) -> None:
    """Nobody knows the name of the file that is written aside."""

    def refused(prefix: str, dir: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(dir / f"{prefix}w2jiyt6t"))

    monkeypatch.setattr(tempfile, "mkstemp", refused)
    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    for target in (tmp_path / "new", tmp_path):
        with pytest.raises(PermissionError) as raised, write(target):
            pass
        assert raised.value.filename == str(target)


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_directory_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool) -> None:
    """Files of the old directory are not in the new one; a failure keeps the old one whole."""
    if not exchanges:
        monkeypatch.setattr(aside_module, "_exchange", lambda one, other: False)
    target = tmp_path / "models"
    with directory_aside(target) as aside:
        (aside / "first").write_text("1")
    with directory_aside(target) as aside:
        (aside / "second").write_text("2")
        assert (target / "first").exists()
    assert [path.name for path in target.iterdir()] == ["second"]
    with pytest.raises(KeyboardInterrupt), directory_aside(target) as aside:
        (aside / "third").write_text("3")
        raise KeyboardInterrupt
    assert [path.name for path in target.iterdir()] == ["second"] and list(tmp_path.iterdir()) == [target]


def test_files_replace_those_of_their_names_and_all_others_stay(tmp_path: Path) -> None:
    """Also in folders, which appear whole where there was none; outdated files are removed."""
    for name in ("notes", "a.csv", "old.csv", "nf/a.csv", "nf/notes/deep"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    with files_aside(tmp_path, [tmp_path / "old.csv", tmp_path / "absent.csv"]) as aside:
        for name in ("a.csv", "nf/a.csv", "nf/b.csv", "other/c.csv"):
            (aside / name).parent.mkdir(exist_ok=True)
            (aside / name).write_text("after")
        assert (tmp_path / "a.csv").read_text() == "before"
    assert _texts(tmp_path) == {
        "notes": "before", "nf/notes/deep": "before",
        "a.csv": "after", "nf/a.csv": "after", "nf/b.csv": "after", "other/c.csv": "after",
    }  # fmt: skip


def test_a_failure_replaces_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    with pytest.raises(OSError, match="full"), files_aside(tmp_path, [tmp_path / "a"]) as aside:
        (aside / "a").write_text("af")
        raise OSError("disk full")
    assert _texts(tmp_path) == {"a": "before"}


def test_a_new_target_appears_whole(tmp_path: Path) -> None:
    with files_aside(tmp_path / "new") as aside:
        (aside / "a").write_text("after")
        assert not (tmp_path / "new").exists()
    assert _texts(tmp_path / "new") == {"a": "after"}


@pytest.mark.parametrize("renames", [0, 1, 2, 3])
def test_a_kill_between_two_renames_loses_nothing(tmp_path: Path, renames: int) -> None:
    """Every file is there, old or new; the next write completes the change and removes what the killed one left."""
    (tmp_path / "notes").write_text("mine")
    for name in "abc":
        (tmp_path / name).write_text("before")
    process = multiprocessing.get_context("fork").Process(target=_write_and_be_killed, args=(tmp_path, renames))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    texts = {name: text for name, text in _texts(tmp_path).items() if not name.startswith(".")}
    assert texts == {"notes": "mine"} | {name: "after" if at < renames else "before" for at, name in enumerate("abc")}
    _write(tmp_path)
    assert _texts(tmp_path) == {"notes": "mine", "a": "after", "b": "after", "c": "after"}
    assert not list(tmp_path.glob(".*"))


def _write(target: Path) -> None:
    with files_aside(target) as aside:
        for name in "abc":
            (aside / name).write_text("after")


def _write_and_be_killed(target: Path, renames: int) -> None:
    replace, done = Path.replace, [0]

    def counted(path: Path, place: Path) -> Path:
        if done[0] == renames:
            os.kill(os.getpid(), signal.SIGKILL)
        done[0] += 1
        return replace(path, place)

    Path.replace = counted  # type: ignore[method-assign,assignment]
    _write(target)
    os.kill(os.getpid(), signal.SIGKILL)


def _texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "plan.csv", tmp_path / "latest.csv"
    target.write_text("old")
    link.symlink_to(target)
    with file_aside(link) as aside:
        aside.write_text("new")
    assert link.is_symlink() and target.read_text() == "new"


def test_a_pipe_stays_and_gets_the_content(tmp_path: Path) -> None:
    """As does a device: `--plan /dev/stdout` must not replace it by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    with file_aside(pipe) as aside:
        aside.write_text("new")
    reader.join(10)
    assert received == ["new"] and pipe.is_fifo()
