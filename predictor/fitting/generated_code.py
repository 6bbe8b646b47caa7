"""Fitted models as code: the registry of languages, and what all of them say about a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from predictor.fitting.fitted_model import FittedModel
from profiles.registry import Registry

CodeWriter = Callable[[Sequence[FittedModel]], str]
"""Writes a file of code: a function, or what corresponds to it, per model; the models differ by their settings."""

CODES: Registry[CodeWriter] = Registry(
    "language", "predictor.fitting.code", "placer.fit_codes", "--code", first=("python", "c", "latex", "p4")
)
"""Every language by name: the files of `predictor/fitting/code/`, then the entry points of other packages."""

SHOWN_IN_COMMENTS = " _-+.,:;/%()[]<>=#|&@!^~"
LONGEST_IN_COMMENTS = 60


def facts(model: FittedModel) -> list[str]:
    """What readers of the code should know, one line each: what was fitted, where it holds, and how well."""
    x, y = comment_text(model.x), comment_text(model.y)
    setting = ", ".join(f"{comment_text(name)}={value:.12g}" for name, value in model.setting.items())
    errors = [f"{model.smape_pct:.3g} % of the fit"]
    if model.left_out_smape_pct is not None:
        errors.append(f"{model.left_out_smape_pct:.3g} % at points left out of the fit")
    segments = len(model.segments)
    return [
        f"{y} over {x}{f' at {setting}' if setting else ''}, fitted by `placer fit`",
        f"to {model.points} measurements: {segments} segment{'s' if segments > 1 else ''}.",
        f"Fitted range: {model.start:.12g} <= {x} <= {model.end:.12g}; beyond it, extrapolated.",
        f"Error (sMAPE): {', '.join(errors)};",
        f"estimated noise of the measurements: {model.noise_pct:.3g} %.",
    ]


def comment_text(name: str) -> str:
    """A user's text inside a comment of any language: nothing that could end the comment or continue its line."""
    shown = "".join(one if one.isalnum() or one in SHOWN_IN_COMMENTS else "_" for one in name)
    return shown if len(shown) <= LONGEST_IN_COMMENTS else f"{shown[:LONGEST_IN_COMMENTS]}..."
