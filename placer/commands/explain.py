"""`placer explain ARRIVALS [ID]`."""

from contextlib import ExitStack
from typing import Annotated

import typer

from placer.commands import options

Arrivals = Annotated[str, options.take_argument("ARRIVALS", "The trace: CSV, .csv.gz, or - for standard input.")]
Id = Annotated[
    str | None, typer.Argument(metavar="ID", help="The arrival to explain. Without ID, the causes of unused capacity.")
]
Every = Annotated[bool, typer.Option("--every", help="Explain every arrival, as JSON lines.")]
All = Annotated[bool, typer.Option("--all", help="List every NIC, not one line per verdict.")]
Format = Annotated[str, typer.Option(help="table or json.")]


def command(
    arrivals: Arrivals,
    id: Id = None,
    every: Every = False,
    all: All = False,
    models: options.ModelsDir = None,
    predictor: options.OnePredictor = "tomur",
    testbed: options.RecordedCard = None,
    fleet: options.Fleet = None,
    loads: options.Loads = None,
    rule: options.RuleName = "look-ahead",
    budget: options.Budget = None,
    risk: options.Risk = None,
    format: Format = "table",
    ignore_columns: options.IgnoreColumns = False,
    skip_empty_stays: options.SkipEmptyStays = False,
    quiet: options.Quiet = False,
) -> None:
    """Explain why an arrival was placed on its NIC: which NICs were feasible at that time, and why others were not.

    Without ID: the unused capacity by cause, at the time with the most NICs in use. NFs are placed like
    contention-aware in `placer run`: at the risk at which the trace is expected to stay within the budget, and at the
    peaks of their loads."""
    from placer.explain.candidates import explain
    from placer.explain.waste import waste_of
    from placer.inputs.arrivals import read_arrivals
    from placer.inputs.catalogue import Cards, open_online
    from placer.policy.rules import rule_of
    from placer.progress import Progress
    from placer.report.text.explanation import explanation_json, explanation_table, waste_json, waste_table
    from placer.report.text.table import describe_risk
    from placer.strategies.online_risk import oracles_within_budget

    options.one_of("--format", format, ("table", "json"))
    options.refuse_bad_budget(budget, risk)
    chosen, progress = rule_of(rule), Progress(quiet=quiet)
    with ExitStack() as stack:
        cards = Cards(models, fleet, testbed, risk, budget_pct=budget)
        catalogue = open_online(cards, stack, progress.say, predictor)
        reading = options.trace_options(ignore_columns, skip_empty_stays, progress.say, loads)
        trace = read_arrivals(arrivals, catalogue.default_traffic, catalogue.check, reading, kinds=catalogue.kinds)
        catalogue.refuse_without_loads(predictor, (arrival.workload for arrival in trace))
        used, oracles = oracles_within_budget(catalogue, predictor, trace, chosen)
        progress.say(describe_risk(catalogue, used, "this trace"))
        if id is None and not every:
            waste = waste_of(trace, catalogue.kinds, oracles, chosen)
            typer.echo(waste_json(waste) if format == "json" else waste_table(waste), nl=False)
            return
        for explanation in explain(trace, catalogue.kinds, oracles, chosen, id):
            as_json = every or format == "json"
            shown = explanation_json(explanation) if as_json else explanation_table(explanation, everything=all)
            typer.echo(shown, nl=False)
