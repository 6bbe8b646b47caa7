"""`placer sweep SPEC.toml --out DIR`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd
import typer

from placer.commands.options import Quiet, Timeout, measuring, refuse_unwritable_folder, take_argument, take_option
from placer.report.text.table import text_table
from predictor.fitting.fit import fit
from predictor.fitting.fitted_model import CurveBreak, FittedModel
from predictor.fitting.points import MeasuredCurve
from profiler.testbeds import list_testbeds

if TYPE_CHECKING:
    from placer.inputs.sweep import SweepFile
    from placer.progress import Progress
    from profiler.sweeps.measuring import MeasuredSweep


SpecFile = Annotated[Path, take_argument("SPEC.toml", "The sweep: a TOML file.")]
Out = Annotated[Path, take_option("The folder for measurements, fits and the report.")]
TestbedSpec = Annotated[
    str | None, take_option(f"Replaces the testbed of the file: one of {list_testbeds()}.", "--testbed")
]
ShowStatus = Annotated[bool, typer.Option("--status", help="Print the progress and the remaining time; run nothing.")]


def command(
    spec: SpecFile,
    out: Out,
    testbed: TestbedSpec = None,
    timeout: Timeout = 60.0,
    status: ShowStatus = False,
    quiet: Quiet = False,
) -> None:
    """Vary one variable, measure a curve, and fit a formula to it. The same command resumes an interrupted sweep."""
    from placer.inputs.sweep import read_sweep
    from placer.progress import Progress

    read = read_sweep(spec, testbed)
    if status:
        from profiler.journal.status import as_text, read_status
        from profiler.profiling import journal_of

        typer.echo(as_text(read_status(journal_of(out))), nl=False)
        return
    refuse_unwritable_folder("--out", out)
    progress = Progress(quiet=quiet)
    typer.echo(_write(read, _measure(read, out, timeout, progress), out, progress), nl=False)


def _measure(read: SweepFile, out: Path, timeout: float, progress: Progress) -> MeasuredSweep:
    from profiler.sweeps.claim import machine_facts
    from profiler.sweeps.loads import faults_on_testbed
    from profiler.sweeps.measuring import measure_sweep

    name = read.spec.testbed or ""
    with measuring(name, timeout, progress, "measuring") as (card, advance):
        read.refuse(faults_on_testbed(read.spec, card.describe()))
        facts = machine_facts(name)
        return measure_sweep(card, out, read.spec, machine=facts, progress=advance, notify=progress.say)


def _write(read: SweepFile, measured: MeasuredSweep, out: Path, progress: Progress) -> str:
    """Fit the curves and write the folder; the summary for people."""
    from placer.report.html import page_files
    from placer.report.html.fit import fit_page
    from placer.report.text.fit import model_name
    from predictor.fitting.model_file import models_text
    from profiler.sweeps.measuring import table_of
    from profiles.aside import files_aside
    from profiles.profile import write_json
    from profiles.table import write_table

    table = table_of(measured, read.spec)
    curves = curves_of(table, measured.keys, read.x, read.y)
    if not curves:
        progress.say(f"not fitted: a curve needs three different values of {read.x}")
    with progress.waiting("fitting"):
        fits = fit_curves(curves, read.select)
    for model in fits:
        for note in model.notes:
            progress.say(f"{model_name(model)}: {note}")
    with files_aside(out) as aside:
        write_table(table, aside / "measurements.csv")
        write_json(measured.as_json(read.spec.testbed or ""), aside / "machine.json")
        (aside / "spec.toml").write_text(read.text, encoding="utf-8")
        for metric in read.y:
            if of_metric := [fit for fit in fits if fit.y == metric]:
                name = "fits.json" if metric == read.y[0] else f"fits-{metric}.json"
                (aside / name).write_text(models_text(of_metric), encoding="utf-8")
        if fits:
            made_by = "placer sweep spec.toml --out DIR"
            page = fit_page(fits, curves, made_by)
            for path, content in page_files(page, aside / "report.html", None, made_by=made_by).items():
                path.write_bytes(content)
    progress.say(f"written: {out}")
    return as_table(fits) if fits else ""


# The curves of a sweep, and a fitted model of each.


FEWEST_POINTS = 3
"""Different x of a curve that is fitted."""


def curves_of(table: pd.DataFrame, keys: Sequence[str], x: str, y: Sequence[str]) -> list[MeasuredCurve]:
    """Each metric of `y` over the varied key `x`, at each setting of the other varied keys. A curve with fewer than
    three different x is left out. `table`: `measurements.csv`. `keys`: the varied keys."""
    return [curve for metric in y for curve in _of_metric(table, [key for key in keys if key != x], x, metric)]


def _of_metric(table: pd.DataFrame, others: Sequence[str], x: str, y: str) -> Iterator[MeasuredCurve]:
    settings = table[list(others)].drop_duplicates().to_dict("records") if others else [{}]
    for setting in settings:
        rows = table
        for key, value in setting.items():
            rows = rows[rows[key] == value]
        if rows[x].nunique() >= FEWEST_POINTS:
            values = {str(key): float(value) for key, value in setting.items()}
            yield MeasuredCurve(x, y, np.array(rows[x], dtype=float), np.array(rows[y], dtype=float), values)


def fit_curves(curves: Sequence[MeasuredCurve], select: str) -> list[FittedModel]:
    """A model of each curve. Their `seconds` are 0, so that the same measurements give the same bytes."""
    return [replace(fit(curve, select=select), seconds=0.0) for curve in curves]


# The fitted models of a sweep as a table for people.


FIT_HEADINGS = ("curve", "segments", "breakpoints (90 % interval)", "error", "left out", "noise")


def as_table(fits: Sequence[FittedModel]) -> str:
    """A row per model: its segments, where they meet, and its errors (sMAPE) beside the noise."""
    return text_table(FIT_HEADINGS, map(_row, fits), words=3)


def _row(model: FittedModel) -> list[str]:
    setting = "".join(f", {key} {value:g}" for key, value in model.setting.items())
    return [
        f"{model.y} over {model.x}{setting}",
        ", ".join(segment.family for segment in model.segments),
        "; ".join(map(_place, model.breakpoints)) or "none",
        *map(_percent, (model.smape_pct, model.left_out_smape_pct, model.noise_pct)),
    ]


def _place(one: CurveBreak) -> str:
    at, low, high = (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" for value in (one.at, one.low, one.high))
    return f"{at} [{low}, {high}]"


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} %"
