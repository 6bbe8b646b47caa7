"""Nobody ever sees half a file or half a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.aside import directory_aside, file_aside


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    """The target holds what was there before until the block ends, and nothing else is left behind."""
    target = tmp_path / "new" / "file"
    with file_aside(target) as aside:
        aside.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert list(target.parent.iterdir()) == [target]


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    """A disk that fills up in the middle leaves the old file, and no trace of the new one."""
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(OSError, match="full"), file_aside(target) as aside:
        aside.write_text("ne")
        raise OSError("disk full")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_directory_is_replaced_whole(tmp_path: Path) -> None:
    """Files of the old directory do not survive in the new one; a failure keeps the old one whole."""
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
    assert [path.name for path in target.iterdir()] == ["second"]
    assert list(tmp_path.iterdir()) == [target]
