"""The registry of benchmarks, and the measurement of time and memory.

A benchmark is one file in this folder whose `run` is registered under a name.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

import benches

Benchmark = Callable[[], pd.DataFrame]
"""Measures, and returns one row per case."""
REPEATS = 7

_registered: dict[str, Benchmark] = {}


def register(name: str) -> Callable[[Benchmark], Benchmark]:
    """A decorator that registers a benchmark under a name."""

    def add(run: Benchmark) -> Benchmark:
        _registered[name] = run
        return run

    return add


def bench_names() -> tuple[str, ...]:
    """The names of all benchmarks in this folder."""
    for module in pkgutil.iter_modules(benches.__path__):
        if not module.name.startswith("__"):
            importlib.import_module(f"benches.{module.name}")
    return tuple(sorted(_registered))


def table_of(name: str) -> pd.DataFrame:
    """Run the benchmark; its table has one row per case."""
    return _registered[name]()


def described(name: str) -> str:
    """What the benchmark measures, in one line."""
    return str(sys.modules[_registered[name].__module__].__doc__).strip().splitlines()[0]


@dataclass(frozen=True)
class Cost:
    """Median time of a call (s), and its peak memory beyond what was allocated before (MB)."""

    seconds: float
    peak_mb: float


def cost(call: Callable[[], object], repeats: int = REPEATS) -> Cost:
    """Measure a call: once to warm up, `repeats` times for time, and once more for memory, which slows it down."""
    call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Cost(float(np.median(times)), peak / 1e6)
