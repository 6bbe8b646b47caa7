"""Text files are read within a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles import InputError
from profiles.text import number_of, read_text


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfa")
    assert read_text(path, 10) == "a"


def test_a_device_without_end_is_read_up_to_the_limit() -> None:
    with pytest.raises(InputError, match="/dev/zero: is larger than 1,000 bytes"):
        read_text(Path("/dev/zero"), 1000)


def test_what_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nb\xff")
    with pytest.raises(InputError, match=r"a\.txt:2: is not UTF-8 text"):
        read_text(path, 10)


@pytest.mark.parametrize("text", ["1_0", "\u0661", "1,5", "", "nan", "inf", "1e999", "ten"])
def test_only_finite_decimal_numbers_are_numbers(text: str) -> None:
    assert number_of(text) is None


def test_signs_points_and_exponents_are_read() -> None:
    assert [number_of(text) for text in ("-1", "0.5", "1e3")] == [-1.0, 0.5, 1000.0]
