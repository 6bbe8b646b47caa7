"""Writes results: text for the terminal; CSV, SVG and PNG into a folder; and an index page of them all."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from experiments.outcome import Outcome
from experiments.registry import Experiment, Paper, Result, Setting
from placer.report.html import Page, Picture, Section, Tile, write_page
from profiles.aside import files_aside
from profiles.table import write_table

FEW_ROWS = 32  # tables with at most this many rows are shown, longer ones are folded

UNIT_TEXTS = {"pct": ", %", "kpps": ", kpps"}
WORD_SPELLINGS = {"mape": "MAPE", "nf": "NF", "sla": "SLA"}

VERDICT_TEXT = (
    "The column verdict compares our number with the published one at the published precision, for the paper's method "
    "and its baselines alike: 'worse' names the metrics that are worse, 'differs' marks an effect of another size. An "
    "empty cell means as good as published, or no published number."
)
"""How to read the tables."""


def papers_of(outcomes: Sequence[Outcome]) -> list[Paper]:
    """The papers of the experiments, each once."""
    return list(dict.fromkeys(outcome.experiment.paper for outcome in outcomes))


def title_of(outcomes: Sequence[Outcome]) -> str:
    """The title of the page."""
    return f"{', '.join(paper.name for paper in papers_of(outcomes))}: reproduced tables and figures"


def page_of_outcomes(outcomes: Sequence[Outcome], setting: Setting, out: Path) -> Page:
    """The page of these experiments; the plots are read from the folder `out`."""
    ran = sum(outcome.status == "ran" for outcome in outcomes)
    rows, marked = sum(outcome.rows for outcome in outcomes), sum(outcome.rows_with_verdict for outcome in outcomes)
    tiles = [Tile(f"{ran:,}", "experiments ran"), Tile(f"{marked:,}", f"of {rows:,} rows worse or different")]
    for status in ("skipped", "failed"):
        number = sum(outcome.status == status for outcome in outcomes)
        tiles += [Tile(f"{number:,}", f"experiments {status}")] if number else []
    return Page(
        title=title_of(outcomes),
        summary=(
            f"{ran} of {len(outcomes)} experiments ran. Rows that are worse than published or different: {marked:,} of "
            f"{rows:,}. The others are as good as published or have no published number.",
            VERDICT_TEXT,
            f"{runs_made(setting)} Papers: {'; '.join(map(str, papers_of(outcomes)))}.",
        ),
        tiles=tuple(tiles),
        sections=(_overview(outcomes), *(_section(outcome, out) for outcome in outcomes)),
        made_by=f"placer reproduce all --scale {setting.scale:g} --seed {setting.seed}",
    )


def runs_made(setting: Setting) -> str:
    """The scale and the seed as a sentence."""
    share = "The full number of runs" if setting.scale == 1 else f"{100 * setting.scale:g} % of the full number of runs"
    return f"{share}, seed {setting.seed}."


def _overview(outcomes: Sequence[Outcome]) -> Section:
    table = pd.DataFrame(
        {
            "experiment": outcome.experiment.name,
            "paper": outcome.experiment.paper.name,
            "title": outcome.experiment.title,
            "status": outcome.status,
            "rows": outcome.rows,
            "worse or different": outcome.rows_with_verdict,
        }
        for outcome in outcomes
    )
    return Section("overview", "All experiments", "Tables first, then figures.", table=table, expanded=True)


def _section(one: Outcome, out: Path) -> Section:
    name, title, result = one.experiment.name, one.experiment.title, one.result
    heading = f"{one.experiment.paper.name}, {name}"
    if result is None:
        return Section(name, heading, f"{title}. {one.status.capitalize()}: {one.reason}")
    picture = Picture(name, f"Plot of {name}. The table has its numbers.", (out / f"{name}.svg").read_bytes())
    return Section(
        name,
        heading,
        f"{title}.",
        (picture,),
        result.table.rename(columns=_heading),
        expanded=len(result.table) <= FEW_ROWS,
        notes=tuple(notes_of(result)),
    )


def _heading(column: object) -> str:
    """The heading of a column: `published_mape_pct` becomes `published MAPE, %`."""
    *words, unit = str(column).split("_")
    unit = UNIT_TEXTS.get(unit, f" {unit}" if words else unit)
    return " ".join(WORD_SPELLINGS.get(word, word) for word in words) + WORD_SPELLINGS.get(unit, unit)


def notes_of(result: Result) -> Iterator[str]:
    """Which runs were made on which testbed, then what a reader needs to know."""
    yield from (f"Testbed: {testbed}" for testbed in result.testbeds)
    yield from result.notes


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
    with files_aside(out) as folder:
        for name, table in tables.items():
            write_table(table, folder / f"{name}.csv")
        with mpl.rc_context(FIGURE_STYLE):
            figure = Figure(figsize=FIGURE_INCHES, layout="constrained")
            result.draw(figure)
            figure.savefig(folder / f"{experiment.name}.svg", dpi=120, metadata={"Date": None})
            figure.savefig(folder / f"{experiment.name}.png", dpi=120, metadata={"Software": None})
    return [out / f"{name}.csv" for name in tables] + [out / f"{experiment.name}.{kind}" for kind in ("svg", "png")]


def write_index(outcomes: Sequence[Outcome], setting: Setting, out: Path) -> list[Path]:
    """Write one page of all results, both formats or none; return the paths written. The Markdown page links to the
    plots in the same folder, the HTML page contains them."""
    names = [f"{INDEX_PAGE}.md", f"{INDEX_PAGE}.html"]
    with files_aside(out) as folder:
        (folder / names[0]).write_text("\n".join(_markdown_page(outcomes, setting)) + "\n", encoding="utf-8")
        write_page(page_of_outcomes(outcomes, setting, out), folder / names[1])
    return [out / name for name in names]


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
