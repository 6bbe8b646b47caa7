"""Peers of `placer fit`: piecewise linear models with a given number of breakpoints, and ours, which finds it."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from predictor.fitting.fit import fit
from predictor.fitting.points import MeasuredCurve
from profiles.arrays import Floats

Predict = Callable[[Floats], Floats]


@dataclass(frozen=True)
class CurveTask:
    """What a tool receives."""

    x: Floats
    y: Floats  # points by rising x
    x_log: bool  # whether the axis is logarithmic; peers, whose pieces are straight lines, receive ln(x) then
    breakpoints: int  # their true number, for tools that cannot find it
    seed: int = 0  # of what a tool draws

    def axis(self, x: Floats) -> Floats:
        """x as peers receive it."""
        return np.log(x) if self.x_log else x

    def places(self, breaks: Sequence[float]) -> list[float]:
        """Breakpoints of peers in the unit of x."""
        return [float(np.exp(at) if self.x_log else at) for at in breaks]


@dataclass(frozen=True)
class FoundCurve:
    """What a tool returns: its breakpoints in the unit of x, and its curve."""

    breakpoints: Sequence[float]
    predict: Predict


class NotConverged(Exception):
    """The tool has no result."""


Tool = Callable[[CurveTask], FoundCurve]


def ours(task: CurveTask) -> FoundCurve:
    """Families, number and places of segments are found."""
    model = fit(MeasuredCurve("x", "y", task.x, task.y))
    return FoundCurve([point.at for point in model.breakpoints], model.predict)


def ours_as_tum(task: CurveTask) -> FoundCurve:
    """As `ours`, chosen as Scholz et al. do."""
    model = fit(MeasuredCurve("x", "y", task.x, task.y), select="tum")
    return FoundCurve([point.at for point in model.breakpoints], model.predict)


def by_pwlf_fast(task: CurveTask) -> FoundCurve:
    """pwlf's `fitfast`: continuous lines, places by L-BFGS-B from several starts."""
    from pwlf import PiecewiseLinFit

    model = PiecewiseLinFit(task.axis(task.x), task.y, seed=task.seed)
    ends = model.fitfast(task.breakpoints + 1)
    return FoundCurve(task.places(ends[1:-1]), lambda x: np.asarray(model.predict(task.axis(x))))


def by_pwlf(task: CurveTask) -> FoundCurve:
    """pwlf's `fit`: continuous lines, places by differential evolution."""
    from pwlf import PiecewiseLinFit

    model = PiecewiseLinFit(task.axis(task.x), task.y, seed=task.seed)
    ends = model.fit(task.breakpoints + 1)
    return FoundCurve(task.places(ends[1:-1]), lambda x: np.asarray(model.predict(task.axis(x))))


def by_piecewise_regression(task: CurveTask) -> FoundCurve:
    """piecewise-regression: continuous lines, places by Muggeo's iteration; a line where no breakpoint is true."""
    import piecewise_regression

    x = task.axis(task.x)
    if not task.breakpoints:
        line = np.polyfit(x, task.y, 1)
        return FoundCurve([], lambda at: np.polyval(line, task.axis(at)))
    np.random.seed(task.seed)  # noqa: NPY002 - its only source of draws
    model = piecewise_regression.Fit(x, task.y, n_breakpoints=task.breakpoints)
    estimates = model.get_results()["estimates"]
    if estimates is None:
        raise NotConverged
    breaks = [one["estimate"] for name, one in estimates.items() if name.startswith("breakpoint")]
    return FoundCurve(task.places(sorted(breaks)), lambda at: np.asarray(model.predict(task.axis(at))))


TOOLS: dict[str, Tool] = {
    "ours": ours,
    "tum": ours_as_tum,
    "pwlf-fast": by_pwlf_fast,
    "pwlf": by_pwlf,
    "piecewise-regression": by_piecewise_regression,
}


def found_by(tool: Tool, task: CurveTask) -> FoundCurve | None:
    """What a tool finds; None where it fails or does not converge. Raises `ImportError` when it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return tool(task)
        except ImportError:
            raise
        except Exception:  # whatever a peer raises is its failure
            return None
