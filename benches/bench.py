"""What a bench is: one file in this folder whose `run` is registered under a name."""

from __future__ import annotations

import importlib
import pkgutil
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

import benches

Run = Callable[[], pd.DataFrame]
REPEATS = 7

_registered: dict[str, Run] = {}


def register(name: str) -> Callable[[Run], Run]:
    """Make a bench known; a decorator."""

    def known(run: Run) -> Run:
        _registered[name] = run
        return run

    return known


def bench_names() -> tuple[str, ...]:
    """Every bench in this folder."""
    for module in pkgutil.iter_modules(benches.__path__):
        if not module.name.startswith("__"):
            importlib.import_module(f"benches.{module.name}")
    return tuple(sorted(_registered))


def table_of(name: str) -> pd.DataFrame:
    """What the bench measures, one row per case."""
    return _registered[name]()


@dataclass(frozen=True)
class Cost:
    """Median time of a call (s), and the most memory it held beyond what was there before (MB)."""

    seconds: float
    peak_mb: float


def cost(call: Callable[[], object], repeats: int = REPEATS) -> Cost:
    """Call once unmeasured, then `repeats` times for time, then once for memory, which slows it."""
    call()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Cost(float(np.median(times)), peak / 1e6)
