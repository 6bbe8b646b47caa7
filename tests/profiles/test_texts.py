"""Objects, faults and TOML as text."""

import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from profiles import Fault, InputError
from profiles.files.toml import TomlLines
from profiles.shown import LONGEST_TEXT, Shown
from profiles.text import number_of, read_text


@dataclass(frozen=True, repr=False)
class Holder(Shown):
    """Holds anything."""

    name: str
    value: object = None


class Described(Shown, BaseModel):
    """A model of pydantic."""

    name: str
    values: tuple[int, ...]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        ((1, 2), "(1, 2)"),
        ((1,), "(1,)"),
        ([1], "[1]"),
        ({"a": 1}, "{'a': 1}"),
        (range(9), "range(0, 9)"),
        (tuple(range(4)), "<tuple of 4>"),
        (dict.fromkeys(range(1000)), "<dict of 1,000>"),
        ((tuple(range(9)), 1), "(<tuple of 9>, 1)"),
        (np.zeros((2, 3)), "<ndarray of shape (2, 3)>"),
        (Holder("b", (1, 2, 3, 4)), "Holder(name='b', value=<tuple of 4>)"),
        ("a\nb", r"'a\nb'"),
        ("c" * 500, f"'{'c' * 118}\N{HORIZONTAL ELLIPSIS}"),
    ],
)
def test_a_field_is_shown_in_a_few_words(value: object, text: str) -> None:
    """Up to three items are listed, more are counted, arrays have a shape, and long text is cut."""
    assert repr(Holder("a", value)) == f"Holder(name='a', value={text})"


def test_models_of_pydantic_are_shown_alike() -> None:
    """Whether printed or in a cell of a notebook."""
    described = Described(name="a", values=tuple(range(50)))
    assert repr(described) == str(described) == "Described(name='a', values=<tuple of 50>)"


def test_no_object_is_longer_than_the_longest() -> None:
    """However many fields it has."""
    fields = {f"field_{number}": "x" * 300 for number in range(40)}
    wide = dataclass(frozen=True, repr=False)(type("Wide", (Shown,), {"__annotations__": dict.fromkeys(fields, str)}))
    assert len(repr(wide(**fields))) == LONGEST_TEXT


def test_a_notebook_shows_a_row_per_field_and_no_markup_of_the_user() -> None:
    """Names of NFs, files and NICs come from files."""
    html = Holder("<script>alert(1)</script>", "&")._repr_html_()
    assert html.startswith("<table><caption>Holder</caption><tr><th>name</th>")
    assert "<script>" not in html and "&lt;script&gt;" in html and "&#x27;&amp;&#x27;" in html


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


def test_a_fault_shows_file_line_and_column() -> None:
    assert str(Fault("a.csv", 3, "flows", "'x' is not a number")) == "a.csv:3: flows: 'x' is not a number"
    assert str(Fault("a.csv", None, None, "is empty")) == "a.csv: is empty"


def test_control_characters_of_input_are_not_printed() -> None:
    """Escape codes could change the terminal, and a line end could look like another fault."""
    shown = InputError.of("a.csv", "id '\x1b[2J\nb.csv:1: forged' is unknown", hint="check the ids").render()
    assert shown.splitlines() == ["a.csv: id '\ufffd[2J\ufffdb.csv:1: forged' is unknown", "hint: check the ids"]


def test_of_many_faults_twenty_are_shown_and_the_others_counted() -> None:
    lines = (
        InputError([Fault("a.csv", line, None, "is wrong", "mend it") for line in range(1, 31)]).render().splitlines()
    )
    assert len(lines) == 22 and lines[-2:] == ["... and 10 more", "hint: mend it"]


def test_another_process_hands_on_what_it_refuses() -> None:
    """As those of `placer size` do."""
    refused = InputError.of("a.csv", "is wrong", line=2, hint="mend it")
    assert pickle.loads(pickle.dumps(refused)).faults == refused.faults


TEXT = """top = 1
[a]
b = 2
"c d".e = {f = 3}
[[server]]
name = "x"
[server.nic]
cores = 1
[[server]]
  name = "y"   # = z
[ nf . ACL ]
cycles = [
  1,
]
"""


def test_each_key_has_its_line() -> None:
    lines = TomlLines(TEXT)
    assert [lines.of(path) for path in (["top"], ["a"], ["a", "b"])] == [1, 2, 3]
    assert lines.of(["server", 0, "name"]) == 6 and lines.of(["server", 1, "name"]) == 10
    assert lines.of(["server", 0, "nic", "cores"]) == 8 and lines.of(["nf", "ACL", "cycles"]) == 12


def test_what_is_not_there_has_the_line_of_the_table_around_it() -> None:
    lines = TomlLines(TEXT)
    assert lines.of(["a", "c d", "e", "f"]) == 4 and lines.of(["server", 1, "cores"]) == 9
    assert lines.of(["nf", "ACL", "cycles", 0]) == 12 and lines.of(["missing", "key"]) is None
