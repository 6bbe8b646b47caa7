"""What is said of a fitted model, in terminals and on pages."""

from __future__ import annotations

from collections.abc import Mapping

from placer.report.text.counts import counted
from predictor.fitting.fitted_model import CurveBreak, FittedModel

DIGITS = 4
"""Significant digits of a number in a sentence."""
SAME = 1.25
"""An error of at most this many times the noise is as small as the measurements allow."""
UNKNOWN = "unknown"
LARGEST_SPELLED, SMALLEST_SPELLED = 1e15, 1e-4
"""Numbers outside are written with an exponent."""


def number_text(value: float) -> str:
    """A number with the digits that it needs: `4,096`, `12.1`, `0.00021`, `3.2e-09`; whole ones keep all digits."""
    size = abs(value)
    if size and not SMALLEST_SPELLED <= size < LARGEST_SPELLED:
        return f"{value:.{DIGITS}g}"
    if float(value).is_integer() or size >= 10**DIGITS:
        return f"{value:,.0f}"
    return f"{value:,.{DIGITS}g}"


def setting_text(setting: Mapping[str, float]) -> str:
    """The values of other columns: `key_width 8, rules 100`; empty where there are none."""
    return ", ".join(f"{name} {number_text(value)}" for name, value in setting.items())


def model_name(fit: FittedModel) -> str:
    """What depends on what: `cycles over entries, key_width 8`."""
    setting = setting_text(fit.setting)
    return f"{fit.y} over {fit.x}" + (f", {setting}" if setting else "")


def span_text(start: float, end: float) -> str:
    """A range of x."""
    return f"{number_text(start)} to {number_text(end)}"


def break_text(point: CurveBreak) -> str:
    """What happens at a breakpoint: `jumps by 12.1`, or `bends`."""
    return f"jumps by {number_text(point.jump)}" if point.jump else "bends"


def error_text(pct: float | None) -> str:
    """An error; one that is not known says so."""
    return UNKNOWN if pct is None else f"{pct:.2f} %"


def errors_text(fit: FittedModel) -> str:
    """Error of the fit, error at points that were left out, and noise, side by side."""
    return (
        f"error of the fit {error_text(fit.smape_pct)}, at points left out of the fit "
        f"{error_text(fit.left_out_smape_pct)}, noise {error_text(fit.noise_pct)}"
    )


def explains(fit: FittedModel) -> bool:
    """Whether the error at points that were left out is known, and no larger than noise explains."""
    return fit.left_out_smape_pct is not None and fit.left_out_smape_pct <= SAME * fit.noise_pct


def errors_verdict(fit: FittedModel) -> str:
    """What the error at points that were left out means beside the noise, in a sentence."""
    if fit.left_out_smape_pct is None:
        return "Too few points to leave some out: how well the model predicts other points is not known."
    if explains(fit):
        return "The model predicts other points about as exactly as they can be measured."
    if fit.noise_pct <= 0:
        return "The points show no noise; what is left is the model's own error."
    times = fit.left_out_smape_pct / fit.noise_pct
    return f"Its error at other points is {times:.1f} times the noise: some of the curve is not explained."


def extrapolation_text(fit: FittedModel) -> str:
    """Where the model holds, and what it is beyond, in two sentences."""
    return (
        f"It holds for {fit.x} from {span_text(fit.start, fit.end)}, where {fit.y} was measured. Beyond, the outer "
        "formulas are continued: such values are extrapolated, no measurement supports them, and their error is not "
        "known."
    )


def parts_text(fit: FittedModel) -> str:
    """Of how many segments it is, and their families: `2 segments (constant, log)`."""
    families = ", ".join(segment.family for segment in fit.segments)
    return f"{counted(len(fit.segments), 'segment')} ({families})"
