"""`placer run ARRIVALS --production FILE`."""

from pathlib import Path
from typing import Any

import typer

from placer.commands import options
from profiles import InputError

NOT_PLAYED = ("plan", "certificate", "of", "measure", "solver", "time_limit", "spare", "spare_domains")
"""Options of a comparison with the optimum, which looks at the whole trace at once."""

CONTENTION_AWARE = "contention-aware"


def command(context: typer.Context, production: Path) -> None:
    """Simulate production with the options of `placer run`."""
    from placer.fleet.simulated import ProductionRequest, simulate
    from placer.inputs.catalogue import Cards
    from placer.inputs.production import read_production
    from placer.progress import Progress
    from placer.report.text.production import PRODUCTION_FORMATS

    given: dict[str, Any] = context.params
    _refuse_options(context)
    render = PRODUCTION_FORMATS[options.one_of("--format", given["format"], PRODUCTION_FORMATS)]
    options.refuse_bad_budget(given["budget"], given["risk"])
    arrivals, report, plots = given["arrivals"], given["report"], given["plots"]
    options.refuse_unwritable("--report", report)
    options.refuse_unwritable_folder("--plots", plots)
    read = {"ARRIVALS": Path(arrivals), "--fleet": given["fleet"], "--production": production}
    options.refuse_same_files({"--report": report}, read)
    cards = Cards(given["models"], given["fleet"], given["testbed"], given["risk"], given["timeout"], given["budget"])
    progress = Progress(quiet=given["quiet"])
    request = ProductionRequest(
        arrivals=arrivals,
        file=read_production(production),
        cards=cards,
        predictor=_predictor(given["predictor"]),
        rule=_rule(given["strategy"]),
        seed=given["seed"] if _is_typed(context, "seed") else None,
        trace_options=options.trace_options(given["ignore_columns"], given["skip_empty_stays"], progress.say),
    )
    found = simulate(request, progress)
    text = render(found)
    if report is not None or plots is not None:
        from placer.report.html import page_files
        from placer.report.html.production import page_of_production
        from profiles.aside import write_files

        page = page_of_production(found, arrivals)
        write_files(page_files(page, report, plots, made_by=options.command_line(context)))
    typer.echo(text, nl=False)


def _refuse_options(context: typer.Context) -> None:
    for name in NOT_PLAYED:
        if _is_typed(context, name):
            option = f"--{name.replace('_', '-')}"
            raise InputError.of(option, "has no effect with --production, which has no optimum", hint="leave it out")
    if context.params["loads"] is not None:
        raise InputError.of("--loads", "is not understood with --production", hint="leave it out")


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _predictor(names: list[str] | None) -> str:
    from placer.model.catalogue import DEFAULT_PREDICTOR

    if names and len(names) > 1:
        raise InputError.of("--predictor", "is given more than once: production is simulated with one")
    return names[0] if names else DEFAULT_PREDICTOR


def _rule(names: list[str] | None) -> Any:
    """The rule of `contention-aware:RULE`."""
    from placer.policy.rules import LOOK_AHEAD, rule_of
    from placer.strategies import VARIANT

    if not names:
        return LOOK_AHEAD
    name, _, rule = names[0].partition(VARIANT)
    if len(names) > 1 or name != CONTENTION_AWARE:
        hint = f"production is simulated with {CONTENTION_AWARE}{VARIANT}RULE, as placer online places"
        raise InputError.of("--strategy", "is not one strategy with feedback", hint=hint)
    return rule_of(rule) if rule else LOOK_AHEAD
