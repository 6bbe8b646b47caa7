"""`placer online`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from placer.model.catalogue import Catalogue
    from placer.progress import Progress

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
Retrain = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PROFILE",
        help="Retrain the models with what is measured, from this profile of the NIC model; repeatable, one per model. "
        "A retrained version decides once it has proved better. Versions are kept beside the state.",
        show_default=False,
    ),
]
Repair = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Move at most N instances per measurement that were measured below their SLA twice in their co-location.",
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
    retrain: Retrain = None,
    repair: Repair = 0,
    budget: Budget = None,
    risk: Risk = None,
    quiet: Quiet = False,
) -> None:
    """Place NFs online: read events from stdin, one JSON object per line, and answer each with a line on stdout.

    Events are arrive, depart, change, fail, drain, return, rebalance, measured and where. With --state, an event is
    answered after it is on disk. At the start, typical arrivals choose the risk that is expected to keep the budget; a
    state keeps it until another budget is given.
    """
    from placer.inputs.catalogue import Cards
    from placer.inputs.online import open_online
    from placer.online.engine import WHEN_FULL
    from placer.online.protocol import Reader
    from placer.online.store import State, back_up
    from placer.policy.rules import rule_of
    from placer.progress import Progress
    from placer.service.jsonlines import serve
    from placer.service.opening import OnlineSettings, open_engine
    from profiles import InputError

    one_of("--when-full", when_full, WHEN_FULL)
    refuse_bad_budget(budget, risk)
    settings, progress = (
        OnlineSettings(predictor, rule_of(rule), when_full, budget, risk, repair),
        Progress(quiet=quiet),
    )
    refuse_unwritable("--state", state)
    if backup is not None:
        if state is None:
            raise InputError.of("--backup", "there is no state to copy", hint="name it: --state FILE")
        back_up(state, backup)
        return
    if retrain and state is None:
        raise InputError.of("--retrain", "there is no state to keep versions beside", hint="name it: --state FILE")
    with ExitStack() as stack:
        cards = Cards(models, fleet, testbed, risk, budget_pct=budget)
        catalogue = open_online(cards, stack, progress.say, predictor)
        saved = stack.enter_context(State(state, catalogue.kinds, catalogue.check)) if state else None
        said = partial(announce, catalogue, progress)
        engine = open_engine(catalogue, settings, saved, retrain or (), stack, progress, said)
        reader = Reader(catalogue.default_traffic, catalogue.check, engine.workload_of)
        serve(sys.stdin.buffer, sys.stdout, engine, reader, saved)


def announce(catalogue: Catalogue, progress: Progress, risk: float | None, arrivals: str) -> None:
    """Say the risk that was chosen, and for which arrivals."""
    from placer.report.text.budget import chosen_risk

    progress.say(chosen_risk(catalogue, risk, arrivals))
