"""`placer size ARRIVALS`."""

from pathlib import Path
from typing import Annotated

import typer

from placer.commands import options
from profiles import InputError
from profiles.text import number_of

LARGEST_FACTOR = 1000.0
MOST_DRAWS = 100_000
GROWTHS = {"count": "arrivals", "load": "load"}  # the axis of growth, by its name in the option

Arrivals = Annotated[Path, options.take_argument("ARRIVALS", "Today's trace: CSV or .csv.gz.")]
GrowthOf = Annotated[
    str, typer.Option("--growth-of", help="What grows: count, the number of arrivals; or load, their offered rates.")
]
NextYear = Annotated[float, typer.Option(help="Next year's arrivals or load, as a factor of today's.")]
Growth = Annotated[str, typer.Option(help="Arrivals or load of the growth curve, as factors of today's.")]
Slas = Annotated[str, options.take_option("Factors of the allowed throughput drop; below 1 is stricter.", "--sla")]
Flows = Annotated[str, options.take_option("Factors of the flow counts.")]
PacketSize = Annotated[str, options.take_option("Factors of the packet sizes.")]
Budget = Annotated[float, typer.Option(help="SLA violations to accept, in % of the instances.")]
Strategy = Annotated[
    list[str] | None,
    typer.Option(
        autocompletion=options.complete_strategy, help="A strategy; repeatable. By default greedy and contention-aware."
    ),
]
Predictor = Annotated[list[str] | None, typer.Option(help="A predictor; repeatable. By default tomur.")]
Budgets = Annotated[
    str,
    options.take_option(
        "Budgets for which contention-aware places, at most --budget. By default --budget, and, if its plan "
        "exceeds it, a half, a quarter and an eighth of it."
    ),
]
Risks = Annotated[str | None, typer.Option("--risk", hidden=True)]
Fleets = Annotated[list[Path] | None, options.take_option("A fleet file to compare; repeatable.", "--fleet")]
Draws = Annotated[int, typer.Option(help="Traces drawn per point.")]
Format = Annotated[str, typer.Option(help="table, json or csv.")]


def command(
    context: typer.Context,
    arrivals: Arrivals,
    growth_of: GrowthOf = "count",
    next_year: NextYear = 1.5,
    growth: Growth = "1,2,4,7,10",
    sla: Slas = "",
    flows: Flows = "",
    packet_size: PacketSize = "",
    budget: Budget = 2.0,
    strategy: Strategy = None,
    predictor: Predictor = None,
    budgets: Budgets = "",
    risk: Risks = None,
    fleet: Fleets = None,
    spare: options.SpareNics = 0,
    spare_domains: options.SpareDomains = 0,
    draws: Draws = 5,
    models: options.ModelsDir = None,
    testbed: options.TestbedSpec = None,
    out: options.ResultsFolder = None,
    jobs: options.Jobs = -1,
    format: Format = "table",
    report: options.Report = None,
    plots: options.Plots = None,
    seed: options.Seed = 0,
    loads: options.Loads = None,
    ignore_columns: options.IgnoreColumns = False,
    skip_empty_stays: options.SkipEmptyStays = False,
    quiet: options.Quiet = False,
) -> None:
    """Recommend how many NICs to buy for next year, depending on growth, SLAs, traffic and NIC model.

    The first line is the recommendation. Next year's arrivals are drawn from today's; 500 arrivals take a minute on two
    cores. More --draws give more precise ranges and take longer. After an interruption, the same command resumes."""
    from placer.progress import Progress
    from placer.report.text.sizing import SIZING_FORMATS
    from placer.studies.execute import RESULTS_FILE
    from placer.studies.sizing import Sizing, size
    from profiles.aside import write_files

    axis = GROWTHS[options.one_of("--growth-of", growth_of, GROWTHS)]
    options.refuse_bad_budget(budget)
    if risk is not None:
        hint = "--budgets 2,1,0.5 lists budgets that contention-aware is asked to keep"
        raise InputError.of("--risk", "is chosen by the budget", hint=hint)
    render = SIZING_FORMATS[options.one_of("--format", format, SIZING_FORMATS)]
    folder = options.results_folder(out, arrivals)
    options.refuse_unwritable("--out", folder / RESULTS_FILE)
    options.refuse_unwritable("--report", report)
    options.refuse_unwritable_folder("--plots", plots)
    progress = Progress(quiet=quiet)
    sizing = Sizing(
        arrivals=str(arrivals),
        growth_of=axis,
        next_year=_within("--next-year", next_year, 0.01, LARGEST_FACTOR),
        growth=_factors("--growth", growth),
        sla=_factors("--sla", sla),
        flows=_factors("--flows", flows),
        packet_size=_factors("--packet-size", packet_size),
        budget_pct=budget,
        strategies=tuple(strategy or Sizing.strategies),
        predictors=tuple(predictor or Sizing.predictors),
        budgets=_factors("--budgets", budgets, most=budget),
        fleets=tuple(fleet or ()),
        draws=int(_within("--draws", draws, 1, MOST_DRAWS)),
        seed=seed,
        models=models,
        testbed=testbed,
        trace_options=options.trace_options(ignore_columns, skip_empty_stays, progress.say, loads),
        spare=spare,
        spare_domains=spare_domains,
    )
    results = size(sizing, folder, progress, jobs=jobs)
    progress.say(f"written: {folder / RESULTS_FILE}")
    text = render(results, sizing)
    if report is not None or plots is not None:
        from placer.report.html import page_files
        from placer.report.html.study import page_of_sizing

        write_files(page_files(page_of_sizing(results, sizing), report, plots, made_by=options.command_line(context)))
    typer.echo(text, nl=False)


def _within(option: str, value: float, least: float, most: float) -> float:
    """The value, if it lies in the range; else InputError."""
    if not least <= value <= most:
        raise InputError.of(option, f"{value:g} is not between {least:g} and {most:g}")
    return value


def _factors(option: str, text: str, most: float = LARGEST_FACTOR) -> tuple[float, ...]:
    """The numbers of a list with commas; InputError when one is not above 0 or too large."""
    factors = tuple(number_of(part.strip()) or 0.0 for part in text.split(",") if part.strip())
    if any(not 0 < factor <= most for factor in factors):
        raise InputError.of(
            option, f"'{text}' is not a list of numbers above 0 and at most {most:g}", hint="as in 0.5,1,2"
        )
    return factors
