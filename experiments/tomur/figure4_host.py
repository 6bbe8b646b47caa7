"""Figure 4 on the machine at hand: two users of a software regex engine that serves its queues round robin."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.methodology.host import Measured, measure, open_host
from experiments.methodology.workloads import Fact, fact_table
from experiments.registry import Result, Setting, experiment
from predictor.contention.accelerators import equilibrium
from profiles import BenchLoad, Load, TrafficProfile, Workload

Array = NDArray[np.float64]

MATCH_RATES = ((200.0, 200.0), (200.0, 800.0), (800.0, 200.0), (800.0, 800.0))
"""Matches/MB of PacketFilter and of regex-bench."""
SHARES = tuple(np.linspace(0.1, 0.9, 9))
"""Rates of regex-bench, as shares of what it reaches alone; then as fast as it goes."""
PACKET_SIZE = 1500
FLOWS = 1_000
FLAT_OUT = 0.0
"""The rate of a bench that goes as fast as it can."""
LIGHT = 0.8
"""Share of the equilibrium below which the competitor is light."""


@experiment("figure4-host", "Round robin on a software regex engine of the machine at hand")
def run(setting: Setting) -> Result:
    """PacketFilter beside regex-bench, whose request rate rises until both are served alike."""
    pairs = MATCH_RATES if setting.scale >= 1 else MATCH_RATES[1:2]
    shares = SHARES if setting.scale >= 1 else SHARES[::4]
    with open_host(setting, "--share-client-core --counters none") as testbed:
        machine = testbed.describe()
        fastest = measure(testbed, [[_bench(other, FLAT_OUT)] for _, other in pairs], setting, repeats=1)
        rates = [[*(round(share * float(one.mean[0]), 1) for share in shares), FLAT_OUT] for one in fastest]
        # each pair alone in the minute in which it is together, so that what changes slowly changes all
        co_locations: list[list[Load]] = [
            co_location for pair, swept in zip(pairs, rates, strict=True) for co_location in _co_locations(*pair, swept)
        ]
        measured = measure(testbed, co_locations, setting)
    each = len(measured) // len(pairs)
    table = pd.concat(
        [
            _table(pair, swept, *measured[each * at : each * (at + 1)])
            for at, (pair, swept) in enumerate(zip(pairs, rates, strict=True))
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
            "spread is the standard error over repeats made in turn; a distance is that of each repeat, from the "
            "equation with both alone in the same repeat.",
        ),
        {"throughput": table},
    )


def _filter(mtbr: float) -> Workload:
    return Workload("PacketFilter", TrafficProfile(FLOWS, PACKET_SIZE, mtbr))


def _bench(mtbr: float, rate_kpps: float) -> BenchLoad:
    return BenchLoad.of("regex-bench", {"mtbr": mtbr, "rate_kpps": rate_kpps, "packet_size": float(PACKET_SIZE)})


def _co_locations(own: float, other: float, rates: list[float]) -> list[list[Load]]:
    """Both alone, then together at every rate of regex-bench."""
    together: list[list[Load]] = [[_filter(own), _bench(other, rate)] for rate in rates]
    return [[_filter(own)], [_bench(other, FLAT_OUT)], *together]


def _table(
    pair: tuple[float, float], rates: list[float], own: Measured, bench: Measured, *swept: Measured
) -> pd.DataFrame:
    alone, other = own.kpps[:, 0], bench.kpps[:, 0]
    equal = np.array([equilibrium([1, 1], (1 / one, 1 / two))[0] for one, two in zip(alone, other, strict=True)])
    rows = []
    for rate, beside in zip(rates, swept, strict=True):
        offered = other if rate == FLAT_OUT else np.full_like(other, rate)
        light = (1 - offered / other) * alone
        is_light = rate != FLAT_OUT and rate < LIGHT * equal.mean()
        off = _off(beside.kpps[:, 0], light if is_light else equal)
        rows.append(
            {
                "matches": f"{pair[0]:g} beside {pair[1]:g} matches/MB",
                "alone_kpps": alone.mean(),
                "bench_kpps": offered.mean(),
                "throughput_kpps": beside.mean[0],
                "spread_kpps": beside.standard_error[0],
                "bench_reached_kpps": beside.mean[1],
                "bench_spread_kpps": beside.standard_error[1],
                "equation_2_kpps": equal.mean(),
                "equation_8_kpps": light.mean(),
                "is_light": is_light,
                "off_pct": off.mean[0],
                "off_spread_pct": off.standard_error[0],
            }
        )
    return pd.DataFrame(rows)


def _off(reached: Array, expected: Array) -> Measured:
    """How far above what an equation expects, %, in every repeat."""
    return Measured(100 * (reached / expected - 1)[:, None])


def _facts(table: pd.DataFrame) -> list[Fact]:
    facts = []
    for pair, rows in table.groupby("matches", sort=False):
        full = rows.iloc[-1]
        reached, bench = full["throughput_kpps"], full["bench_reached_kpps"]
        light = rows[rows["is_light"]]
        facts += [
            Fact(f"{pair}: equilibrium", reached, unit="kpps"),
            Fact(f"{pair}: equilibrium, spread", 100 * full["spread_kpps"] / reached),
            Fact(f"{pair}: equilibrium off equation 2", abs(full["off_pct"]), 0.0),
            Fact(f"{pair}: equilibrium off equation 2, spread", full["off_spread_pct"]),
            Fact(f"{pair}: regex-bench off PacketFilter there", 100 * abs(bench / reached - 1), 0.0),
        ]
        if len(light):
            facts += [
                Fact(f"{pair}: light part off the line of equation 8, mean", light["off_pct"].abs().mean(), 0.0),
                Fact(f"{pair}: light part off the line, mean spread", light["off_spread_pct"].mean()),
            ]
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
