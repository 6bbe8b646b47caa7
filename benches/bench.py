"""The commands of benchmarks, and the measurement of time and memory.

A benchmark is one file in this folder whose `run` is registered under a name.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from random import Random

import numpy as np
import pandas as pd
import typer

from profiler.testbed import TestbedError
from profiles import InputError

Benchmark = Callable[..., pd.DataFrame]
"""Measures, and returns one row per case. Its parameters, if any, are options (Typer), all with defaults."""
REPEATS = 7

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def register(name: str) -> Callable[[Benchmark], Benchmark]:
    """A decorator that makes a benchmark the command `name`, which prints its table."""

    def add(run: Benchmark) -> Benchmark:
        @wraps(run)
        def show(**values: object) -> None:
            try:
                table = run(**values)
            except (InputError, TestbedError) as error:
                print(f"error: {error}", file=sys.stderr)
                raise typer.Exit(2) from None
            print(f"{name}\n{table.to_string(index=False)}\n", flush=True)

        app.command(name, help=str(sys.modules[run.__module__].__doc__))(show)
        return run

    return add


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
