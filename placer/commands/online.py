"""`placer online`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from placer.commands.options import (
    Budget,
    Fleet,
    ModelsDir,
    OnePredictor,
    Quiet,
    RecordedCard,
    Risk,
    RuleName,
    one_of,
    refuse_bad_budget,
    refuse_unwritable,
)

StateFile = Annotated[
    Path | None,
    typer.Option("--state", help="Keep the fleet in this SQLite file, and continue from it.", show_default=False),
]
Backup = Annotated[
    Path | None,
    typer.Option(
        help="Copy the state to this new file and exit; a running service may keep using it.", show_default=False
    ),
]
WhenFull = Annotated[str, typer.Option(help="What happens to an arrival that fits on no NIC: reject or queue.")]


def command(
    state: StateFile = None,
    backup: Backup = None,
    models: ModelsDir = None,
    predictor: OnePredictor = "tomur",
    testbed: RecordedCard = None,
    fleet: Fleet = None,
    rule: RuleName = "look-ahead",
    when_full: WhenFull = "reject",
    budget: Budget = None,
    risk: Risk = None,
    quiet: Quiet = False,
) -> None:
    """Place NFs online: read events from stdin, one JSON object per line, and answer each with a line on stdout.

    Events are arrive, depart, change, fail, drain, return, rebalance, measured and where. With --state, an event is
    answered after it is on disk. At the start, typical arrivals choose the risk that is expected to keep the budget.
    """
    from placer.feedback.learning import corrected
    from placer.inputs.catalogue import Cards
    from placer.inputs.online import open_online
    from placer.model.fleet import Fleet as Running
    from placer.online.engine import WHEN_FULL, Engine
    from placer.online.protocol import Reader
    from placer.online.store import State, back_up
    from placer.policy.rules import rule_of
    from placer.progress import Progress
    from placer.report.text.budget import chosen_risk
    from placer.service.jsonlines import serve
    from placer.strategies.online_risk import oracles_within_budget, typical_arrivals
    from profiles import InputError

    one_of("--when-full", when_full, WHEN_FULL)
    refuse_bad_budget(budget, risk)
    chosen, progress = rule_of(rule), Progress(quiet=quiet)
    refuse_unwritable("--state", state)
    if backup is not None:
        if state is None:
            raise InputError.of("--backup", "there is no state to copy", hint="name it: --state FILE")
        back_up(state, backup)
        return
    with ExitStack() as stack:
        cards = Cards(models, fleet, testbed, risk, budget_pct=budget)
        catalogue = open_online(cards, stack, progress.say, predictor)
        saved = stack.enter_context(State(state, catalogue.kinds, catalogue.check)) if state else None
        running, waiting = (saved.fleet, saved.waiting) if saved else (Running(catalogue.kinds), [])
        tenants = [*running.all_tenants(), *waiting]
        typical = typical_arrivals(catalogue, tenants)
        used, oracles = oracles_within_budget(catalogue, predictor, typical, chosen)
        progress.say(chosen_risk(catalogue, used, "arrivals like its tenants" if tenants else "typical arrivals"))
        expected = () if tenants else [one.tenant for one in typical]
        feedback, oracles = corrected(catalogue.kinds, oracles)
        feedback.restore(saved.readings if saved else ())
        engine = Engine(
            running, oracles, chosen, when_full=when_full, waiting=waiting, expected=expected,
            feedback=feedback, events=saved.events if saved else 0,
        )  # fmt: skip
        reader = Reader(catalogue.default_traffic, catalogue.check, engine.workload_of)
        serve(sys.stdin.buffer, sys.stdout, engine, reader, saved)
