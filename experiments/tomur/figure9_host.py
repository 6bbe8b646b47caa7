"""Figure 9 on the machine at hand: FlowStats beside mem-bench, by working set, access rate and flows."""

from __future__ import annotations

import itertools

import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.host import Measured, measure, open_host
from experiments.methodology.workloads import Fact, fact_table
from experiments.registry import Result, Setting, experiment
from profiles import BenchLoad, Load, TestbedDescription, TrafficProfile, Workload

FLOWS = (1_000, 16_000, 256_000)
WORKING_SETS_MB = (0.5, 2.0, 8.0, 16.0, 32.0)
RATES_MOPS = (100.0, 250.0, 490.0)
PACKET_SIZE = 1500


@experiment("figure9-host", "FlowStats beside memory contention on the machine at hand")
def run(setting: Setting) -> Result:
    """Each flow count alone, then beside mem-bench at every working set and rate."""
    sets = WORKING_SETS_MB if setting.scale >= 1 else WORKING_SETS_MB[::2]
    rates = RATES_MOPS if setting.scale >= 1 else RATES_MOPS[-1:]
    benches = list(itertools.product(sets, rates))
    with open_host(setting, "--counters none") as testbed:
        machine = testbed.describe()
        # each flow count alone in the minute of its company, so that what changes slowly changes both
        co_locations: list[list[Load]] = [
            [_flow_stats(flows), *co_location]
            for flows in FLOWS
            for co_location in ((), *((_bench(mb, mops),) for mb, mops in benches))
        ]
        measured = measure(testbed, co_locations, setting)
    of_flows = dict(zip(FLOWS, _parts(measured, len(benches) + 1), strict=True))
    solo = {flows: alone for flows, (alone, *_) in of_flows.items()}
    table = pd.DataFrame(
        [
            _row(flows, *bench, alone, one)
            for flows, (alone, *beside) in of_flows.items()
            for bench, one in zip(benches, beside, strict=True)
        ]
    )
    return Result(
        fact_table(_facts(solo, table)),
        (f"{machine.name}: everything, measured; {_cache(machine)}",),
        lambda figure: _draw(figure, table),
        (
            "no published numbers: figure 9 is of a BlueField-2, whose cache of 6 MB and cores are others. Its shape "
            "can be compared: throughput falls with the competitor's working set and rate, most with many flows.",
            "a drop is against the throughput alone in the same round, and spread the standard error over rounds; the "
            "testbed throws windows away in which something else had a core.",
        ),
        {"throughput": table},
    )


def _cache(machine: TestbedDescription) -> str:
    held = machine.nic.llc_bytes
    return f"{held / 2**20:g} MB last-level cache." if held else "its last-level cache is not known."


def _flow_stats(flows: int) -> Workload:
    return Workload("FlowStats", TrafficProfile(flows, PACKET_SIZE, 0))


def _bench(wss_mb: float, access_mops: float) -> BenchLoad:
    return BenchLoad.of("mem-bench", {"wss_mb": wss_mb, "access_mops": access_mops})


def _parts(measured: list[Measured], length: int) -> list[list[Measured]]:
    return [measured[first : first + length] for first in range(0, len(measured), length)]


def _row(flows: int, wss_mb: float, access_mops: float, alone: Measured, beside: Measured) -> dict[str, float]:
    drops = Measured(1 - beside.kpps[:, :1] / alone.kpps[:, :1])
    return {
        "flows": flows,
        "wss_mb": wss_mb,
        "access_mops": access_mops,
        "bench_reached_mops": beside.mean[1] / 1e3,
        "alone_kpps": alone.mean[0],
        "throughput_kpps": beside.mean[0],
        "drop_pct": 100 * drops.mean[0],
        "spread_pct": 100 * drops.standard_error[0],
    }


def _facts(solo: dict[int, Measured], table: pd.DataFrame) -> list[Fact]:
    facts = []
    for flows, rows in table.groupby("flows"):
        alone = solo[int(str(flows))]
        facts.append(Fact(f"{flows:,} flows alone", alone.mean[0], unit="kpps"))
        facts.append(Fact(f"{flows:,} flows alone: spread", 100 * alone.standard_error[0] / alone.mean[0]))
        mildest, heaviest = rows.iloc[0], rows.iloc[-1]
        for row in (mildest, heaviest):
            place = f"{flows:,} flows beside {row['wss_mb']:g} MB at {row['bench_reached_mops']:.0f} M accesses/s"
            facts.append(Fact(f"{place}: drop", row["drop_pct"]))
            facts.append(Fact(f"{place}: spread", row["spread_pct"]))
    return facts


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    counts = sorted(table["flows"].unique())
    panels = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    for axes, flows in zip(panels, counts, strict=True):
        for access_mops, rows in table[table["flows"] == flows].groupby("access_mops"):
            axes.errorbar(
                rows["wss_mb"],
                rows["drop_pct"],
                yerr=rows["spread_pct"],
                marker=".",
                capsize=2,
                label=f"{access_mops:g}",
            )
        axes.set_xscale("log")
        axes.set_title(f"{flows:,} flows")
        axes.set_xlabel("working set of mem-bench (MB)")
    panels[0].set_ylabel("throughput drop (%)")
    panels[-1].legend(title="M accesses/s")
