"""Opens what `placer profile --for` plans with, refused where arrivals, models and profile do not fit together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import NONE, Cards, open_catalogue
from placer.measuring.rounds import MeasuringRounds
from placer.model.arrival import Arrival
from predictor.store import MANIFEST
from profiles import InputError
from profiles.profile import Profile, read_profile


def open_rounds(
    arrivals: str, models: Path, out: Path, say: Callable[[str], None], budget_pct: float | None = None
) -> tuple[MeasuringRounds, str]:
    """The rounds, and a key that is the same for the same arrivals, models and budget.

    Parameters
    ----------
    arrivals
        A path, or `-` for standard input.
    models, out
        The folders of the models and of the profile.
    say
        Called with messages, and with a line after each round.
    budget_pct
        SLA violations per 100 instances that plans may be expected to have; None means the default.

    Raises
    ------
    InputError
        When the profile, the models or the arrivals are refused, or are not of one card.
    """
    profile = read_profile(out)
    with ExitStack() as stack:
        catalogue = open_catalogue(Cards(models=models, testbed=NONE, budget_pct=budget_pct), stack, say)
    trained = catalogue.models[0].testbed
    if profile.testbed is None:
        raise InputError.of("--out", f"{out} has no testbed.json, so its testbed is not known")
    if trained is not None and trained.nic.model != profile.testbed.nic.model:
        message = f"were trained on a {trained.nic.model}, {out} is a profile of a {profile.testbed.nic.model}"
        raise InputError.of("--models", message, hint=f"`placer train {out} --out MODELS`")
    traced = read_arrivals(arrivals, catalogue.default_traffic, catalogue.check)
    _refuse_unprofiled(traced, profile, out)
    predictor = catalogue.predictors()[0]
    if not catalogue.supports_risk(predictor):
        raise InputError.of("--models", f"{predictor} does not estimate its errors, so nothing is in doubt")
    return MeasuringRounds(traced, catalogue, predictor, say), _key(traced, models, budget_pct)


def _refuse_unprofiled(arrivals: Sequence[Arrival], profile: Profile, out: Path) -> None:
    if missing := sorted({one.workload.nf for one in arrivals} - set(profile.nfs)):
        raise InputError.of("--for", f"{out} has no profile of {', '.join(missing)}")


def _key(arrivals: Sequence[Arrival], models: Path, budget_pct: float | None) -> str:
    digest = hashlib.sha256(repr(arrivals).encode())
    digest.update((models / MANIFEST).read_bytes())
    if budget_pct is not None:
        digest.update(repr(budget_pct).encode())
    return digest.hexdigest()[:16]
