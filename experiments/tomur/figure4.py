"""Figure 4: two users of the regex accelerator, from a light competitor to the equilibrium of equation 2."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.findings import Finding, findings_table
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.benches import accelerator_bench
from experiments.tomur.methodology.simulated_card import DEFAULT_TRAFFIC
from experiments.tomur.methodology.synthetic_nfs import REGEX_NF, SYNTHETIC_CARD
from predictor.contention.accelerators import equilibrium
from profiles import Load, TrafficProfile, Workload

MATCH_RATES = ((194.0, 194.0), (194.0, 628.0), (628.0, 194.0), (628.0, 628.0))
"""Matches/MB of regex-NF and of regex-bench."""
RATE_COUNT = 40
MOST_KPPS = 1600.0
LIGHT_SHARE = 0.8  # share of the equilibrium below which the competitor is light


@experiment(PAPER, "figure4", "Linear drop and equilibrium throughput on the regex accelerator")
def run(setting: Setting) -> Result:
    """regex-NF with regex-bench, whose request rate rises until both are served at the same rate."""
    table = pd.concat([_sweep_rates(own, other, setting) for own, other in MATCH_RATES], ignore_index=True)
    findings = []
    for pair, rows in table.groupby("matches", sort=False):
        reached, expected = rows["throughput_kpps"].iloc[-1], rows["equation_2_kpps"].iloc[-1]
        light = rows[rows["bench_kpps"] < LIGHT_SHARE * expected]
        from_line = 100 * (light["throughput_kpps"] / light["equation_8_kpps"] - 1).abs().max()
        findings += [
            Finding(f"{pair}: equilibrium", reached, unit="kpps"),
            Finding(f"{pair}: equilibrium, distance from equation 2", 100 * abs(reached / expected - 1), 0.0),
            Finding(
                f"{pair}: equilibrium, distance of regex-bench from regex-NF",
                100 * abs(rows["bench_reached_kpps"].iloc[-1] / reached - 1),
                0.0,
            ),
            Finding(f"{pair}: light competitor, largest distance from equation 8", from_line, 0.0),
        ]
    return Result(
        findings_table(findings),
        (
            f"{SIMULATED_CARD}: regex-NF and regex-bench. Its regex accelerator is calibrated to the service times of "
            "FlowMonitor on the hardware.",
            f"{HARDWARE_CARD}: no runs; the measurements contain no request rates of regex-bench.",
        ),
        lambda figure: _draw(figure, table),
        (
            "The paper gives one equilibrium, 48.9 Mpps at 194 matches/MB and 1500 B. That is above line rate (8.2 "
            "Mpps), so it is not compared. 489 kpps would match ours of 194 with 628 matches/MB.",
            "A published 0 means: the paper states that the curves follow the equations and gives no distance.",
        ),
        {"throughput": table},
    )


def _sweep_rates(own: float, other: float, setting: Setting) -> pd.DataFrame:
    """Throughputs over the request rate of regex-bench, and those of both equations."""
    nf = Workload(REGEX_NF.name, TrafficProfile(DEFAULT_TRAFFIC.flows, DEFAULT_TRAFFIC.packet_size, own))
    rates = np.linspace(0, MOST_KPPS, setting.count(RATE_COUNT, least=9)).tolist()
    # rate 0 of a bench means unlimited: the first run is the NF alone, the last one the saturated accelerator
    loads: list[list[Load]] = [[nf]]
    loads += [[nf, accelerator_bench("regex", rate, other)] for rate in [*rates[1:], 0.0]]
    runs = SYNTHETIC_CARD.run_many(loads, noise=False)
    reached = [run.measurements[0].throughput_kpps for run in runs]
    bench = [0.0, *(run.measurements[1].throughput_kpps for run in runs[1:])]
    (bench_alone,) = (
        measurement.throughput_kpps
        for measurement in SYNTHETIC_CARD.run([accelerator_bench("regex", 0.0, other)], noise=False).measurements
    )
    times = 1 / reached[0], 1 / bench_alone
    offered = np.array([*rates, bench_alone])
    return pd.DataFrame(
        {
            "matches": f"{own:g} with {other:g} matches/MB",
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
    axes.set(xlabel="request rate of regex-bench (kpps)", ylabel="throughput (kpps)")
    axes.legend(title="dotted: regex-bench; thin: equation 2")
