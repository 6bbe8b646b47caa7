"""Figure 4 on this machine: two users of a software regex engine that serves its queues round robin."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.findings import Finding, findings_table
from experiments.methodology.host_testbed import RepeatedRuns, measure, open_host_testbed
from experiments.registry import Result, Setting, experiment
from experiments.tomur import PAPER
from predictor.contention.accelerators import equilibrium
from profiles import BenchLoad, Load, TrafficProfile, Workload

MATCH_RATES = ((200.0, 200.0), (200.0, 800.0), (800.0, 200.0), (800.0, 800.0))
"""Matches/MB of PacketFilter and of regex-bench."""
RATE_SHARES = tuple(np.linspace(0.1, 0.9, 9))
"""Request rates of regex-bench, as shares of its throughput alone; the last run is without a limit."""
PACKET_SIZE = 1500
FLOW_COUNT = 1_000
UNLIMITED_RATE = 0.0  # the rate parameter of a bench without a limit
LIGHT_SHARE = 0.8  # share of the equilibrium below which the competitor is light


@experiment(PAPER, "figure4-host", "Linear drop and equilibrium throughput on a software regex engine of this machine")
def run(setting: Setting) -> Result:
    """PacketFilter with regex-bench, whose request rate rises until both are served at the same rate."""
    pairs = MATCH_RATES if setting.scale >= 1 else MATCH_RATES[1:2]
    shares = RATE_SHARES if setting.scale >= 1 else RATE_SHARES[::4]
    with open_host_testbed(setting, "--share-client-core --counters none") as testbed:
        machine = testbed.describe()
        fastest = measure(testbed, [[_bench(other, UNLIMITED_RATE)] for _, other in pairs], setting, repeats=1)
        rates = [[*(round(share * float(run.mean[0]), 1) for share in shares), UNLIMITED_RATE] for run in fastest]
        # measure each pair alone right before it is measured together, so that slow drift affects both
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
        findings_table(_findings(table)),
        (
            f"{machine.name}: all runs, measured. PacketFilter and regex-bench share one core; the regex engine, "
            "Hyperscan in software, has another core.",
        ),
        lambda figure: _draw(figure, table),
        (
            "A published 0 means: the paper states that the curves follow the equations and gives no distance.",
            "Standard errors are over repeats. A distance is computed within each repeat, with the throughputs alone "
            "of that repeat in the equation.",
        ),
        {"throughput": table},
    )


def _filter(mtbr: float) -> Workload:
    return Workload("PacketFilter", TrafficProfile(FLOW_COUNT, PACKET_SIZE, mtbr))


def _bench(mtbr: float, rate_kpps: float) -> BenchLoad:
    return BenchLoad.of("regex-bench", {"mtbr": mtbr, "rate_kpps": rate_kpps, "packet_size": float(PACKET_SIZE)})


def _co_locations(own: float, other: float, rates: list[float]) -> list[list[Load]]:
    """Both alone, then together at every request rate of regex-bench."""
    together: list[list[Load]] = [[_filter(own), _bench(other, rate)] for rate in rates]
    return [[_filter(own)], [_bench(other, UNLIMITED_RATE)], *together]


def _table(
    pair: tuple[float, float], rates: list[float], own: RepeatedRuns, bench: RepeatedRuns, *swept: RepeatedRuns
) -> pd.DataFrame:
    alone, other = own.values[:, 0], bench.values[:, 0]
    equal = np.array([equilibrium([1, 1], (1 / one, 1 / two))[0] for one, two in zip(alone, other, strict=True)])
    rows = []
    for rate, together in zip(rates, swept, strict=True):
        offered = other if rate == UNLIMITED_RATE else np.full_like(other, rate)
        light = (1 - offered / other) * alone
        is_light = rate != UNLIMITED_RATE and rate < LIGHT_SHARE * equal.mean()
        # Distance above the throughput of an equation (%) in every repeat.
        distance = RepeatedRuns(100 * (together.values[:, 0] / (light if is_light else equal) - 1)[:, None])
        rows.append(
            {
                "matches": f"{pair[0]:g} with {pair[1]:g} matches/MB",
                "alone_kpps": alone.mean(),
                "bench_kpps": offered.mean(),
                "throughput_kpps": together.mean[0],
                "standard_error_kpps": together.standard_error[0],
                "bench_reached_kpps": together.mean[1],
                "bench_standard_error_kpps": together.standard_error[1],
                "equation_2_kpps": equal.mean(),
                "equation_8_kpps": light.mean(),
                "is_light": is_light,
                "distance_pct": distance.mean[0],
                "distance_standard_error_pct": distance.standard_error[0],
            }
        )
    return pd.DataFrame(rows)


def _findings(table: pd.DataFrame) -> list[Finding]:
    findings = []
    for pair, rows in table.groupby("matches", sort=False):
        full = rows.iloc[-1]
        reached, bench = full["throughput_kpps"], full["bench_reached_kpps"]
        light = rows[rows["is_light"]]
        findings += [
            Finding(f"{pair}: equilibrium", reached, unit="kpps"),
            Finding(f"{pair}: equilibrium, standard error", 100 * full["standard_error_kpps"] / reached),
            Finding(f"{pair}: equilibrium, distance from equation 2", abs(full["distance_pct"]), 0.0),
            Finding(
                f"{pair}: equilibrium, distance from equation 2, standard error", full["distance_standard_error_pct"]
            ),
            Finding(
                f"{pair}: equilibrium, distance of regex-bench from PacketFilter", 100 * abs(bench / reached - 1), 0.0
            ),
        ]
        if len(light):
            findings += [
                Finding(
                    f"{pair}: light competitor, mean distance from equation 8", light["distance_pct"].abs().mean(), 0.0
                ),
                Finding(
                    f"{pair}: light competitor, distance from equation 8, mean standard error",
                    light["distance_standard_error_pct"].mean(),
                ),
            ]
    return findings


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    for at, (pair, rows) in enumerate(table.groupby("matches", sort=False)):
        axes.errorbar(
            rows["bench_kpps"],
            rows["throughput_kpps"],
            yerr=rows["standard_error_kpps"],
            marker=".",
            color=f"C{at}",
            label=f"PacketFilter, {pair}",
        )
        axes.errorbar(
            rows["bench_kpps"],
            rows["bench_reached_kpps"],
            yerr=rows["bench_standard_error_kpps"],
            fmt=":",
            color=f"C{at}",
        )
        light = rows[rows["equation_8_kpps"] > rows["equation_2_kpps"]]
        axes.plot(light["bench_kpps"], light["equation_8_kpps"], color=f"C{at}", linewidth=0.5)
        axes.axhline(rows["equation_2_kpps"].iloc[0], color=f"C{at}", linewidth=0.5)
    axes.set(xlabel="request rate of regex-bench (kpps)", ylabel="throughput (kpps)")
    axes.legend(title="dotted: regex-bench; thin: equations 2 and 8")
