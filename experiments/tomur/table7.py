"""Table 7: the bottleneck resource while the match rate rises, as predicted and as accounted by the simulated card."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise, product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import is_worse, verdict_on
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.benches import accelerator_bench, mem_bench, run_with_benches
from experiments.tomur.methodology.simulated_card import CARD, DEFAULT_TRAFFIC
from experiments.tomur.methodology.slomo import predictors
from profiles import BenchLoad, TrafficProfile, Workload

MATCH_RATES = (0.0, 1100.0)
RATE_STEPS = 56
MEMORY_BENCHES = ((5.0, 20.0), (10.0, 40.0), (10.0, 100.0))  # mem-bench: MB, and million accesses/s
REGEX_BENCHES = ((0.0, 0.0), (300.0, 600.0), (0.0, 600.0))
"""regex-bench: request rate (kpps; 0 is unlimited), and matches/MB."""

PUBLISHED_SHARES = {
    "FlowStats": {"slomo": 100.0, "tomur": 100.0},
    "FlowMonitor": {"slomo": 38.7, "tomur": 100.0},
    "IPCompGateway": {"slomo": 29.3, "tomur": 100.0},
}

Bottlenecks = dict[str, list[str]]
"""The bottleneck at every match rate, by predictor; under `TRUE_BOTTLENECK` the true one."""

TRUE_BOTTLENECK = "card"


@experiment(PAPER, "table7", "Correct identification of the bottleneck while the match rate rises")
def run(setting: Setting) -> Result:
    """Three NFs co-located with mem-bench and regex-bench at fixed levels, with 0 to 1100 matches/MB."""
    rates = np.linspace(*MATCH_RATES, setting.count(RATE_STEPS, least=12))
    rows, shifts = [], []
    for nf, published in PUBLISHED_SHARES.items():
        swept = [_sweep_bottlenecks(nf, benches, rates, setting) for benches in _levels()]
        for name, theirs in published.items():
            correct = [
                ours == true for each in swept for ours, true in zip(each[name], each[TRUE_BOTTLENECK], strict=True)
            ]
            pairs = _shifts(swept, name, rates)
            errors = [abs(ours - true) for ours, true in pairs if not np.isnan(ours + true)]
            rows.append(_row(nf, name, correct, errors, theirs))
            shifts += [{"nf": nf, "predictor": name, "predicted": ours, "true": true} for ours, true in pairs]
    table, shift_table = pd.DataFrame(rows), pd.DataFrame(shifts)
    return Result(
        table,
        (
            f"{SIMULATED_CARD}: all runs.",
            f"{HARDWARE_CARD}: no runs; the measurements contain no analysis of bottlenecks.",
        ),
        partial(_draw, table=table, shifts=shift_table),
        (
            f"Every combination of {len(MEMORY_BENCHES)} levels of mem-bench and {len(REGEX_BENCHES)} of regex-bench, "
            f"each at {len(rates)} match rates. The paper does not publish its levels.",
            "The true bottleneck comes from the simulated card, which accounts the time of every packet by resource.",
            "Column shift_error: distance (matches/MB) between the predicted and the true match rate at which the "
            "bottleneck shifts from memory to regex.",
        ),
        {"shifts": shift_table},
    )


def _levels() -> list[tuple[BenchLoad, ...]]:
    return [
        (mem_bench(*memory), accelerator_bench("regex", *regex))
        for memory, regex in product(MEMORY_BENCHES, REGEX_BENCHES)
    ]


def _sweep_bottlenecks(nf: str, benches: Sequence[BenchLoad], rates: np.ndarray, setting: Setting) -> Bottlenecks:
    """The bottlenecks with these benches, over the match rates."""
    traffics = [TrafficProfile(DEFAULT_TRAFFIC.flows, DEFAULT_TRAFFIC.packet_size, float(rate)) for rate in rates]
    runs = run_with_benches(nf, [(traffic, benches) for traffic in traffics], setting)
    accounts = CARD.account([[Workload(nf, traffic), *benches] for traffic in traffics])
    bottlenecks = {TRUE_BOTTLENECK: [account.bottleneck for account, *_ in accounts]}
    for name, predictor in predictors(setting).items():
        bottlenecks[name] = [details.bottleneck for details in predictor.contention_details(nf, runs.table)]
    return bottlenecks


def _shifts(swept: Sequence[Bottlenecks], name: str, rates: np.ndarray) -> list[tuple[float, float]]:
    """Per level of contention, the match rate of the first change of the bottleneck: predicted, and true. NaN where it
    never changes."""
    return [(_shift(each[name], rates), _shift(each[TRUE_BOTTLENECK], rates)) for each in swept]


def _shift(bottlenecks: Sequence[str], rates: np.ndarray) -> float:
    changes = (at for at, (before, after) in enumerate(pairwise(bottlenecks)) if before != after)
    first = next(changes, None)
    return np.nan if first is None else float(rates[first] + rates[first + 1]) / 2


def _row(
    nf: str, predictor: str, correct: Sequence[bool], shift_errors: Sequence[float], theirs: float
) -> dict[str, object]:
    ours = 100.0 * float(np.mean(correct))
    return {
        "nf": nf,
        "predictor": predictor,
        "predictions": len(correct),
        "correct_pct": ours,
        "published_correct_pct": theirs,
        "shift_error": float(np.mean(shift_errors)) if shift_errors else np.nan,
        "verdict": verdict_on(["correct"] if is_worse(ours, theirs, higher_is_better=True) else []),
    }


def _draw(figure: Figure, table: pd.DataFrame, shifts: pd.DataFrame) -> None:
    """Share of correct predictions next to the published one, and predicted over true shifts of the bottleneck."""
    bars, points = figure.subplots(1, 2)
    names = [f"{row.nf}\n{row.predictor}" for row in table.itertuples()]
    places = np.arange(len(table))
    bars.barh(places - 0.2, table["correct_pct"], 0.4, label="ours, simulated card")
    bars.barh(places + 0.2, table["published_correct_pct"], 0.4, label="published", color="lightgray")
    bars.set_yticks(places, names, fontsize=7)
    bars.invert_yaxis()
    bars.set_xlabel("correctly predicted bottlenecks, %")
    bars.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    points.plot(MATCH_RATES, MATCH_RATES, color="lightgray", linewidth=1)
    for predictor, marker in (("tomur", "o"), ("slomo", "x")):
        of = shifts[shifts["predictor"] == predictor]
        points.plot(of["true"], of["predicted"], marker, label=predictor)
    points.set(xlabel="true shift of the bottleneck (matches/MB)", ylabel="predicted shift (matches/MB)")
    points.legend(frameon=False)
