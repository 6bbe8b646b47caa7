"""Figure 13: how long admission takes for 10 to 100 SLOs (section VII-C)."""

from collections.abc import Sequence
from random import Random
from time import perf_counter

import pandas as pd
from matplotlib.figure import Figure

from experiments.grus import BUS_SCHEDULES, MODELLED_GPU, NOT_PRINTED, PAPER
from experiments.grus.methodology.judging import METHOD_NAMES, TIME_LIMIT_S, judge_admission
from experiments.grus.methodology.paper_gpu import BEST_BATCH, device, random_slos
from experiments.methodology.accuracy import verdict_on
from experiments.registry import Result, Setting, experiment
from placer.gpu.device import GpuDevice
from placer.gpu.greedy import admit_greedily
from placer.gpu.plan import LatencySlo

SET_SIZES = tuple(range(10, 101, 10))
SETS_PER_SIZE = 20  # of each size; of the exact method, `EXACT_SETS`
EXACT_SETS = 5
ARRAY_METHOD = "grus on arrays"  # the same algorithm, without the bound that every method adds
PUBLISHED_US = 300.0
LOAD_GBPS = (0.1, 2.0)
MOST_SLOS = max(SET_SIZES)


@experiment(PAPER, "grus-figure13", "Time to admit 10 to 100 SLOs")
def run(setting: Setting) -> Result:
    """Each method on the same sets, one call each; the first call is not counted, as it compiles."""
    rows = [
        row
        for bus in BUS_SCHEDULES
        for method in (ARRAY_METHOD, *METHOD_NAMES)
        for row in _time_method(method, bus, setting)
    ]
    runs = pd.DataFrame(rows)
    table = pd.DataFrame(
        [_row(str(bus), str(method), of) for (bus, method), of in runs.groupby(["bus", "method"], sort=False)]
    )
    return Result(
        table,
        ("This machine, one thread; the times are measured, the SLOs are those of the modelled GPU.", MODELLED_GPU),
        lambda figure: _draw(figure, runs),
        FIGURE_NOTES,
        {"runs": runs},
    )


def _time_method(method: str, bus: str, setting: Setting) -> list[dict[str, object]]:
    gpu = device(bus, MOST_SLOS)
    sets = setting.count(EXACT_SETS if method == "exact" else SETS_PER_SIZE, least=1)
    setting.say(f"{method}, {bus} bus: {len(SET_SIZES) * sets} sets")
    rows = []
    for size in (SET_SIZES[0], *SET_SIZES):
        rng = Random(f"figure13 {setting.seed} {size}")
        for number in range(sets):
            slos = random_slos(gpu, size, rng, baseline=BEST_BATCH, tolerances=(0.05, 0.3), gbps=LOAD_GBPS)
            seconds, admitted = _once(method, gpu, slos, setting.seed)
            rows.append(
                {"bus": bus, "method": method, "slos": size, "set": number, "us": 1e6 * seconds, "admitted": admitted}
            )
    return rows[sets:]


def _once(method: str, gpu: GpuDevice, slos: Sequence[LatencySlo], seed: int) -> tuple[float, int]:
    """The time of one call, s, and how many SLOs it admits."""
    if method != ARRAY_METHOD:
        found = judge_admission(method, gpu, slos, seed)
        return found.seconds, found.admitted
    begin = perf_counter()
    admitted, _ = admit_greedily(gpu, slos)
    return perf_counter() - begin, len(admitted)


def _row(bus: str, method: str, of: pd.DataFrame) -> dict[str, object]:
    by_size = of.groupby("slos")["us"]
    largest = of[of["slos"] == MOST_SLOS]
    comparable = method in (ARRAY_METHOD, "grus")
    worse = comparable and by_size.median().max() > PUBLISHED_US
    return {
        "bus": bus,
        "method": method,
        "us_for_10": round(float(by_size.median().iloc[0]), 1),
        "us_for_100": round(float(largest["us"].median()), 1),
        "longest_us_for_100": round(float(largest["us"].max()), 1),
        "published_us": f"below {PUBLISHED_US:.0f}" if comparable else NOT_PRINTED,
        "admitted_of_100": round(float(largest["admitted"].mean()), 1),
        "verdict": verdict_on(["us"] if worse else []),
    }


FIGURE_NOTES = (
    "us_for_10 and us_for_100 are medians over the sets of one call in Python, with everything from SLOs to answer, "
    "longest_us_for_100 the longest. grus on arrays is what `python -m benches admission` measures, without a bound; "
    "grus, to which the others are compared, also finds a bound, in Python.",
    f"exact stops after {TIME_LIMIT_S:g} s of search, with a bound. The published heuristic is in C, on another CPU.",
    "Rates are 0.1 to 2 Gbps, latencies the shortest of an NF alone plus 5 to 30 %; there is a worker for each SLO.",
)


def _draw(figure: Figure, runs: pd.DataFrame) -> None:
    """A panel per bus."""
    panels = figure.subplots(1, len(BUS_SCHEDULES), sharey=True)
    for axes, bus in zip(panels, BUS_SCHEDULES, strict=True):
        for method in (ARRAY_METHOD, *METHOD_NAMES):
            of = runs[(runs["bus"] == bus) & (runs["method"] == method)].groupby("slos")["us"].median()
            axes.plot(of.index, of.to_numpy(), marker=".", label=method)
        axes.axhline(PUBLISHED_US, color="gray", linestyle="--", label="published, at most")
        axes.set(yscale="log", title=bus, xlabel="SLOs")
    panels[0].set_ylabel("time (us)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
