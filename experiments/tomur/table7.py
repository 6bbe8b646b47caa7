"""Table 7: which resource is the bottleneck while the match rate rises, told by predictors and by the card itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise, product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import is_worse
from experiments.methodology.benches import accelerator_bench, beside_benches, mem_bench
from experiments.methodology.card import CARD, DEFAULT
from experiments.methodology.slomo import predictors
from experiments.registry import Result, Setting, experiment
from profiles import BenchLoad, TrafficProfile, Workload

MATCH_RATES = (0.0, 1100.0)
STEPS = 56
MEMORY = ((5.0, 20.0), (10.0, 40.0), (10.0, 100.0))
"""mem-bench: MB, and million accesses/s."""
REGEX = ((0.0, 0.0), (300.0, 600.0), (0.0, 600.0))
"""regex-bench: requests (kpps; 0 is as fast as it goes), and their match rate."""

PUBLISHED = {
    "FlowStats": {"slomo": 100.0, "tomur": 100.0},
    "FlowMonitor": {"slomo": 38.7, "tomur": 100.0},
    "IPCompGateway": {"slomo": 29.3, "tomur": 100.0},
}

Told = dict[str, list[str]]
"""By the name of who tells, the bottleneck at every match rate; `CARD` tells the truth."""

TRUTH = "card"


@experiment("table7", "Correct identification of the bottleneck while the match rate rises")
def run(setting: Setting) -> Result:
    """Three NFs beside mem-bench and regex-bench at fixed levels, with 0 to 1100 matches/MB."""
    rates = np.linspace(*MATCH_RATES, setting.count(STEPS, least=12))
    rows, shifts = [], []
    for nf, published in PUBLISHED.items():
        swept = [_swept(nf, benches, rates, setting) for benches in _levels()]
        for name, theirs in published.items():
            correct = [ours == true for told in swept for ours, true in zip(told[name], told[TRUTH], strict=True)]
            off = [abs(ours - true) for ours, true in _shifts(swept, name, rates) if not np.isnan(ours + true)]
            rows.append(_row(nf, name, correct, off, theirs))
            shifts += [{"nf": nf, "predictor": name, "predicted": o, "true": t} for o, t in _shifts(swept, name, rates)]
    table, seen = pd.DataFrame(rows), pd.DataFrame(shifts)
    return Result(
        table,
        ("the simulated BlueField-2: everything.", "BlueField-2: nothing; nobody analysed hotspots on one."),
        partial(_draw, table=table, shifts=seen),
        (
            f"beside {len(MEMORY)} levels of mem-bench and {len(REGEX)} of regex-bench, at "
            f"{len(rates)} match rates each; the levels of the paper are not published.",
            "the truth is the simulated card's own accounting of where the time of a packet went.",
            "off is how far from the true match rate (matches/MB) the shift from memory to regex is predicted.",
        ),
        {"shifts": seen},
    )


def _levels() -> list[tuple[BenchLoad, ...]]:
    return [(mem_bench(*memory), accelerator_bench("regex", *regex)) for memory, regex in product(MEMORY, REGEX)]


def _swept(nf: str, benches: Sequence[BenchLoad], rates: np.ndarray, setting: Setting) -> Told:
    traffics = [TrafficProfile(DEFAULT.flows, DEFAULT.packet_size, float(rate)) for rate in rates]
    beside = beside_benches(nf, [(traffic, benches) for traffic in traffics], setting)
    accounts = CARD.account([[Workload(nf, traffic), *benches] for traffic in traffics])
    told = {TRUTH: [account.bottleneck for account, *_ in accounts]}
    for name, predictor in predictors(setting).items():
        told[name] = [answer.bottleneck for answer in predictor.contention_details(nf, beside.table)]
    return told


def _shifts(swept: Sequence[Told], name: str, rates: np.ndarray) -> list[tuple[float, float]]:
    """Per level the match rate at which the bottleneck first changes, as told and in truth; NaN where it does not."""
    return [(_shift(told[name], rates), _shift(told[TRUTH], rates)) for told in swept]


def _shift(bottlenecks: Sequence[str], rates: np.ndarray) -> float:
    changes = (at for at, (before, after) in enumerate(pairwise(bottlenecks)) if before != after)
    first = next(changes, None)
    return np.nan if first is None else float(rates[first] + rates[first + 1]) / 2


def _row(nf: str, predictor: str, correct: Sequence[bool], off: Sequence[float], theirs: float) -> dict[str, object]:
    ours = 100.0 * float(np.mean(correct))
    return {
        "nf": nf,
        "predictor": predictor,
        "answers": len(correct),
        "correct_pct": ours,
        "published_correct_pct": theirs,
        "off": float(np.mean(off)) if off else np.nan,
        "worse": "correct" if is_worse(ours, theirs, higher_is_better=True) else "",
    }


def _draw(figure: Figure, table: pd.DataFrame, shifts: pd.DataFrame) -> None:
    """Correct answers beside the published, and where the bottleneck shifts, predicted against true."""
    bars, points = figure.subplots(1, 2)
    names = [f"{row.nf}\n{row.predictor}" for row in table.itertuples()]
    places = np.arange(len(table))
    bars.barh(places - 0.2, table["correct_pct"], 0.4, label="ours, simulated card")
    bars.barh(places + 0.2, table["published_correct_pct"], 0.4, label="published", color="lightgray")
    bars.set_yticks(places, names, fontsize=7)
    bars.invert_yaxis()
    bars.set_xlabel("bottlenecks named right, %")
    bars.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    points.plot(MATCH_RATES, MATCH_RATES, color="lightgray", linewidth=1)
    for predictor, marker in (("tomur", "o"), ("slomo", "x")):
        of = shifts[shifts["predictor"] == predictor]
        points.plot(of["true"], of["predicted"], marker, label=predictor)
    points.set_xlabel("the bottleneck shifts at (matches/MB)")
    points.set_ylabel("predicted")
    points.legend(frameon=False)
