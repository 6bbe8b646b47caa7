"""The page of `placer reproduce all`: every table, plot and note in one file, with what failed or was skipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from experiments.outcome import Outcome
from experiments.registry import Paper, Result, Setting
from placer.report.html import Page, Picture, Section, Tile

FEW_ROWS = 32
"""Tables with at most this many rows are shown, longer ones are folded."""

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
