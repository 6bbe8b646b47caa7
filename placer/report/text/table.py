"""Tables as text for people, readable without colour, never wrapped."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

WIDEST = 400
"""Width limit of a table, characters."""


def text_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, words: int | None = None) -> str:
    """The rows under their headings, ending in a newline.

    Parameters
    ----------
    headings, rows
        Cells are converted to text.
    words
        How many columns, from the left, hold words; the others hold numbers, aligned on the right. None: all.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        left = words is None or number < words
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(str, row))
    shown = io.StringIO()
    Console(file=shown, width=WIDEST, no_color=True).print(table)
    return "\n".join(line.rstrip() for line in shown.getvalue().splitlines()) + "\n"
