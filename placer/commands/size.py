"""`placer size ARRIVALS`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placer.commands.options import (
    Cluster,
    Jobs,
    ModelsDir,
    Parallel,
    Plots,
    Quiet,
    Report,
    Seed,
    TestbedSpec,
    command_line,
    one_of,
    refuse_unwritable,
)
from profiles import InputError

Arrivals = Annotated[Path, typer.Argument(help="The trace of today: CSV or .csv.gz.", show_default=False)]
NextYear = Annotated[float, typer.Option(min=0.01, help="The arrivals to buy for, times today's.")]
Growth = Annotated[str, typer.Option(help="Factors of the curve over arrivals.")]
Slas = Annotated[
    str, typer.Option("--sla", help="Factors of the allowed drop; below 1 is tighter.", show_default=False)
]
Flows = Annotated[str, typer.Option(help="Factors of the flow counts.", show_default=False)]
PacketSize = Annotated[str, typer.Option(help="Factors of the packet sizes.", show_default=False)]
Budget = Annotated[float, typer.Option(min=0, max=100, help="SLAs that may break, of 100.")]
Strategy = Annotated[list[str] | None, typer.Option(help="Repeatable; by default greedy and contention-aware.")]
Predictor = Annotated[list[str] | None, typer.Option(help="Repeatable; by default tomur.")]
Risks = Annotated[str, typer.Option("--risk", help="Risks among which to choose.")]
Fleets = Annotated[
    list[Path] | None, typer.Option("--fleet", help="Repeatable: fleets among which to choose.", show_default=False)
]
Draws = Annotated[int, typer.Option(min=1, help="Traces drawn for every point.")]
Out = Annotated[
    Path | None, typer.Option(help="The folder for results; by default results/size-ARRIVALS.", show_default=False)
]
Format = Annotated[str, typer.Option(help="table, json or csv.")]


def command(
    context: typer.Context,
    arrivals: Arrivals,
    next_year: NextYear = 1.5,
    growth: Growth = "1,2,4,7,10",
    sla: Slas = "",
    flows: Flows = "",
    packet_size: PacketSize = "",
    budget: Budget = 2.0,
    strategy: Strategy = None,
    predictor: Predictor = None,
    risk: Risks = "0.05,0.25,0.5",
    fleet: Fleets = None,
    draws: Draws = 5,
    models: ModelsDir = None,
    testbed: TestbedSpec = None,
    out: Out = None,
    jobs: Jobs = -1,
    parallel: Parallel = None,
    cluster: Cluster = None,
    format: Format = "table",
    report: Report = None,
    plots: Plots = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """How many more NICs to buy for next year, and how that hangs on growth, SLAs, traffic and the NIC.

    The first line is the answer. Next year's arrivals are drawn from today's; 500 take a minute on two cores. More
    --draws tell the spread better and take longer. Interrupted, the same command goes on.
    """
    from placer.progress import Progress
    from placer.report.text.sizing import FORMATS
    from placer.studies import locally, on_cluster
    from placer.studies.execute import RESULTS
    from placer.studies.sizing import Sizing, size

    render = FORMATS[one_of("--format", format, FORMATS)]
    folder = out or Path("results") / f"size-{arrivals.stem}"
    refuse_unwritable("--out", folder / RESULTS)
    refuse_unwritable("--report", report)
    sizing = Sizing(
        arrivals=str(arrivals),
        next_year=next_year,
        growth=_factors("--growth", growth),
        sla=_factors("--sla", sla),
        flows=_factors("--flows", flows),
        packet_size=_factors("--packet-size", packet_size),
        budget_pct=budget,
        strategies=tuple(strategy or Sizing.strategies),
        predictors=tuple(predictor or Sizing.predictors),
        risks=_factors("--risk", risk, most=0.5),
        fleets=tuple(fleet or ()),
        draws=draws,
        seed=seed,
        models=models,
        testbed=testbed,
    )
    runner = on_cluster(parallel, cluster) if parallel else locally(jobs)
    progress = Progress(quiet=quiet)
    results = size(sizing, folder, progress, runner=runner)
    progress.say(f"written: {folder / RESULTS}")
    if report is not None or plots is not None:
        from placer.report.html import deliver
        from placer.report.html.sizing import page_of_sizing

        deliver(page_of_sizing(results, sizing), report, plots, made_by=command_line(context))
    typer.echo(render(results, sizing), nl=False)


def _factors(option: str, text: str, most: float = 1000.0) -> tuple[float, ...]:
    try:
        factors = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        factors = (0.0,)
    if any(not 0 < factor <= most for factor in factors):
        raise InputError.of(option, f"'{text}' are not numbers above 0, up to {most:g}", hint="as in 0.5,1,2")
    return factors
