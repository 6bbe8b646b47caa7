"""`placer rebalance`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from placer.commands.options import Fleet, ModelsDir, OnePredictor, Quiet, Risk, RuleName

StateFile = Annotated[Path, typer.Option("--state", help="The fleet, as kept by `placer online`.", show_default=False)]
Budget = Annotated[int, typer.Option(min=0, help="Moves, at most.")]
MoveCost = Annotated[float, typer.Option(min=0.0, help="What a move costs, in units of NIC cost.")]
RiskWorth = Annotated[float, typer.Option(min=0.0, help="What it is worth that a tenant no longer misses its SLA.")]
Apply = Annotated[bool, typer.Option("--apply", help="Make the moves; without it they are only told.")]


def command(
    state: StateFile,
    budget: Budget = 20,
    move_cost: MoveCost = 0.05,
    risk_worth: RiskWorth = 1.0,
    apply: Apply = False,
    models: ModelsDir = None,
    predictor: OnePredictor = "tomur",
    fleet: Fleet = None,
    rule: RuleName = "look-ahead",
    risk: Risk = None,
    quiet: Quiet = False,
) -> None:
    """Put a fleet in better order: fewer SLAs missed, fewer NICs. One JSON object, as the event of `placer online`.

    Every move stands on its own, and none is made that is not worth its cost.
    """
    from placer.inputs.catalogue import Cards
    from placer.inputs.online import open_online
    from placer.online.engine import Engine
    from placer.online.events import Rebalance
    from placer.online.protocol import answer_line
    from placer.online.store import State
    from placer.policy.rules import rule_of
    from placer.progress import Progress
    from profiles import InputError

    chosen = rule_of(rule)
    if not state.is_file():
        raise InputError.of("--state", f"{state} is not there", hint="`placer online --state` makes it")
    with ExitStack() as stack:
        cards = Cards(models=models, fleet=fleet, risk=risk)
        catalogue, oracles = open_online(cards, stack, Progress(quiet=quiet).say, predictor)
        kept = State(state, catalogue.kinds)
        stack.callback(kept.close)
        running, waiting = kept.fleet()
        engine = Engine(running, oracles, chosen, waiting=waiting)
        event = Rebalance(budget, move_cost, risk_worth)
        answer = engine.handle(event)
        if apply:
            kept.record(event, answer, running)
            kept.commit()
        typer.echo(answer_line(event, answer))
