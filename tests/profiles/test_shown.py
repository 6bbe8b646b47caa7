"""How objects that hold much are shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from pydantic import BaseModel

from profiles.shown import LONGEST_TEXT, Shown


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
