"""The page of `placer reproduce all`: every table, figure and note in one file, what failed or was skipped included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from experiments.outcome import Outcome
from experiments.registry import Result, Setting
from placer.report.html import Page, Picture, Section, Tile

FEW_ROWS = 32
"""Tables up to this are in sight, longer ones on demand."""

MARKS = (
    "The column worse names what is worse here than published, at the published decimal, of Tomur and of its baseline "
    "alike; differs marks an effect that is not the same."
)


def page_of_outcomes(outcomes: Sequence[Outcome], setting: Setting, out: Path) -> Page:
    """What became of every experiment, on a page; plots are those in the folder `out`."""
    ran = [one for one in outcomes if one.result]
    rows, marked = sum(len(one.result.table) for one in ran if one.result), sum(one.marked for one in outcomes)
    share = "All runs" if setting.scale == 1 else f"{setting.scale:g} of the full number of runs"
    tiles = [Tile(f"{len(ran):,}", "experiments ran"), Tile(f"{marked:,}", f"of {rows:,} rows worse or different")]
    for status in ("skipped", "failed"):
        number = sum(one.status == status for one in outcomes)
        tiles += [Tile(f"{number:,}", f"experiments {status}")] if number else []
    return Page(
        title="Tomur, repeated: tables and figures",
        summary=(_decision(outcomes, rows, marked), MARKS, f"{share}, seed {setting.seed}."),
        tiles=tuple(tiles),
        sections=(_overview(outcomes), *(_section(one, out) for one in outcomes)),
        made_by=f"placer reproduce all --scale {setting.scale:g} --seed {setting.seed}",
    )


def _decision(outcomes: Sequence[Outcome], rows: int, marked: int) -> str:
    ran = sum(one.status == "ran" for one in outcomes)
    told = f"{ran} of {len(outcomes)} experiments ran; {rows - marked:,} of {rows:,} rows are as good as published, "
    return told + "equal in effect, or without a published number."


def _overview(outcomes: Sequence[Outcome]) -> Section:
    table = pd.DataFrame(
        {
            "experiment": one.experiment.name,
            "what": one.experiment.title,
            "status": one.status,
            "rows": len(one.result.table) if one.result else 0,
            "worse or different": one.marked,
        }
        for one in outcomes
    )
    return Section("overview", "All experiments", "In the order of the paper.", table=table, in_sight=True)


def _section(one: Outcome, out: Path) -> Section:
    name, result = one.experiment.name, one.result
    if result is None:
        told = f"{one.experiment.title}. {one.status.capitalize()}: {one.reason}"
        return Section(name, name, told)
    picture = Picture(name, f"The plot of {name}; the table holds its numbers.", (out / f"{name}.svg").read_bytes())
    return Section(
        name,
        name,
        f"{one.experiment.title}.",
        (picture,),
        result.table.rename(columns=lambda column: str(column).replace("_pct", ", %").replace("_", " ")),
        in_sight=len(result.table) <= FEW_ROWS,
        notes=tuple(notes_of(result)),
    )


def notes_of(result: Result) -> Iterator[str]:
    """What ran where, and what the reader of the table should know."""
    yield from (f"Ran on {where}" for where in result.ran_on)
    for note in result.notes:
        column = "_" in note.partition(" ")[0]
        yield note if column else f"{note[0].upper()}{note[1:]}"
