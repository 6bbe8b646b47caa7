"""Figure 4 on the machine at hand: two users of a software regex engine that serves its queues round robin."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.facts import Fact, fact_table
from experiments.methodology.host import Measured, measure, open_host
from experiments.registry import Result, Setting, experiment
from predictor.accelerators import equilibrium
from profiles import BenchLoad, Load, TrafficProfile, Workload

MATCH_RATES = ((200.0, 200.0), (200.0, 800.0), (800.0, 200.0), (800.0, 800.0))
"""Matches/MB of PacketFilter and of regex-bench."""
SHARES = tuple(np.linspace(0.1, 0.9, 9))
"""Rates of regex-bench, as shares of what it reaches alone; then as fast as it goes."""
PACKET_SIZE = 1500
FLOWS = 1_000
LIGHT = 0.8
"""Share of the equilibrium below which the competitor is light."""


@experiment("figure4-host", "Round robin on a software regex engine of the machine at hand")
def run(setting: Setting) -> Result:
    """PacketFilter beside regex-bench, whose request rate rises until both are served alike."""
    with open_host("--share-client-core") as testbed:
        machine = testbed.describe()
        pairs = MATCH_RATES if setting.scale >= 1 else MATCH_RATES[1:2]
        shares = SHARES if setting.scale >= 1 else SHARES[::4]
        singles: list[list[Load]] = [[load] for own, other in pairs for load in (_filter(own), _bench(other, 0))]
        alone = measure(testbed, singles, setting)
        sweeps: list[list[Load]] = [
            [_filter(own), _bench(other, rate)]
            for (own, other), bench in zip(pairs, alone[1::2], strict=True)
            for rate in (*(round(share * float(bench.mean[0]), 1) for share in shares), 0.0)
        ]
        beside = measure(testbed, sweeps, setting)
    table = pd.concat(
        [
            _table(pair, alone[2 * at], alone[2 * at + 1], beside[at * len(beside) // len(pairs) :], shares)
            for at, pair in enumerate(pairs)
        ],
        ignore_index=True,
    )
    return Result(
        fact_table(_facts(table)),
        (
            f"{machine.name}: everything, measured; PacketFilter and regex-bench take turns on one core, the engine, "
            "Hyperscan in software, has another.",
        ),
        lambda figure: _draw(figure, table),
        (
            "published 0: the paper says that the curves follow the equations, and measures no distance.",
            "spread is the standard error over repeats made in turn.",
        ),
        {"throughput": table},
    )


def _filter(mtbr: float) -> Workload:
    return Workload("PacketFilter", TrafficProfile(FLOWS, PACKET_SIZE, mtbr))


def _bench(mtbr: float, rate_kpps: float) -> BenchLoad:
    return BenchLoad.of("regex-bench", {"mtbr": mtbr, "rate_kpps": rate_kpps, "packet_size": float(PACKET_SIZE)})


def _table(
    pair: tuple[float, float], alone: Measured, bench: Measured, beside: list[Measured], shares: tuple[float, ...]
) -> pd.DataFrame:
    own, other = float(alone.mean[0]), float(bench.mean[0])
    swept = beside[: len(shares) + 1]
    offered = np.array([*shares, 1.0]) * other
    return pd.DataFrame(
        {
            "matches": f"{pair[0]:g} beside {pair[1]:g} matches/MB",
            "alone_kpps": own,
            "bench_kpps": offered,
            "throughput_kpps": [one.mean[0] for one in swept],
            "spread_kpps": [one.standard_error[0] for one in swept],
            "bench_reached_kpps": [one.mean[1] for one in swept],
            "bench_spread_kpps": [one.standard_error[1] for one in swept],
            "equation_2_kpps": equilibrium([1, 1], (1 / own, 1 / other))[0],
            "equation_8_kpps": (1 - offered / other) * own,
        }
    )


def _facts(table: pd.DataFrame) -> list[Fact]:
    facts = []
    for pair, rows in table.groupby("matches", sort=False):
        full = rows.iloc[-1]
        reached, expected = full["throughput_kpps"], full["equation_2_kpps"]
        light = rows[rows["bench_kpps"] < LIGHT * expected]
        off_line = 100 * (light["throughput_kpps"] / light["equation_8_kpps"] - 1).abs()
        facts += [
            Fact(f"{pair}: equilibrium", reached, unit="kpps"),
            Fact(f"{pair}: equilibrium, spread", 100 * full["spread_kpps"] / reached),
            Fact(f"{pair}: equilibrium off equation 2", 100 * abs(reached / expected - 1), 0.0),
            Fact(
                f"{pair}: regex-bench off PacketFilter there", 100 * abs(full["bench_reached_kpps"] / reached - 1), 0.0
            ),
        ]
        if len(light):
            facts.append(Fact(f"{pair}: light part off the line of equation 8, mean", off_line.mean(), 0.0))
    return facts


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    for at, (pair, rows) in enumerate(table.groupby("matches", sort=False)):
        axes.errorbar(
            rows["bench_kpps"],
            rows["throughput_kpps"],
            yerr=rows["spread_kpps"],
            marker=".",
            color=f"C{at}",
            label=f"PacketFilter, {pair}",
        )
        axes.errorbar(
            rows["bench_kpps"], rows["bench_reached_kpps"], yerr=rows["bench_spread_kpps"], fmt=":", color=f"C{at}"
        )
        light = rows[rows["equation_8_kpps"] > rows["equation_2_kpps"]]
        axes.plot(light["bench_kpps"], light["equation_8_kpps"], color=f"C{at}", linewidth=0.5)
        axes.axhline(rows["equation_2_kpps"].iloc[0], color=f"C{at}", linewidth=0.5)
    axes.set_xlabel("request rate of regex-bench (kpps)")
    axes.set_ylabel("throughput (kpps)")
    axes.legend(title="dotted: regex-bench; thin: equations 2 and 8")
