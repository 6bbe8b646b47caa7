"""Section 5.3: how long it takes to place the four chains, 34 NFs."""

import time

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.lemur import NOT_PRINTED, PAPER
from experiments.lemur.methodology.brute_force import BruteForce, BruteForced
from experiments.lemur.methodology.compared import TIME_LIMIT_S
from experiments.lemur.methodology.paper_rack import RATE_DELTAS, chains, rack
from experiments.methodology.accuracy import verdict_on
from experiments.registry import Result, Setting, experiment
from placer.rack.strategies import CHAIN_STRATEGIES

CHAIN_NUMBERS = (1, 2, 3, 4)
BRUTE_FORCE_S = 60
TIMING_REPEATS = 5
PUBLISHED_S = {"brute force": 14901.0, "lemur": 3.5}


@experiment(PAPER, "lemur-speed", "Time to place 34 NFs")
def run(setting: Setting) -> Result:
    """The proven optimum and the heuristic, measured; the brute force, estimated from a sample of its patterns."""
    measured = {name: _seconds(name, setting) for name in ("optimal", "lemur")}
    setting.say("brute force: a sample of patterns")
    force = BruteForce(chains(CHAIN_NUMBERS, 1), rack()).published(setting.count(BRUTE_FORCE_S, least=1))
    table = pd.DataFrame(
        [
            _row("brute force", force.all_seconds, force.error * force.all_seconds, "estimated"),
            *(_row(name, float(np.median(of)), float(np.max(of)), "measured") for name, of in measured.items()),
        ]
    )
    return Result(
        table,
        (_try_out(force), "This machine, one thread: the other rows."),
        lambda figure: _draw(figure, table),
        (
            f"seconds is the median over eight least rates, {TIMING_REPEATS} repeats each, of solving without reading "
            "files; spread_s is the longest, and of the brute force the standard error of its estimate.",
            "The brute force solves a linear program for each allocation of cores of each pattern; they are drawn at "
            "random, and the mean is multiplied by their number. `python -m benches racks` has a faster one.",
            "The published heuristic calls the compiler of the switch, and so did the published brute force; here "
            "stages are without a bound, and no compiler runs. The published machine is another one.",
        ),
    )


def _try_out(of: BruteForced) -> str:
    return f"This machine, one thread: {of.tried:,} of {of.patterns:,} patterns of the brute force, at delta 1."


def _seconds(name: str, setting: Setting) -> list[float]:
    """Of each plan; the first one is not counted, as it loads the solver."""
    place = CHAIN_STRATEGIES[name]
    repeats = setting.count(TIMING_REPEATS, least=1)
    setting.say(f"{name}: {len(RATE_DELTAS)} least rates, {repeats} repeats")
    instances = [chains(CHAIN_NUMBERS, delta) for delta in RATE_DELTAS]
    on = rack()
    place(instances[0], on, time_limit=TIME_LIMIT_S, notify=setting.say)
    found = []
    for instance in instances * repeats:
        begin = time.perf_counter()
        place(instance, on, time_limit=TIME_LIMIT_S, notify=setting.say)
        found.append(time.perf_counter() - begin)
    return found


def _row(method: str, seconds: float, spread: float, how: str) -> dict[str, object]:
    published = PUBLISHED_S.get(method)
    worse = published is not None and method != "brute force" and seconds > published
    return {
        "method": method,
        "seconds": seconds,
        "spread_s": spread,
        "how": how,
        "published_s": NOT_PRINTED if published is None else published,
        "verdict": verdict_on(["seconds"] if worse else []),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    at = np.arange(len(table))
    bars = axes.barh(at + 0.2, table["seconds"], 0.38, label="ours")
    axes.bar_label(bars, [f"{value:,.3g} s" for value in table["seconds"]])
    published = [float(value) if value != NOT_PRINTED else 0.0 for value in table["published_s"]]
    axes.barh(at - 0.2, published, 0.38, label="published")
    axes.set_yticks(at, list(table["method"]))
    axes.set(xscale="log", xlabel="seconds")
    axes.legend(frameon=False)
