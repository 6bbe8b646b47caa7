"""Tables as text for people, readable without colour, never wrapped."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.model.catalogue import Catalogue

WIDEST_TABLE = 400  # width limit of a table, characters


def text_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, words: int | None = None) -> str:
    """The rows under their headings, ending in a newline. `headings` and `rows`: cells are converted to text. `words`:
    how many columns, from the left, hold words; the others hold numbers, aligned on the right. None: all."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        left = words is None or number < words
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(str, row))
    shown = io.StringIO()
    Console(file=shown, width=WIDEST_TABLE, no_color=True).print(table)
    return "\n".join(line.rstrip() for line in shown.getvalue().splitlines()) + "\n"


def csv_text(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The rows under their headings, as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([headings, *rows])
    return text.getvalue()


# Counts in sentences: `1 NIC`, `127 NICs`, `500 arrivals`.


def count_noun(count: int, noun: str) -> str:
    """A count and its noun, which takes an s unless the count is 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def count_nics(count: int) -> str:
    """A number of NICs."""
    return count_noun(count, "NIC")


# What commands that choose a risk by a budget report of it.


def describe_risk(catalogue: Catalogue, risk: float | None, arrivals: str) -> str:
    """The risk that is used, and why; `arrivals` are those that it was chosen by."""
    if risk is None:
        return "the predictor does not model its prediction error: it places by its median prediction"
    if catalogue.budget_pct is None:
        return f"risk {risk:g}, as given"
    return f"risk {risk:g}, chosen by {arrivals} for a budget of {catalogue.budget_pct:g} % SLA violations"
