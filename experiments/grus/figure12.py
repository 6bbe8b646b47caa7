"""Figure 12: the share of SLOs that are admitted, with SMs sliced into executors and without (section VII-C)."""

from collections.abc import Iterator
from random import Random

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.grus import BUS_SCHEDULES, MODELLED_GPU, PAPER
from experiments.grus.methodology.judging import judge_admission
from experiments.grus.methodology.paper_gpu import FREE_BATCH, device, random_slos
from experiments.registry import Result, Setting, experiment

SET_SIZES = (8, 8, 8, 9, 9, 9, 10, 10, 10)  # of sets 1 to 9
METHODS_SHOWN = ("exact", "grus", "grus-ns")
PUBLISHED_SHARES = {"grus": "over 90 %", "grus-ns": "less than 50 %"}
TOLERANCE_RANGE = (0.05, 0.15)  # as in figure 10(c); that of figure 12 is not printed
LOADS_GBPS = {"2 Gbps each": (2.0, 2.0), "0.1 to 10 Gbps each": (0.1, 10.0)}
"""Of each SLO: the flows of section II-A, and the range of section V-A."""

KEY_COLUMNS = ["load", "bus", "method"]


@experiment(PAPER, "grus-figure12", "SLOs admitted with and without slicing SMs")
def run(setting: Setting) -> Result:
    """Nine sets, two loads and both buses."""
    runs = pd.DataFrame(_runs(setting))
    table = pd.DataFrame(
        [
            _row(str(load), str(bus), str(method), of)
            for (load, bus, method), of in runs.groupby(KEY_COLUMNS, sort=False)
        ]
    )
    return Result(table, (MODELLED_GPU,), lambda figure: _draw(figure, runs), FIGURE_NOTES, {"sets": runs})


def _runs(setting: Setting) -> Iterator[dict[str, object]]:
    for load, gbps in LOADS_GBPS.items():
        for bus in BUS_SCHEDULES:
            setting.say(f"{load}, {bus} bus: {len(SET_SIZES)} sets")
            gpu, rng = device(bus), Random(f"figure12 {setting.seed}")
            for number, size in enumerate(SET_SIZES, start=1):
                slos = random_slos(gpu, size, rng, baseline=FREE_BATCH, tolerances=TOLERANCE_RANGE, gbps=gbps)
                for method in METHODS_SHOWN:
                    found = judge_admission(method, gpu, slos, setting.seed)
                    yield {
                        "load": load,
                        "bus": bus,
                        "method": method,
                        "set": number,
                        "slos": size,
                        "admitted": found.admitted,
                        "satisfied": found.satisfied,
                        "ratio_pct": 100 * found.satisfied / size,
                    }


def _row(load: str, bus: str, method: str, of: pd.DataFrame) -> dict[str, object]:
    least, most = float(of["ratio_pct"].min()), float(of["ratio_pct"].max())
    differs = (method == "grus" and least <= 90) or (method == "grus-ns" and most >= 50)
    return {
        "load": load,
        "bus": bus,
        "method": method,
        "mean_pct": round(float(of["ratio_pct"].mean()), 1),
        "least_pct": round(least, 1),
        "most_pct": round(most, 1),
        "published": PUBLISHED_SHARES.get(method, "no such method"),
        "verdict": "differs" if differs else "",
    }


FIGURE_NOTES = (
    "Shares of the SLOs of nine sets (three each of 8, 9 and 10 SLOs) that are admitted and keep their latency: the "
    "mean over the sets, the least and the most.",
    "Latencies are those of an NF alone with a batch of 256 packets, plus 5 to 15 %. The paper prints neither the "
    "tolerance nor the rates of this figure.",
    "Without slicing, an SM serves one SLO at a time. The GPU has 30 SMs: as many SLOs find room if each takes few of "
    "them, and the published gap must come from NFs that take many, whose sizes are not printed.",
)


def _draw(figure: Figure, runs: pd.DataFrame) -> None:
    """A panel per load and bus, bars of each set."""
    panels = figure.subplots(len(LOADS_GBPS), len(BUS_SCHEDULES), sharex=True, sharey=True)
    sets = list(dict.fromkeys(runs["set"]))
    at = np.arange(len(sets))
    for row, load in zip(panels, LOADS_GBPS, strict=True):
        for axes, bus in zip(row, BUS_SCHEDULES, strict=True):
            for number, method in enumerate(METHODS_SHOWN):
                of = runs[(runs["load"] == load) & (runs["bus"] == bus) & (runs["method"] == method)]
                axes.bar(at + 0.27 * (number - 1), of["ratio_pct"], 0.25, label=method)
            axes.set_title(f"{load}, {bus}")
            axes.set_xticks(at, list(map(str, sets)))
            axes.set_xlabel("set")
        row[0].set_ylabel("SLOs admitted (%)")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
