"""The registry of benchmarks, and the measurement of time and memory.

A benchmark is one file in this folder whose `run` is registered under a name.
"""

import importlib
import pkgutil
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from random import Random

import numpy as np
import pandas as pd
import typer

import benches

Benchmark = Callable[..., pd.DataFrame]
"""Measures, and returns one row per case. Its parameters, if any, are options (Typer), all with defaults."""
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


def table_of(name: str, options: Sequence[str] = ()) -> pd.DataFrame | None:
    """Run the benchmark with options of its own; its table has one row per case. None after `--help`. Raises
    `SystemExit` with code 2 when it has no such option, or an option a wrong value; stderr says which."""
    run = _registered[name]
    if not options:
        return run()
    made: list[pd.DataFrame] = []

    @wraps(run)
    def kept(**values: object) -> None:
        made.append(run(**values))

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(kept)
    try:
        app(list(options), prog_name=f"python -m benches {name}")
    except SystemExit as ended:
        if ended.code:
            raise
    return made[0] if made else None


def described(name: str) -> str:
    """What the benchmark measures, in one line."""
    return str(sys.modules[_registered[name].__module__].__doc__).strip().splitlines()[0]


def take_any(items: list[str], draw: Random) -> str:
    """One of them at random, which is removed; the last takes its place."""
    at = draw.randrange(len(items))
    items[at], items[-1] = items[-1], items[at]
    return items.pop()


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
