"""Puts results on paper: text for the terminal, CSV, SVG and PNG for a folder, and an index of them all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from experiments.outcome import Outcome
from experiments.page import MARKS, notes_of, page_of_outcomes
from experiments.registry import Experiment, Result, Setting
from placer.report.html import write_page
from profiles.aside import file_aside
from profiles.table import write_table

INDEX = "index"
INCHES = (8.0, 4.5)
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "nf-placer",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def as_text(experiment: Experiment, result: Result) -> str:
    """The table as text, what it ran on, and the notes."""
    cells = _cells(result.table)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in result.table.dtypes]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]
    told = [*(f"ran on {where}" for where in result.ran_on), *(f"note: {note}" for note in result.notes)]
    return "\n".join([f"{experiment.name}: {experiment.title}", "", *lines, "", *told]) + "\n"


def write_result(experiment: Experiment, result: Result, out: Path) -> list[Path]:
    """Write the table and the data as CSV and the plot as SVG and PNG; the files written."""
    tables = {experiment.name: result.table} | {
        f"{experiment.name}-{name}": table for name, table in sorted(result.data.items())
    }
    written = []
    for name, table in tables.items():
        written.append(out / f"{name}.csv")
        write_table(table, written[-1])
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=INCHES, layout="constrained")
        result.draw(figure)
        for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            written.append(out / f"{experiment.name}.{kind}")
            with file_aside(written[-1]) as aside:
                figure.savefig(aside, format=kind, dpi=120, metadata=metadata)
    return written


def write_index(outcomes: Sequence[Outcome], setting: Setting, out: Path) -> list[Path]:
    """One page of all results: as Markdown, which shows the plots that lie beside it, and as HTML, which holds them."""
    with file_aside(out / f"{INDEX}.md") as aside:
        aside.write_text("\n".join(_index(outcomes, setting)) + "\n", encoding="utf-8")
    write_page(page_of_outcomes(outcomes, setting, out), out / f"{INDEX}.html")
    return [out / f"{INDEX}.md", out / f"{INDEX}.html"]


def _index(outcomes: Sequence[Outcome], setting: Setting) -> Iterator[str]:
    yield from ("# Results", "", MARKS, "", f"Seed {setting.seed}, {setting.scale:g} of the full number of runs.", "")
    for one in outcomes:
        told = f"{one.marked} of {len(one.result.table)} rows marked" if one.result else f"{one.status}: {one.reason}"
        yield f"- [{one.experiment.name}](#{one.experiment.name}): {one.experiment.title} ({told})"
    for one in outcomes:
        name, title = one.experiment.name, one.experiment.title
        yield from ("", f"## {name}", "", f"{title}.", "")
        if one.result is None:
            yield f"{one.status.capitalize()}: {one.reason}"
            continue
        yield from (*_markdown(one.result.table), "")
        yield from (f"- {note}" for note in notes_of(one.result))
        csv = ", ".join(f"[{file}.csv]({file}.csv)" for file in [name, *(f"{name}-{of}" for of in one.result.data)])
        yield from ("", f"![{title}]({name}.svg)", "", f"Data: {csv}")


def _markdown(table: pd.DataFrame) -> list[str]:
    header, *rows = _cells(table)
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes]
    rule = ["--:" if right else "---" for right in numeric]
    return [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]


def _cells(table: pd.DataFrame) -> list[list[str]]:
    """Header and rows as text."""
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    return [[str(name) for name in table.columns], *rows]


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"
