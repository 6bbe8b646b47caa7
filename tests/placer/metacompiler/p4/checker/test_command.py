"""The checker as a command: exit code, what goes to stdout and what to stderr."""

from __future__ import annotations

from pathlib import Path

import pytest

from placer.metacompiler.p4.checker.__main__ import main
from tests.placer.metacompiler.p4.checker.programs import FOLDER, changed


def test_right_files_are_accepted_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(FOLDER / "acl.p4"), str(FOLDER / "nat.p4")]
    assert main(files) == 0
    assert capsys.readouterr() == ("".join(f"{file}: accepted\n" for file in files), "")


def test_a_wrong_file_exits_with_2_and_names_faults_then_hints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "switch.p4"
    file.write_text(changed("acl", "hits.count(rule);", "hits.count(rul);"), encoding="utf-8")
    assert main([str(file)]) == 2
    assert capsys.readouterr() == ("", f"{file}:87:20: there is no value rul\nhint: did you mean rule?\n")


def test_warnings_do_not_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "switch.p4"
    file.write_text(changed("acl", "struct headers_t", "const bit<8> A = 1;\nstruct headers_t"), encoding="utf-8")
    assert main([str(file)]) == 0
    assert capsys.readouterr() == (f"{file}: accepted\n", f"{file}:29:14: constant A is never used (warning)\n")


def test_a_missing_file_and_no_file_exit_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.p4")]) == 2
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "No such file" in err
    assert "usage:" in err


def test_bytes_that_are_no_text_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "switch.p4"
    file.write_bytes(b"\xff\xfe")
    assert main([str(file)]) == 2
    assert capsys.readouterr().err == f"{file}: is not UTF-8\n"
