"""Figure 3a: chains 1, 2 and 3 on one and on two servers of eight cores (section 5.3)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.lemur import BY_CYCLES, NOT_PRINTED, PAPER
from experiments.lemur.methodology.compared import TIME_LIMIT_S, aggregate_gbps
from experiments.lemur.methodology.paper_rack import chains, rack, server
from experiments.registry import Result, Setting, experiment
from placer.rack.strategies.optimal import best_plan

CHAIN_NUMBERS = (1, 2, 3)
RATE_DELTAS = (0.5, 1.0, 1.5)
SERVER_CORES = 8
PUBLISHED_TEXTS = {0.5: "one server: less than half of two", 1.5: "one server: no plan"}


@experiment(PAPER, "lemur-figure3a", "Chains 1, 2 and 3 on one and on two servers of eight cores")
def run(setting: Setting) -> Result:
    """The proven optimum at three least rates."""
    table = pd.DataFrame([_row(delta) for delta in RATE_DELTAS])
    return Result(
        table,
        (BY_CYCLES,),
        lambda figure: _draw(figure, table),
        (
            "Of the eight cores of a server two steer packets. Each server has a NIC of 40 Gbps. Rates are the "
            "aggregate of the proven optimum; a dash is an instance that is proven infeasible.",
            "The bars of the figure are not printed as numbers; published is what the text says of them.",
        ),
    )


def _row(delta: float) -> dict[str, object]:
    one, two = (_gbps(delta, names) for names in (["s0"], ["s0", "s1"]))
    published = PUBLISHED_TEXTS.get(delta, NOT_PRINTED)
    agrees = {0.5: one < two / 2, 1.5: bool(np.isnan(one))}.get(delta, True)
    return {
        "delta": delta,
        "one_server_gbps": one,
        "two_servers_gbps": two,
        "one_of_two_pct": 100 * one / two,
        "published": published,
        "verdict": "" if agrees else "differs",
    }


def _gbps(delta: float, servers: Sequence[str]) -> float:
    on = rack(servers=[server(name, SERVER_CORES) for name in servers])
    return round(aggregate_gbps(best_plan(chains(CHAIN_NUMBERS, delta), on, time_limit=TIME_LIMIT_S)), 2)


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    at = np.arange(len(table))
    for number, (column, label) in enumerate((("one_server_gbps", "one server"), ("two_servers_gbps", "two servers"))):
        bars = axes.bar(at + (number - 0.5) * 0.4, table[column].fillna(0), 0.38, label=label)
        axes.bar_label(bars, [f"{value:.2f}" if value else "no plan" for value in table[column].fillna(0)])
    axes.set_xticks(at, [f"{delta:g}" for delta in table["delta"]])
    axes.set(xlabel="delta", ylabel="aggregate (Gbps)")
    axes.legend(frameon=False)
