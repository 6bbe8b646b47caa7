"""Fitted curves of solo throughput, as `placer train --solo-fit NF=MODEL.json` names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placer.model.latency_oracle import FittedLatency, LatencyCurve, SteppedCurve
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.model_file import LARGEST_FILE, models_of
from predictor.latency import LATENCY_FOLDER, is_trained
from predictor.training.solo_fits import FEWEST_TRAFFICS, OWN_RUNS, SoloCurve, is_above_zero
from profiles import ATTRIBUTES, Fault, InputError
from profiles.faults import suggestion
from profiles.profile import KPPS_COLUMN
from profiles.text import read_text

if TYPE_CHECKING:
    from profiles.profile import NfProfile, Profile


SOLO_FITS_OPTION = "--solo-fit"
MTBR = ATTRIBUTES[2]


def read_solo_fits(options: Sequence[str], profile: Profile) -> dict[str, SoloCurve]:
    """The curve of each NF, or `OWN_RUNS` where no file is named. `options`: as `NF=MODEL.json`, or `NF`. `profile`:
    what is trained: its NFs, its default traffic, and the range that was measured. Raises `InputError` when an NF or a
    curve does not match the profile."""
    files: dict[str, str] = {}
    for option in options:
        nf, equals, file = option.partition("=")
        if not nf or (equals and not file):
            raise InputError.of(SOLO_FITS_OPTION, f"'{option}' is neither NF=MODEL.json nor NF")
        if nf not in profile.nfs:
            raise InputError.of(SOLO_FITS_OPTION, f"'{nf}' is not profiled ({suggestion(nf, profile.nfs)})")
        if nf in files:
            raise InputError.of(SOLO_FITS_OPTION, f"{nf} is given twice", hint="give one curve per NF")
        files[nf] = file
    curves = {
        nf: _curve(models_of(read_text(Path(file), LARGEST_FILE), file), file, profile)
        for nf, file in files.items()
        if file
    }
    faults = [fault for nf, curve in curves.items() for fault in _faults(curve, files[nf], profile.nfs[nf])]
    if faults:
        raise InputError(faults)
    return {nf: curves.get(nf, OWN_RUNS) for nf in files}


def _curve(models: Sequence[FittedModel], file: str, profile: Profile) -> FittedModel:
    """The only model, or of a table of them the one at default traffic."""
    default = profile.default_traffic().as_dict()
    at_default = [model for model in models if all(default.get(name) == value for name, value in model.setting.items())]
    if not at_default:
        others = ", ".join(f"{name} {default[name]:g}" for name in ATTRIBUTES if name != models[0].x)
        raise InputError.of(file, f"has no model at default traffic ({others})", column="setting")
    return at_default[0]


def _faults(curve: FittedModel, file: str, nf: NfProfile) -> Iterator[Fault]:
    if curve.x not in ATTRIBUTES:
        yield Fault(file, None, "x", f"is '{curve.x}', not one of {', '.join(ATTRIBUTES)}")
    if curve.y != KPPS_COLUMN:
        yield Fault(file, None, "y", f"is '{curve.y}', not {KPPS_COLUMN}", "fit throughput in thousands of packets/s")
    elif not is_above_zero(curve):
        yield Fault(file, None, "y", f"is not above 0 everywhere from {curve.start:g} to {curve.end:g}")
    if curve.x == MTBR and nf.uses:
        message = f"is {MTBR}, but {nf.name} uses {', '.join(nf.uses)}, whose model has the effect of matches"
        yield Fault(file, None, "x", message, "give a curve over flows or packet_size, measured at mtbr 0")
    if len(nf.solo[list(ATTRIBUTES)].drop_duplicates()) < FEWEST_TRAFFICS:
        message = (
            f"the profile has {nf.name} alone at fewer than {FEWEST_TRAFFICS} different settings, too few "
            f"to judge a curve"
        )
        yield Fault(SOLO_FITS_OPTION, None, None, message, "profile it again with a larger --quota")
    elif curve.x in ATTRIBUTES:
        low, high = float(nf.solo[curve.x].min()), float(nf.solo[curve.x].max())
        if not max(low, curve.start) < min(high, curve.end):
            message = (
                f"{curve.x} from {curve.start:g} to {curve.end:g} does not overlap what the profile has of {nf.name}"
            )
            yield Fault(file, None, "from", f"{message}: {low:g} to {high:g}")


# Curves of latency against utilisation, which a MODELS folder may hold: `latency/NF.json`, written by `placer fit`.


X, Y = "utilisation", "p99_us"
FITTED_POINTS = 1_001  # utilisations at which a curve is evaluated


def read_latency_curves(models: Path, nfs: tuple[str, ...]) -> dict[str, LatencyCurve]:
    """By NF, the fitted curve in a MODELS folder; none where it has no such folder. What training wrote there is left
    to the models. Raises `InputError` when a file there is no fit of `p99_us` over `utilisation` from 0 to 1, or of no
    NF of these."""
    curves: dict[str, LatencyCurve] = {}
    for file in sorted((models / LATENCY_FOLDER).glob("*.json")):
        if is_trained(file):
            continue
        if file.stem not in nfs:
            raise InputError.of(str(file), f"'{file.stem}' is not an NF of these models")
        curves[file.stem] = FittedLatency(_step(_fit(file)))
    return curves


def refuse_curves_of_users(models: Path, nfs: Sequence[str]) -> None:
    """InputError where training the latency of these NFs would replace a fitted curve in a MODELS folder."""
    for nf in nfs:
        file = models / LATENCY_FOLDER / f"{nf}.json"
        if file.exists() and not is_trained(file):
            hint = f"remove it to use {nf}/latency.csv of the profile, or the other way round"
            raise InputError.of(str(file), f"is a fitted curve, and the latency of {nf} would be trained", hint=hint)


def _step(fitted: FittedModel) -> SteppedCurve:
    """The fitted curve where it was measured; below that the smallest measured utilisation counts."""
    at = np.linspace(fitted.start, fitted.end, FITTED_POINTS)
    return SteppedCurve(tuple(at.tolist()), tuple(np.maximum.accumulate(fitted.predict(at)).tolist()))


def _fit(file: Path) -> FittedModel:
    fits = models_of(read_text(file, LARGEST_FILE), str(file))
    if len(fits) != 1:
        raise InputError.of(str(file), f"has {len(fits)} curves, and one is used", column="fits")
    fitted = fits[0]
    if (fitted.x, fitted.y) != (X, Y):
        hint = f"fit {Y} over {X}: the offered rate, as a share of the throughput in the same co-location"
        raise InputError.of(str(file), f"is {fitted.y} over {fitted.x}", column="x", hint=hint)
    if not 0 <= fitted.start < fitted.end <= 1:
        raise InputError.of(str(file), f"is from {fitted.start:g} to {fitted.end:g}, not within 0 to 1", column="from")
    if not (fitted.predict([fitted.start, fitted.end]) > 0).all():
        raise InputError.of(str(file), "is not above 0 everywhere", column="y")
    return fitted
