"""Fitted models of random piecewise curves whose truth is known, beside pwlf and piecewise-regression.

Peers receive the true number of breakpoints, which they cannot find, and on logarithmic axes ln(x); their pieces are
straight and continuous, so that jumps and curved pieces are beyond them. Curves and what counts as found:
`tests/predictor/fitting/random_curves.py`.
"""

import sys
import time
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from threadpoolctl import threadpool_limits

from benches.bench import register
from benches.fitting_peers import TOOLS, CurveTask, found_by
from predictor.fitting.family import FAMILIES
from predictor.fitting.fit import fit
from predictor.fitting.fitted_model import FittedModel, smape_pct
from predictor.fitting.points import MeasuredCurve
from profiles import InputError
from tests.predictor.fitting.known_shapes import KINDS, score_shape
from tests.predictor.fitting.random_curves import RandomCurve, random_curve

Count = Annotated[int, typer.Option(min=1, help="Number of random curves.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the first curve; the next ones follow.")]
ToolNames = Annotated[
    list[str] | None, typer.Option("--tool", help=f"A tool; repeatable: {', '.join(TOOLS)}.", show_default=False)
]


@dataclass(frozen=True)
class CurveScore:
    """How one tool did on one curve."""

    jumps: tuple[bool, ...]
    bends: tuple[bool, ...]  # of each true breakpoint of that kind, whether it was found
    found: int  # how many breakpoints the tool has
    error_pct: float  # sMAPE against the curve without noise at fresh points; infinite where it failed
    seconds: float  # of the fit
    failed: bool  # whether it has no result

    @property
    def hits(self) -> int:
        """How many true breakpoints were found."""
        return sum(self.jumps) + sum(self.bends)

    @property
    def exact(self) -> bool:
        """Whether all true breakpoints were found, and no other."""
        return not self.failed and self.hits == self.found == len(self.jumps) + len(self.bends)


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
def run(count: Count = 40, seed: Seed = 0, tool: ToolNames = None) -> pd.DataFrame:
    """Per tool: recall and precision of breakpoints, exact structures, errors and seconds, over all curves."""
    curves = [random_curve(one) for one in range(seed, seed + count)]
    rows = []
    for name in _known(tool):
        try:
            with threadpool_limits(1):
                scores = [scored(name, curve, number) for number, curve in enumerate(curves)]
        except ImportError:
            print(f"{name}: not installed", file=sys.stderr)
            continue
        rows.append({"tool": name, **summary(scores)})
    return pd.DataFrame(rows)


def scored(name: str, curve: RandomCurve, seed: int) -> CurveScore:
    """One tool on one curve."""
    task = CurveTask(curve.x, curve.y, curve.x_log, len(curve.breakpoints), seed)
    began = time.perf_counter()
    found = found_by(TOOLS[name], task)
    seconds = time.perf_counter() - began
    breakpoints = [] if found is None else list(found.breakpoints)
    hit = {true for true, _ in curve.matched(breakpoints)} if breakpoints else set()
    error = np.inf
    if found is not None:
        fresh = curve.fresh()
        error = smape_pct(np.asarray(found.predict(fresh)), curve.truth(fresh))
    return CurveScore(
        tuple(at in hit for at, jump in enumerate(curve.jumps) if jump),
        tuple(at in hit for at, jump in enumerate(curve.jumps) if not jump),
        len(breakpoints),
        error,
        seconds,
        found is None,
    )


def summary(scores: list[CurveScore]) -> dict[str, object]:
    """The columns of a tool; a failure finds nothing and has an infinite error."""
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
        "failures": sum(one.failed for one in scores),
    }


def _share(hits: list[bool]) -> float:
    return round(float(np.mean(hits)), 3) if hits else float("nan")


def _known(names: list[str] | None) -> list[str]:
    unknown = [name for name in names or () if name not in TOOLS]
    if unknown:
        raise InputError.of("--tool", f"'{unknown[0]}' is no tool", hint=f"one of {', '.join(TOOLS)}")
    return list(dict.fromkeys(names or TOOLS))
