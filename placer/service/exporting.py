"""Exports what a state has measured as a profile."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path

from placer.feedback.export import export_profile
from placer.feedback.learning import Feedback, corrected
from placer.inputs.models import RECORDED, RECORDED_OF
from placer.model.catalogue import Catalogue
from placer.online.looking import looking
from placer.online.model_actions import RecordedActions
from placer.online.saved_learning import read_learnt, recorded_actions
from placer.online.saved_readings import read_readings
from profiles import InputError
from profiles.profile import read_profile


def export_state(
    state: str | Path, out: Path, base: Path | None, catalogue: Catalogue, predictor: str, stack: ExitStack
) -> int:
    """Write `base`, with what was measured on its NIC model, as the profile `out`; returns the number of added runs.

    Raises
    ------
    InputError
        When a file is refused, or there is nothing to begin with.
    """
    base = _base(out, base, catalogue, stack)
    feedback = _feedback(state, catalogue, predictor)
    testbed = read_profile(base).testbed
    models = {kind.model: one for kind, one in zip(catalogue.kinds, catalogue.models, strict=True)}
    name = next(iter(feedback.oracles), None) if testbed is None else testbed.nic.model
    if name is None or name not in feedback.oracles:
        hint = f"the fleet has {', '.join(feedback.oracles)}"
        raise InputError.of("--profile", f"{base} is of another NIC model than those of the fleet", hint=hint)
    entries = [one for one in feedback.corrections.entries() if one.nic_model == name]
    return export_profile(base, out, entries, models[name], lambda nf, alone: feedback.total_drift(name, nf, alone))


def _feedback(state: str | Path, catalogue: Catalogue, predictor: str) -> Feedback:
    """What is learnt of all readings."""
    feedback, _ = corrected(catalogue.kinds, catalogue.oracles(predictor))
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
    for recorded in {RECORDED: None, **dict.fromkeys(RECORDED_OF.values())}:
        path = stack.enter_context(as_file(files("traces") / recorded))
        if trained is not None and read_profile(path).testbed == trained:
            return path
    hint = "name the profile that the models were trained with: --profile PROFILE"
    raise InputError.of("--export", "there is no profile to add the measurements to", hint=hint)
