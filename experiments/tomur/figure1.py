"""Figure 1: throughput drops of nine NFs when co-located."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.methodology.accuracy import quantiles
from experiments.methodology.findings import Finding, findings_table
from experiments.methodology.plots import boxes
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.co_locations import co_locations_of
from experiments.tomur.methodology.simulated_card import CARD, truth
from traces.arrivals import TABLE_2_NFS

CO_LOCATIONS = 300
PUBLISHED_DROPS = {"median": (1.9, 10.6), "p95": (4.2, 62.2)}  # the lowest and the highest over the NFs


@experiment(PAPER, "figure1", "Throughput drop when co-located with up to three NFs")
def run(setting: Setting) -> Result:
    """Nine NFs at default traffic, each co-located with one to three random NFs of table 1 or of table 2."""
    pools = {"table 1": [nf.name for nf in CARD.describe().nfs], "table 2": list(TABLE_2_NFS)}
    drops = {pool: {nf: _drops(nf, others, setting) for nf in TABLE_2_NFS} for pool, others in pools.items()}
    table = pd.DataFrame(
        [
            {"others": pool, "nf": nf, "runs": len(values), **quantiles(values)}
            for pool, of in drops.items()
            for nf, values in of.items()
        ]
    )
    findings = [
        Finding(f"{end} {column} drop of an NF, others from {pool}", getattr(rows[column], how)(), published)
        for pool, rows in table.groupby("others", sort=False)
        for column, ends in PUBLISHED_DROPS.items()
        for end, how, published in zip(("lowest", "highest"), ("min", "max"), ends, strict=True)
    ]

    def draw(figure: Figure) -> None:
        for axes, (pool, of) in zip(figure.subplots(1, 2, sharey=True), drops.items(), strict=True):
            boxes(axes, of, "throughput drop (%)")
            axes.set_title(f"others from {pool}")

    return Result(
        findings_table(findings),
        (f"{SIMULATED_CARD}: all runs.", f"{HARDWARE_CARD}: no runs; the measurements contain no co-located NFs."),
        draw,
        (
            "The paper selects the others from table 1, where one NF in three uses regex. It shows the drops of each "
            "NF as boxes; its text gives only these four numbers.",
            "The simulated card was calibrated to these four numbers with the nine NFs of table 2 as the others.",
        ),
        {"drops": table},
    )


def _drops(nf: str, others: list[str], setting: Setting) -> NDArray[np.float64]:
    """Drops (%) against running alone."""
    co_locations = co_locations_of(nf, setting.count(CO_LOCATIONS), setting.rng(f"figure1 {nf}"), others=others)
    return 100 * (1 - truth(co_locations) / truth([co_locations[0][:1]]))
