"""Figure 1: what company costs nine NFs."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.methodology.accuracy import quantiles
from experiments.methodology.card import CARD, truth
from experiments.methodology.co_locations import co_locations_of
from experiments.methodology.plots import boxes
from experiments.methodology.workloads import Fact, fact_table
from experiments.registry import Result, Setting, experiment
from traces.arrivals import TABLE_2_NFS

CO_LOCATIONS = 300
PUBLISHED = {"median": (1.9, 10.6), "p95": (4.2, 62.2)}
"""Over the NFs, the lowest and the highest."""


@experiment("figure1", "Throughput drop beside up to three others")
def run(setting: Setting) -> Result:
    """Nine NFs at default traffic, each beside one to three random NFs of table 1, or of the nine themselves."""
    pools = {"table 1": [nf.name for nf in CARD.describe().nfs], "table 2": list(TABLE_2_NFS)}
    drops = {pool: {nf: _drops(nf, others, setting) for nf in TABLE_2_NFS} for pool, others in pools.items()}
    table = pd.DataFrame(
        [
            {"others": pool, "nf": nf, "runs": len(values), **quantiles(values)}
            for pool, of in drops.items()
            for nf, values in of.items()
        ]
    )
    facts = [
        Fact(f"{end} {column} drop of the NFs, others of {pool}", getattr(rows[column], how)(), published)
        for pool, rows in table.groupby("others", sort=False)
        for column, ends in PUBLISHED.items()
        for end, how, published in zip(("lowest", "highest"), ("min", "max"), ends, strict=True)
    ]

    def draw(figure: Figure) -> None:
        for axes, (pool, of) in zip(figure.subplots(1, 2, sharey=True), drops.items(), strict=True):
            boxes(axes, of, "throughput drop (%)")
            axes.set_title(f"others of {pool}")

    return Result(
        fact_table(facts),
        ("the simulated BlueField-2: every run.", "BlueField-2: nothing; its measurements hold no company of NFs."),
        draw,
        (
            "the drops of each NF are drawn in the paper, not told; the card was calibrated to these four numbers with "
            "the nine NFs of table 2. The paper draws the others from table 1, where every third of them uses regex.",
        ),
        {"drops": table},
    )


def _drops(nf: str, others: list[str], setting: Setting) -> NDArray[np.float64]:
    """Drops (%) against running alone."""
    co_locations = co_locations_of(nf, setting.count(CO_LOCATIONS), setting.rng(f"figure1 {nf}"), others=others)
    return 100 * (1 - truth(co_locations) / truth([co_locations[0][:1]]))
