"""Fitted models of random piecewise curves whose truth is known, by both criteria of `placer fit`.

Curves and what counts as found: `tests/predictor/fitting/random_curves.py`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from threadpoolctl import threadpool_limits

from benches.bench import register
from predictor.fitting.family import FAMILIES
from predictor.fitting.fit import fit
from predictor.fitting.fitted_model import FittedModel, smape_pct
from predictor.fitting.points import MeasuredCurve
from profiles.arrays import Floats
from tests.predictor.fitting.known_shapes import KINDS, score_shape
from tests.predictor.fitting.random_curves import RandomCurve, random_curve

Count = Annotated[int, typer.Option(min=1, help="Number of random curves.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the first curve; the next ones follow.")]
CRITERIA = ("bic", "tum")


@dataclass(frozen=True)
class CurveScore:
    """How one fit did on one curve."""

    jumps: tuple[bool, ...]
    bends: tuple[bool, ...]  # of each true breakpoint of that kind, whether it was found
    found: int  # how many breakpoints the fit has
    error_pct: float  # sMAPE against the curve without noise at fresh points
    seconds: float  # of the fit

    @property
    def hits(self) -> int:
        """How many true breakpoints were found."""
        return sum(self.jumps) + sum(self.bends)

    @property
    def exact(self) -> bool:
        """Whether all true breakpoints were found, and no other."""
        return self.hits == self.found == len(self.jumps) + len(self.bends)


@register("fitting-intervals")
def intervals(count: Count = 200, seed: Seed = 0) -> pd.DataFrame:
    """Of our fits: how often the 90 % interval of a breakpoint contains the true place, its median width in % of the
    span, and the median number of parameters beyond the truth's."""
    covered, widths, beyond = [], [], []
    for one in range(seed, seed + count):
        curve = random_curve(one)
        model = fit(MeasuredCurve("x", "y", curve.x, curve.y))
        for true, found in curve.matched([point.at for point in model.breakpoints]):
            point = model.breakpoints[found]
            covered.append(point.low <= curve.breakpoints[true] <= point.high)
            widths.append(100 * float(np.ptp(curve.axis([point.low, point.high]))))
        sizes = [sum(FAMILIES[name].size for name in names) for names in (_families(model), curve.families)]
        beyond.append(sizes[0] - sizes[1])
    row = {
        "curves": count,
        "breakpoints": len(covered),
        "covered, %": round(100 * float(np.mean(covered)), 1),
        "median width, %": round(float(np.median(widths)), 2),
        "parameters beyond": float(np.median(beyond)),
    }
    return pd.DataFrame([row])


@register("fitting-shapes")
def shapes(count: Count = 40, seed: Seed = 5000) -> pd.DataFrame:
    """Of each shape of `tests/predictor/fitting/known_shapes.py`: shares of our fits with the true families, of those
    that are continued to twice the range within 10 % or not as far, and of those not as far."""
    scores = {kind: score_shape(kind, range(seed, seed + count)) for kind in KINDS}
    shares = [
        {"shape": kind, "curves": count, "right": one.right / count, "reaches": one.reaches / count,
         "not as far": one.refused / count}
        for kind, one in scores.items()
    ]  # fmt: skip
    return pd.DataFrame(shares)


def _families(model: FittedModel) -> list[str]:
    return [segment.family for segment in model.segments]


@register("fitting")
def run(count: Count = 40, seed: Seed = 0) -> pd.DataFrame:
    """Per criterion: recall and precision of breakpoints, exact structures, errors and seconds, over all curves."""
    curves = [random_curve(one) for one in range(seed, seed + count)]
    with threadpool_limits(1):
        return pd.DataFrame({"select": name, **summary([scored(curve, name) for curve in curves])} for name in CRITERIA)


def scored(curve: RandomCurve, select: str = CRITERIA[0]) -> CurveScore:
    """A fit of one curve by this criterion."""
    began = time.perf_counter()
    model = fit(MeasuredCurve("x", "y", curve.x, curve.y), select=select)
    seconds = time.perf_counter() - began
    return score(curve, [point.at for point in model.breakpoints], model.predict, seconds)


def score(
    curve: RandomCurve, breakpoints: Sequence[float], predict: Callable[[Floats], Floats], seconds: float = 0.0
) -> CurveScore:
    """What these breakpoints and this function have of the curve."""
    hit = {true for true, _ in curve.matched(breakpoints)} if breakpoints else set()
    fresh = curve.fresh()
    return CurveScore(
        tuple(at in hit for at, jump in enumerate(curve.jumps) if jump),
        tuple(at in hit for at, jump in enumerate(curve.jumps) if not jump),
        len(breakpoints),
        smape_pct(np.asarray(predict(fresh)), curve.truth(fresh)),
        seconds,
    )


def summary(scores: list[CurveScore]) -> dict[str, object]:
    """The columns of a criterion."""
    jumps = [hit for one in scores for hit in one.jumps]
    bends = [hit for one in scores for hit in one.bends]
    found, errors = sum(one.found for one in scores), np.array([one.error_pct for one in scores])
    seconds = np.array([one.seconds for one in scores])
    return {
        "curves": len(scores),
        "recall": _share([*jumps, *bends]),
        "of jumps": _share(jumps),
        "of bends": _share(bends),
        "precision": round(sum(one.hits for one in scores) / found, 3) if found else float("nan"),
        "exact": _share([one.exact for one in scores]),
        "median error, %": round(float(np.median(errors)), 3),
        "p90 error, %": round(float(np.quantile(errors, 0.9, method="inverted_cdf")), 3),
        "median s": round(float(np.median(seconds)), 3),
        "largest s": round(float(seconds.max()), 2),
    }


def _share(hits: list[bool]) -> float:
    return round(float(np.mean(hits)), 3) if hits else float("nan")
