"""`placer feedback --state FILE`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placer.commands.options import Fleet, ModelsDir, OnePredictor, Quiet, RecordedCard, one_of, take_option
from placer.fleet.feedback_summary import FeedbackSummary
from placer.fleet.learning.export import export_profile
from placer.fleet.learning.learning import Feedback, correct
from placer.fleet.state.looking import looking
from placer.fleet.state.model_actions import RecordedActions
from placer.fleet.state.saved_learning import read_learnt, read_readings, recorded_actions
from placer.inputs.models import RECORDED_OF, RECORDED_PROFILE
from placer.model.catalogue import Catalogue
from placer.report.text.table import count_noun, text_table
from profiles import InputError
from profiles.profile import read_profile

if TYPE_CHECKING:
    from placer.fleet.state.looking import Look
    from placer.inputs.catalogue import Cards


StateFile = Annotated[
    str,
    take_option("The fleet, as kept by `placer online` or `placer serve`.", "--state", metavar="FILE|postgresql://..."),
]
Freeze = Annotated[bool | None, take_option("Freeze the models, or end the freeze.", "--freeze/--unfreeze")]
RollBack = Annotated[
    int | None, take_option("Make version N of the models active again.", "--rollback", metavar="N", min=1)
]
Export = Annotated[
    Path | None,
    take_option(
        "Write a profile with all measurements (co-runs.csv), for `placer train`. An existing profile is replaced.",
        metavar="PROFILE",
    ),
]
Base = Annotated[
    Path | None,
    take_option(
        "With --export: the profile to which the measurements are added. By default PROFILE itself if it exists, "
        "else that of the recorded card.",
        "--profile",
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
    """Show what a service has learnt from measurements; freeze or roll back its models, or export a profile.

    A service may use the state at the same time; changes take effect with its next measurement."""
    from placer.fleet.feedback_summary import FeedbackSummary
    from placer.fleet.state.looking import looking
    from placer.inputs.catalogue import Cards

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
    from placer.fleet.feedback_summary import FeedbackSummary
    from placer.fleet.learning.actions import ActionKind, ModelAction

    if freeze is not None:
        state.ask(ModelAction(ActionKind.FREEZE if freeze else ActionKind.UNFREEZE))
        return
    known = [version["version"] for version in FeedbackSummary.of(state).versions]
    if rollback not in known:
        raise InputError.of("--rollback", f"there is no version {rollback}", hint=f"one of {_list(known)}")
    state.ask(ModelAction(ActionKind.ROLL_BACK, rollback))


def _export(state: str, out: Path, base: Path | None, cards: Cards, predictor: str, quiet: bool) -> None:
    """Write a profile with what was measured, and report how much that is."""
    from contextlib import ExitStack

    from placer.inputs.catalogue import open_online
    from placer.progress import Progress

    progress = Progress(quiet=quiet)
    with ExitStack() as stack:
        catalogue = open_online(cards, stack, progress.say, predictor)
        runs = export_state(state, out, base, catalogue, predictor, stack)
    progress.say(f"added {runs:,} measured co-locations: {out}")


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


# What feedback has learnt, as text tables.


VERSION_HEADINGS = ["version", "status", "e-value", "error", "champion's error", "inside 90 %", "trained at event"]
DRIFT_HEADINGS = ["NF", "NIC model", "factor", "since event"]


def feedback_table(summary: FeedbackSummary) -> str:
    """Measurements, drift and versions for people."""
    frozen = ", frozen" if summary.frozen else ""
    parts = [
        f"{count_noun(summary.measurements, 'reading')}, {summary.lower_bounds:,} of them lower bounds. "
        f"Version {summary.model} decides{frozen}."
    ]
    if summary.drift:
        rows = [
            [drifted["nf"], drifted["nic_model"], f"{drifted['factor']:.3f}", f"{drifted['since']:,}"]
            for drifted in summary.drift
        ]
        parts.append(text_table(DRIFT_HEADINGS, rows))
    parts.append(text_table(VERSION_HEADINGS, [_row(version) for version in summary.versions]))
    return "\n\n".join(part.rstrip() for part in parts)


def _row(version: Mapping[str, Any]) -> list[str]:
    e_value = version["e_value"]
    return [
        str(version["version"]), version["status"], "-" if e_value is None else f"{e_value:.3g}",
        *(_percent(version[name]) for name in ("mape_pct", "champion_mape_pct", "coverage_90_pct")),
        f"{version['trained_at']:,}",
    ]  # fmt: skip


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


# Exports what a state has measured as a profile.


def export_state(
    state: str | Path, out: Path, base: Path | None, catalogue: Catalogue, predictor: str, stack: ExitStack
) -> int:
    """Write `base`, with what was measured on its NIC model, as the profile `out`; returns the number of added runs.
    Raises `InputError` when a file is refused, or there is nothing to begin with."""
    base = _base(out, base, catalogue, stack)
    feedback = _feedback(state, catalogue, predictor)
    testbed = read_profile(base).testbed
    models = {kind.model: one for kind, one in zip(catalogue.kinds, catalogue.models, strict=True)}
    name = next(iter(feedback.oracles), None) if testbed is None else testbed.nic.model
    if name is None or name not in feedback.oracles:
        hint = f"the fleet has {', '.join(feedback.oracles)}"
        raise InputError.of("--profile", f"{base} is of another NIC model than those of the fleet", hint=hint)
    entries = [entry for entry in feedback.corrections.entries() if entry.nic_model == name]
    return export_profile(base, out, entries, models[name], lambda nf, alone: feedback.total_drift(name, nf, alone))


def _feedback(state: str | Path, catalogue: Catalogue, predictor: str) -> Feedback:
    """What is learnt of all readings."""
    feedback, _ = correct(catalogue.kinds, catalogue.oracles(predictor))
    with looking(state) as look:
        actions = recorded_actions(read_learnt(look, look.name))
        feedback.actions = RecordedActions(actions, look.models(predictor), list(feedback.oracles))
        feedback.restore(read_readings(look, look.name, catalogue.check))
    return feedback


def _base(out: Path, base: Path | None, catalogue: Catalogue, stack: ExitStack) -> Path:
    """The profile to add to."""
    if base is not None:
        return base
    if out.is_dir():
        return out
    trained = catalogue.main_models.testbed
    for recorded in {RECORDED_PROFILE: None, **dict.fromkeys(RECORDED_OF.values())}:
        path = stack.enter_context(as_file(files("traces") / recorded))
        if trained is not None and read_profile(path).testbed == trained:
            return path
    hint = "name the profile that the models were trained with: --profile PROFILE"
    raise InputError.of("--export", "there is no profile to add the measurements to", hint=hint)
