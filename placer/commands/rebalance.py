"""`placer rebalance`."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from placer.commands import options

StateFile = Annotated[Path, options.take_option("The fleet, as kept by `placer online`.", "--state")]
Budget = Annotated[int, typer.Option(min=0, help="Largest number of moves.")]
SlaBudget = Annotated[
    float | None,
    options.take_option(
        "SLA violations to accept, in % of the instances: safety margins are chosen so that the expected "
        "violations stay below.  [default: 2]",
        "--sla-budget",
    ),
]
MoveCost = Annotated[float, typer.Option(min=0.0, help="What a move costs, in units of NIC cost.")]
RiskWorth = Annotated[
    float, typer.Option(min=0.0, help="What ending an expected SLA violation is worth, in units of NIC cost.")
]
Apply = Annotated[bool, typer.Option("--apply", help="Make the moves; without --apply, they are only printed.")]


def command(
    state: StateFile,
    budget: Budget = 20,
    move_cost: MoveCost = 0.05,
    risk_worth: RiskWorth = 1.0,
    apply: Apply = False,
    models: options.ModelsDir = None,
    predictor: options.OnePredictor = "tomur",
    testbed: options.RecordedCard = None,
    fleet: options.Fleet = None,
    rule: options.RuleName = "look-ahead",
    sla_budget: SlaBudget = None,
    risk: options.Risk = None,
    quiet: options.Quiet = False,
) -> None:
    """Find moves of tenants that end expected SLA violations or empty NICs, and print them as one JSON object.

    Every move gains more than it costs, and every SLA that was met stays met after each move."""
    from placer.fleet.engine import Engine
    from placer.fleet.event_lines import decision_line
    from placer.fleet.events import Rebalance
    from placer.fleet.state.store import State
    from placer.inputs.catalogue import Cards, open_online
    from placer.policy.rules import rule_of
    from placer.progress import Progress
    from placer.report.text.table import describe_risk
    from placer.strategies.online_risk import oracles_within_budget, typical_arrivals
    from profiles import InputError

    options.refuse_bad_budget(sla_budget, risk, "--sla-budget")
    chosen, progress = rule_of(rule), Progress(quiet=quiet)
    if not state.is_file():
        raise InputError.of("--state", f"{state} does not exist", hint="`placer online --state FILE` creates it")
    with ExitStack() as stack:
        cards = Cards(models, fleet, testbed, risk, budget_pct=sla_budget)
        catalogue = open_online(cards, stack, progress.say, predictor)
        saved = stack.enter_context(State(state, catalogue.kinds, catalogue.check))
        tenants = [*saved.fleet.all_tenants(), *saved.waiting]
        catalogue.refuse_without_loads(predictor, (tenant.workload for tenant in tenants))
        used, oracles = oracles_within_budget(catalogue, predictor, typical_arrivals(catalogue, tenants), chosen)
        progress.say(describe_risk(catalogue, used, "arrivals like its tenants" if tenants else "typical arrivals"))
        engine = Engine(saved.fleet, oracles, chosen, waiting=saved.waiting)
        event = Rebalance(budget, move_cost, risk_worth)
        decision = engine.handle(event)
        if apply:
            saved.record(event, decision, saved.fleet)
            saved.commit()
        typer.echo(decision_line(event, decision))
