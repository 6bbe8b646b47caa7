"""Plots shared by several figures."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from profiles.arrays import Floats


def boxes(axes: Axes, values: Mapping[str, Floats], ylabel: str) -> None:
    """A box per key, whiskers at the 5th and 95th percentile, the median as text above."""
    filled = {label: of for label, of in values.items() if len(of)}
    axes.boxplot(list(filled.values()), whis=(5, 95), showfliers=False, widths=0.5)
    axes.set_xticks(range(1, len(filled) + 1), list(filled), rotation=40, ha="right", rotation_mode="anchor")
    for place, of in enumerate(filled.values(), start=1):
        axes.text(place, float(np.quantile(of, 0.95)), f"{np.median(of):.1f}", ha="center", va="bottom")
    axes.set_ylabel(ylabel)


def curves(axes: Axes, table: pd.DataFrame, x: str, by: str, xlabel: str) -> None:
    """Throughput over the column `x`, a line per value of the column `by`; predictions, if any, as crosses."""
    for at, (value, rows) in enumerate(table.groupby(by, sort=True)):
        axes.plot(
            rows[x],
            rows["throughput_kpps"],
            color=f"C{at}",
            label=f"{value:g}" if isinstance(value, float) else str(value),
        )
        if "predicted_kpps" in rows:
            axes.plot(rows[x], rows["predicted_kpps"], "x", color=f"C{at}", markersize=4)
    axes.set(xlabel=xlabel, ylabel="throughput (kpps)", ylim=(0, None))
