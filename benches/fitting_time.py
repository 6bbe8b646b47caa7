"""Seconds of one fit over the number of points, beside pwlf and piecewise-regression."""

import sys
import time
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from threadpoolctl import threadpool_limits

from benches.bench import register
from benches.fitting_peers import TOOLS, CurveTask, found_by

SIZES = (50, 100, 200, 400, 1000)
BREAKS = (0.25, 0.5, 0.75)  # true places of the breakpoints, as shares of the axis
NOISE = 0.01
Repeats = Annotated[int, typer.Option(min=1, help="Fits per tool and size, each of other noise.")]


@register("fitting-time")
def run(repeats: Repeats = 3) -> pd.DataFrame:
    """A row per number of points, a column of median seconds per tool; NaN where one fails or is not installed."""
    rows = []
    for points in SIZES:
        tasks = [_task(points, seed) for seed in range(repeats)]
        rows.append({"points": points, **{f"{name}, s": _seconds(name, tasks) for name in TOOLS}})
    return pd.DataFrame(rows)


def _task(points: int, seed: int) -> CurveTask:
    """Four lines, each of another slope, with noise."""
    x = np.linspace(1.0, 1000.0, points)
    y = np.interp(x / 1000.0, [0.0, *BREAKS, 1.0], [100.0, 100.0, 160.0, 140.0, 260.0])
    noise = 1 + NOISE * np.random.default_rng(seed).normal(size=points)
    return CurveTask(x, y * noise, x_log=False, breakpoints=len(BREAKS), seed=seed)


def _seconds(name: str, tasks: list[CurveTask]) -> float:
    seconds = []
    for task in tasks:
        began = time.perf_counter()
        try:
            with threadpool_limits(1):
                found = found_by(TOOLS[name], task)
        except ImportError:
            print(f"{name}: not installed", file=sys.stderr)
            return float("nan")
        seconds.append(time.perf_counter() - began if found is not None else float("nan"))
    return round(float(np.median(seconds)), 3)
