"""`placer feedback --state FILE`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands.options import Fleet, ModelsDir, OnePredictor, Quiet, RecordedCard, one_of
from profiles import InputError

if TYPE_CHECKING:
    from placer.inputs.catalogue import Cards
    from placer.online.looking import Look

StateFile = Annotated[
    str,
    typer.Option(
        "--state",
        metavar="FILE|postgresql://...",
        help="The fleet, as kept by `placer online` or `placer serve`.",
        show_default=False,
    ),
]
Freeze = Annotated[
    bool | None,
    typer.Option("--freeze/--unfreeze", help="Keep the models as they are, or no longer.", show_default=False),
]
RollBack = Annotated[
    int | None, typer.Option("--rollback", metavar="N", min=1, help="Decide by version N again.", show_default=False)
]
Export = Annotated[
    Path | None,
    typer.Option(
        metavar="PROFILE",
        help="Write a profile with all that was measured (co-runs.csv), for `placer train`; one that is there is "
        "replaced.",
        show_default=False,
    ),
]
Base = Annotated[
    Path | None,
    typer.Option(
        "--profile",
        help="For --export: the profile that the measurements are added to. By default PROFILE itself, where it is "
        "there, else that of the recorded card.",
        show_default=False,
    ),
]
Format = Annotated[str, typer.Option(help="table or json.")]


def command(
    state: StateFile,
    freeze: Freeze = None,
    rollback: RollBack = None,
    export: Export = None,
    profile: Base = None,
    format: Format = "table",
    models: ModelsDir = None,
    predictor: OnePredictor = "tomur",
    testbed: RecordedCard = None,
    fleet: Fleet = None,
    quiet: Quiet = False,
) -> None:
    """Show what a service has learnt from measurements; freeze its models, go back to one, or export a profile.

    A service may be using the state. What is asked for takes effect with its next measurement.
    """
    from placer.inputs.catalogue import Cards
    from placer.online.feedback_summary import FeedbackSummary
    from placer.online.looking import looking
    from placer.report.text.feedback import feedback_table

    one_of("--format", format, ("table", "json"))
    if sum((freeze is not None, rollback is not None, export is not None)) > 1:
        raise InputError.of("--freeze, --rollback, --export", "only one of them at a time")
    if profile is not None and export is None:
        raise InputError.of("--profile", "has no effect without --export PROFILE")
    if export is not None:
        _export(state, export, profile, Cards(models, fleet, testbed), predictor, quiet)
        return
    with looking(state) as look:
        if freeze is not None or rollback is not None:
            _ask(look, freeze, rollback)
        summary = FeedbackSummary.of(look)
    typer.echo(json.dumps(summary.as_dict()) if format == "json" else feedback_table(summary))


def _ask(state: Look, freeze: bool | None, rollback: int | None) -> None:
    """Ask for what takes effect with the next measurement."""
    from placer.feedback.actions import ActionKind, ModelAction
    from placer.online.feedback_summary import FeedbackSummary

    if freeze is not None:
        state.ask(ModelAction(ActionKind.FREEZE if freeze else ActionKind.UNFREEZE))
        return
    known = [one["version"] for one in FeedbackSummary.of(state).versions]
    if rollback not in known:
        raise InputError.of("--rollback", f"there is no version {rollback}", hint=f"one of {_listed(known)}")
    state.ask(ModelAction(ActionKind.ROLL_BACK, rollback))


def _export(state: str, out: Path, base: Path | None, cards: Cards, predictor: str, quiet: bool) -> None:
    """Write a profile with what was measured, and report how much that is."""
    from contextlib import ExitStack

    from placer.inputs.online import open_online
    from placer.progress import Progress
    from placer.service.exporting import export_state

    progress = Progress(quiet=quiet)
    with ExitStack() as stack:
        catalogue = open_online(cards, stack, progress.say, predictor)
        runs = export_state(state, out, base, catalogue, predictor, stack)
    progress.say(f"added {runs:,} measured co-locations: {out}")


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
