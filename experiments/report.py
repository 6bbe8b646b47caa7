"""Writes results: text for the terminal; CSV, SVG and PNG into a folder; and an index page of them all."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from experiments.outcome import Outcome
from experiments.page import VERDICT_TEXT, notes_of, page_of_outcomes, papers_of, runs_made, title_of
from experiments.registry import Experiment, Result, Setting
from placer.report.html import write_page
from profiles.table import write_table

INDEX_PAGE = "index"
FIGURE_INCHES = (8.0, 4.5)
FIGURE_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "nf-placer",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def as_text(experiment: Experiment, result: Result) -> str:
    """Title, table, testbeds and notes as text."""
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
    title = f"{experiment.paper.name}, {experiment.name}: {experiment.title}"
    return "\n".join([title, "", *lines, "", *notes_of(result)]) + "\n"


def write_result(experiment: Experiment, result: Result, out: Path) -> list[Path]:
    """Write the table and the data as CSV and the plot as SVG and PNG, all or none; return the paths written."""
    tables = {experiment.name: result.table} | {
        f"{experiment.name}-{name}": table for name, table in sorted(result.data.items())
    }
    with _all_or_none(out) as folder:
        for name, table in tables.items():
            write_table(table, folder / f"{name}.csv")
        with mpl.rc_context(FIGURE_STYLE):
            figure = Figure(figsize=FIGURE_INCHES, layout="constrained")
            result.draw(figure)
            figure.savefig(folder / f"{experiment.name}.svg", dpi=120, metadata={"Date": None})
            figure.savefig(folder / f"{experiment.name}.png", dpi=120, metadata={"Software": None})
    return [out / f"{name}.csv" for name in tables] + [out / f"{experiment.name}.{kind}" for kind in ("svg", "png")]


def write_index(outcomes: Sequence[Outcome], setting: Setting, out: Path) -> list[Path]:
    """Write one page of all results, both formats or none; return the paths written.

    The Markdown page links to the plots in the same folder, the HTML page contains them.
    """
    names = [f"{INDEX_PAGE}.md", f"{INDEX_PAGE}.html"]
    with _all_or_none(out) as folder:
        (folder / names[0]).write_text("\n".join(_markdown_page(outcomes, setting)) + "\n", encoding="utf-8")
        write_page(page_of_outcomes(outcomes, setting, out), folder / names[1])
    return [out / name for name in names]


@contextmanager
def _all_or_none(out: Path) -> Iterator[Path]:
    """A folder to write to. Its files move to `out` when the block ends well, and are deleted when it raises."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".writing-", dir=out) as folder:
        yield Path(folder)
        for file in sorted(Path(folder).iterdir()):
            file.replace(out / file.name)


def _markdown_page(outcomes: Sequence[Outcome], setting: Setting) -> Iterator[str]:
    yield from (f"# {title_of(outcomes)}", "", VERDICT_TEXT, "", runs_made(setting), "")
    yield from (f"- {paper}" for paper in papers_of(outcomes))
    yield ""
    for outcome in outcomes:
        rows = f"{outcome.rows_with_verdict} of {outcome.rows} rows worse or different"
        ended = rows if outcome.result else f"{outcome.status}: {outcome.reason}"
        yield f"- [{outcome.experiment.name}](#{outcome.experiment.name}): {outcome.experiment.title} ({ended})"
    for reported in outcomes:
        name, title = reported.experiment.name, reported.experiment.title
        yield from ("", f"## {name}", "", f"{title}.", "")
        if reported.result is None:
            yield f"{reported.status.capitalize()}: {reported.reason}"
            continue
        yield from (*_markdown_table(reported.result.table), "")
        yield from (f"- {note}" for note in notes_of(reported.result))
        csv = ", ".join(
            f"[{file}.csv]({file}.csv)" for file in [name, *(f"{name}-{of}" for of in reported.result.data)]
        )
        yield from ("", f"![{title}]({name}.svg)", "", f"Data: {csv}")


def _markdown_table(table: pd.DataFrame) -> list[str]:
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
