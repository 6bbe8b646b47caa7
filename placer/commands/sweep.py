"""`placer sweep SPEC.toml --out DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands.options import Quiet, Timeout, refuse_unwritable_folder
from placer.commands.signals import ended_by_signals
from profiler.testbeds import known_testbeds

if TYPE_CHECKING:
    from placer.inputs.sweep import SweepFile
    from placer.progress import Progress
    from profiler.sweeps.measuring import MeasuredSweep

SpecFile = Annotated[Path, typer.Argument(metavar="SPEC.toml", help="The sweep: a TOML file.", show_default=False)]
Out = Annotated[Path, typer.Option(help="The folder for measurements, fits and the report.", show_default=False)]
TestbedSpec = Annotated[
    str | None,
    typer.Option("--testbed", help=f"In place of that of the file: one of {known_testbeds()}.", show_default=False),
]
ShowStatus = Annotated[
    bool, typer.Option("--status", help="Print what is done and how long the rest takes; run nothing.")
]


def command(
    spec: SpecFile,
    out: Out,
    testbed: TestbedSpec = None,
    timeout: Timeout = 60.0,
    status: ShowStatus = False,
    quiet: Quiet = False,
) -> None:
    """Vary one thing, measure a curve, and fit a formula to it. The same command resumes an interrupted sweep."""
    from placer.inputs.sweep import read_sweep
    from placer.progress import Progress

    read = read_sweep(spec, testbed)
    if status:
        from profiler.profiling import journal_of
        from profiler.status import as_text, read_status

        typer.echo(as_text(read_status(journal_of(out))), nl=False)
        return
    refuse_unwritable_folder("--out", out)
    progress = Progress(quiet=quiet)
    measured = _measured(read, out, timeout, progress)
    typer.echo(_write(read, measured, out, progress), nl=False)


def _measured(read: SweepFile, out: Path, timeout: float, progress: Progress) -> MeasuredSweep:
    from profiler.retry import RetryingTestbed
    from profiler.sweeps.loads import faults_on_testbed
    from profiler.sweeps.machine import machine_facts
    from profiler.sweeps.measuring import measure_sweep
    from profiler.testbeds import open_testbed

    name = read.spec.testbed or ""
    with (
        ended_by_signals(),
        RetryingTestbed(lambda: open_testbed(name, timeout=timeout), progress.say) as card,
        progress.task("measuring") as advance,
    ):
        read.refuse(faults_on_testbed(read.spec, card.describe()))
        facts = machine_facts(name)
        return measure_sweep(card, out, read.spec, machine=facts, progress=advance, notify=progress.say)


def _write(read: SweepFile, measured: MeasuredSweep, out: Path, progress: Progress) -> str:
    """Fit the curves and write the folder; the summary for people."""
    from placer.report.html import page_files
    from placer.report.html.fit import fit_page
    from placer.report.text.sweep import as_table
    from placer.sweeps.fits import curves_of, fit_curves
    from predictor.fitting.model_file import models_text
    from profiler.sweeps.table import table_of
    from profiles.aside import files_aside
    from profiles.profile import write_json
    from profiles.table import write_table

    table = table_of(measured, read.spec)
    curves = curves_of(table, measured.keys, read.x, read.y)
    if not curves:
        progress.say(f"not fitted: a curve needs three different values of {read.x}")
    with progress.waiting("fitting"):
        fits = fit_curves(curves, read.select)
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
