"""`placer run ARRIVALS`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import options

if TYPE_CHECKING:
    from placer.progress import Progress
    from placer.run import Comparison

Arrivals = Annotated[str, options.take_argument("ARRIVALS", "The trace: CSV, .csv.gz, or - for standard input.")]
Strategy = Annotated[
    list[str] | None,
    typer.Option(
        autocompletion=options.complete_strategy,
        help="A strategy; repeatable. By default all: monopolization, greedy, contention-aware, planned, optimal, "
        "and those of other packages. contention-aware:RULE selects a rule: look-ahead, best-fit, first-fit, "
        "worst-fit.",
    ),
]
Predictor = Annotated[list[str] | None, typer.Option(help="A predictor; repeatable. By default, all in the models.")]
Measure = Annotated[
    int | None,
    options.take_option(
        "Also measure co-locations of a plan in at most this many runs on the testbed, and place again; adds a row.",
        min=1,
    ),
]
Headroom = Annotated[
    float,
    options.take_option(
        "Plan for rates that are this much higher than those of the trace, in %.", min=0.0, max=1000.0, metavar="PCT"
    ),
]
ProductionSpec = Annotated[
    Path | None,
    options.take_option(
        "Instead, simulate production: replay the trace with the measurements and drift of this TOML file, and "
        "compare placement with and without feedback.",
        "--production",
    ),
]
Range = Annotated[
    int | None,
    options.take_option(
        "Also place this many traces, drawn from ARRIVALS, by the recommended strategy, and print the ranges of "
        "NICs and SLA violations.  [default: 3; 0 for more than 10,000 arrivals or 100 different workloads]",
        min=0,
    ),
]
PlanFile = Annotated[Path | None, typer.Option("--plan", help="Write the NIC of every instance, as CSV.")]
Format = Annotated[str, typer.Option(help="table, json or csv.")]
Certificate = Annotated[
    Path | None, options.take_option("Write a plan and the proof of its bound, for `placer verify`, as JSON.")
]
Of = Annotated[str, typer.Option(help="The plan of the certificate: optimal or planned.")]
Solver = Annotated[str, typer.Option(help="The solver of the optimum: cp-sat or highs.")]
TimeLimit = Annotated[
    float,
    typer.Option(
        min=0.1,
        help="Time limit of the optimum, in seconds. If it is reached, the best plan and its bound are printed.",
    ),
]


def command(
    context: typer.Context,
    arrivals: Arrivals,
    strategy: Strategy = None,
    predictor: Predictor = None,
    models: options.ModelsDir = None,
    testbed: options.TestbedSpec = None,
    fleet: options.Fleet = None,
    plan: PlanFile = None,
    certificate: Certificate = None,
    of: Of = "optimal",
    report: options.Report = None,
    plots: options.Plots = None,
    format: Format = "table",
    budget: options.Budget = None,
    risk: options.Risk = None,
    measure: Measure = None,
    range: Range = None,
    headroom: Headroom = 0.0,
    spare: options.SpareNics = 0,
    spare_domains: options.SpareDomains = 0,
    loads: options.Loads = None,
    production: ProductionSpec = None,
    time_limit: TimeLimit = 60.0,
    solver: Solver = "cp-sat",
    timeout: options.Timeout = 60.0,
    seed: options.Seed = 0,
    ignore_columns: options.IgnoreColumns = False,
    skip_empty_stays: options.SkipEmptyStays = False,
    quiet: options.Quiet = False,
) -> None:
    """Place a trace with every strategy; compare NICs and SLA violations with the proven optimum.

    Without --models, the recorded models of the simulated BlueField-2 are used, and plans are evaluated on it."""
    if production is not None:
        from placer.commands.run_production import command as simulate

        simulate(context, production)
        return
    from placer.inputs.catalogue import Cards
    from placer.progress import Progress
    from placer.report.text.plan import plans_csv
    from placer.report.text.run import RUN_FORMATS
    from placer.run import CERTIFIED_STRATEGIES, RunRequest, run
    from profiles import InputError
    from profiles.aside import write_files

    render = RUN_FORMATS[options.one_of("--format", format, RUN_FORMATS)]
    options.one_of("--of", of, CERTIFIED_STRATEGIES)
    if of != CERTIFIED_STRATEGIES[0] and certificate is None:
        raise InputError.of("--of", "needs --certificate")
    options.refuse_bad_budget(budget, risk)
    outputs = {"--plan": plan, "--certificate": certificate, "--report": report}
    for option, path in outputs.items():
        options.refuse_unwritable(option, path)
    options.refuse_unwritable_folder("--plots", plots)
    options.refuse_same_files(outputs, {"ARRIVALS": Path(arrivals), "--fleet": fleet, "--loads": loads})
    progress = Progress(quiet=quiet)
    request = RunRequest(
        arrivals=arrivals,
        strategies=tuple(strategy or ()),
        predictors=tuple(predictor or ()),
        cards=Cards(models, fleet, testbed, risk, timeout, budget),
        seed=seed,
        time_limit=time_limit,
        solver=solver,
        certificate=None if certificate is None else of,
        vary_budget=True,
        measure=measure,
        trace_options=options.trace_options(ignore_columns, skip_empty_stays, progress.say, loads),
        headroom_pct=headroom,
        spare=spare,
        spare_domains=spare_domains,
    )
    comparison = _with_plans_placed_again(run(request, progress), range, progress)
    text = render(comparison)
    files = {} if plan is None else {plan: plans_csv(comparison).encode()}
    if certificate is not None:
        files[certificate] = comparison.certificate(of).encode()
    if report is not None or plots is not None:
        from placer.report.html import page_files, page_of_run

        files |= page_files(page_of_run(comparison, arrivals), report, plots, made_by=options.command_line(context))
    write_files(files)
    typer.echo(text, nl=False)


def _with_plans_placed_again(comparison: Comparison, draws: int | None, progress: Progress) -> Comparison:
    """The comparison with what the recommended strategy does on similar traces, and on any number of NICs."""
    from placer.report.text.recommendation import asked_budget, choose_plan, rejects_on_limited_fleet, variation_of
    from placer.studies.placed_again import default_draws, place_again

    chosen = choose_plan(comparison)
    variation = variation_of(comparison, chosen)
    return place_again(
        comparison,
        (chosen if variation is None else variation.asked).plan.strategy,
        chosen.plan.predictor,
        asked_budget(comparison, chosen),
        rejects=rejects_on_limited_fleet(comparison, chosen),
        draws=default_draws(comparison.arrivals) if draws is None else draws,
        progress=progress,
    )
