"""Figure 4: two users of the regex accelerator, from a light competitor to the equilibrium of equation 2."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.benches import accelerator_bench
from experiments.methodology.card import DEFAULT
from experiments.methodology.synthetic import CARD, REGEX_NF
from experiments.methodology.workloads import Fact, fact_table
from experiments.registry import Result, Setting, experiment
from predictor.contention.accelerators import equilibrium
from profiles import Load, TrafficProfile, Workload

MATCH_RATES = ((194.0, 194.0), (194.0, 628.0), (628.0, 194.0), (628.0, 628.0))
"""Matches/MB of regex-NF and of regex-bench."""
RATES = 40
MOST_KPPS = 1600.0
LIGHT = 0.8
"""Share of the equilibrium below which the competitor is light."""


@experiment("figure4", "Linear drop and equilibrium on the regex accelerator")
def run(setting: Setting) -> Result:
    """regex-NF beside regex-bench, whose request rate rises until both are served alike."""
    table = pd.concat([_beside(own, other, setting) for own, other in MATCH_RATES], ignore_index=True)
    facts = []
    for pair, rows in table.groupby("matches", sort=False):
        reached, expected = rows["throughput_kpps"].iloc[-1], rows["equation_2_kpps"].iloc[-1]
        light = rows[rows["bench_kpps"] < LIGHT * expected]
        off_line = 100 * (light["throughput_kpps"] / light["equation_8_kpps"] - 1).abs().max()
        facts += [
            Fact(f"{pair}: equilibrium", reached, unit="kpps"),
            Fact(f"{pair}: equilibrium off equation 2", 100 * abs(reached / expected - 1), 0.0),
            Fact(
                f"{pair}: regex-bench off regex-NF there",
                100 * abs(rows["bench_reached_kpps"].iloc[-1] / reached - 1),
                0.0,
            ),
            Fact(f"{pair}: light part off the line of equation 8", off_line, 0.0),
        ]
    return Result(
        fact_table(facts),
        (
            "the simulated BlueField-2: regex-NF and regex-bench.",
            "BlueField-2: nothing; its measurements hold no rates of regex-bench. The card's regex accelerator is "
            "calibrated to FlowMonitor's service times there.",
        ),
        lambda figure: _draw(figure, table),
        (
            "the paper tells one equilibrium, 48.9 Mpps at 194 matches/MB and 1500 B: above line rate (8.2 Mpps), so "
            "it is not compared; 489 kpps would be what 194 beside 628 matches/MB gives here.",
            "published 0: the paper says that the curves follow the equations, and measures no distance.",
        ),
        {"throughput": table},
    )


def _beside(own: float, other: float, setting: Setting) -> pd.DataFrame:
    nf = Workload(REGEX_NF.name, TrafficProfile(DEFAULT.flows, DEFAULT.packet_size, own))
    rates = np.linspace(0, MOST_KPPS, setting.count(RATES, least=9)).tolist()
    # a bench at rate 0 goes as fast as it can: alone comes first, saturated last
    loads: list[list[Load]] = [[nf]]
    loads += [[nf, accelerator_bench("regex", rate, other)] for rate in [*rates[1:], 0.0]]
    runs = CARD.run_many(loads, noise=False)
    reached = [run.measurements[0].throughput_kpps for run in runs]
    bench = [0.0, *(run.measurements[1].throughput_kpps for run in runs[1:])]
    (bench_alone,) = (
        one.throughput_kpps for one in CARD.run([accelerator_bench("regex", 0.0, other)], noise=False).measurements
    )
    times = 1 / reached[0], 1 / bench_alone
    offered = np.array([*rates, bench_alone])
    return pd.DataFrame(
        {
            "matches": f"{own:g} beside {other:g} matches/MB",
            "bench_kpps": offered,
            "throughput_kpps": reached,
            "bench_reached_kpps": bench,
            "equation_2_kpps": equilibrium([1, 1], times)[0],
            "equation_8_kpps": np.maximum(1 - offered / bench_alone, 0) * reached[0],
        }
    )


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    for at, (pair, rows) in enumerate(table.groupby("matches", sort=False)):
        swept = rows.iloc[:-1]
        axes.plot(swept["bench_kpps"], swept["throughput_kpps"], color=f"C{at}", label=f"regex-NF, {pair}")
        axes.plot(swept["bench_kpps"], swept["bench_reached_kpps"], ":", color=f"C{at}")
        axes.axhline(rows["equation_2_kpps"].iloc[0], color=f"C{at}", linewidth=0.5)
    axes.set_xlabel("request rate of regex-bench (kpps)")
    axes.set_ylabel("throughput (kpps)")
    axes.legend(title="dotted: regex-bench; thin: equation 2")
