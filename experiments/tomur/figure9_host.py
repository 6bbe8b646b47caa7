"""Figure 9 on this machine: FlowStats with mem-bench, by working set, access rate and flow count."""

import itertools

import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.findings import Finding, findings_table
from experiments.methodology.host_testbed import RepeatedRuns, measure, open_host_testbed
from experiments.registry import Result, Setting, experiment
from experiments.tomur import PAPER
from profiles import BenchLoad, Load, TestbedDescription, TrafficProfile, Workload

FLOW_COUNTS = (1_000, 16_000, 256_000)
WORKING_SETS_MB = (0.5, 2.0, 8.0, 16.0, 32.0)
RATES_MOPS = (100.0, 250.0, 490.0)
PACKET_SIZE = 1500


@experiment(PAPER, "figure9-host", "Throughput drop of FlowStats by memory contention on this machine")
def run(setting: Setting) -> Result:
    """Each flow count alone, then with mem-bench at every working set and access rate."""
    sets = WORKING_SETS_MB if setting.scale >= 1 else WORKING_SETS_MB[::2]
    rates = RATES_MOPS if setting.scale >= 1 else RATES_MOPS[-1:]
    benches = list(itertools.product(sets, rates))
    with open_host_testbed(setting, "--counters none") as testbed:
        machine = testbed.describe()
        # measure each flow count alone right before its co-locations, so that slow drift affects both
        co_locations: list[list[Load]] = [
            [Workload("FlowStats", TrafficProfile(flows, PACKET_SIZE, 0)), *co_location]
            for flows in FLOW_COUNTS
            for co_location in ((), *((_bench(mb, mops),) for mb, mops in benches))
        ]
        measured = measure(testbed, co_locations, setting)
    of_flows = dict(zip(FLOW_COUNTS, _parts(measured, len(benches) + 1), strict=True))
    solo = {flows: alone for flows, (alone, *_) in of_flows.items()}
    table = pd.DataFrame(
        [
            _row(flows, *bench, alone, one)
            for flows, (alone, *co_located) in of_flows.items()
            for bench, one in zip(benches, co_located, strict=True)
        ]
    )
    return Result(
        findings_table(_findings(solo, table)),
        (f"{machine.name}: all runs, measured; {_cache(machine)}",),
        lambda figure: _draw(figure, table),
        (
            "There are no published numbers: figure 9 is of a BlueField-2, with other cores and a cache of 6 MB. Its "
            "shape can be compared: throughput falls with the working set and access rate of the competitor, most "
            "with many flows.",
            "A drop is relative to the throughput alone in the same round; standard errors are over rounds. The "
            "testbed discards time windows in which another process ran on a core of the measurement.",
        ),
        {"throughput": table},
    )


def _cache(machine: TestbedDescription) -> str:
    size = machine.nic.llc_bytes
    return f"last-level cache of {size / 2**20:g} MB." if size else "the size of its last-level cache is unknown."


def _bench(wss_mb: float, access_mops: float) -> BenchLoad:
    return BenchLoad.of("mem-bench", {"wss_mb": wss_mb, "access_mops": access_mops})


def _parts(measured: list[RepeatedRuns], length: int) -> list[list[RepeatedRuns]]:
    return [measured[first : first + length] for first in range(0, len(measured), length)]


def _row(
    flows: int, wss_mb: float, access_mops: float, alone: RepeatedRuns, co_located: RepeatedRuns
) -> dict[str, float]:
    drops = RepeatedRuns(1 - co_located.values[:, :1] / alone.values[:, :1])
    return {
        "flows": flows,
        "wss_mb": wss_mb,
        "access_mops": access_mops,
        "bench_reached_mops": co_located.mean[1] / 1e3,
        "alone_kpps": alone.mean[0],
        "throughput_kpps": co_located.mean[0],
        "drop_pct": 100 * drops.mean[0],
        "standard_error_pct": 100 * drops.standard_error[0],
    }


def _findings(solo: dict[int, RepeatedRuns], table: pd.DataFrame) -> list[Finding]:
    findings = []
    for flows, rows in table.groupby("flows"):
        alone = solo[int(str(flows))]
        findings.append(Finding(f"{flows:,} flows alone", alone.mean[0], unit="kpps"))
        findings.append(
            Finding(f"{flows:,} flows alone, standard error", 100 * alone.standard_error[0] / alone.mean[0])
        )
        mildest, heaviest = rows.iloc[0], rows.iloc[-1]
        for row in (mildest, heaviest):
            bench = f"mem-bench of {row['wss_mb']:g} MB at {row['bench_reached_mops']:.0f} M accesses/s"
            findings.append(Finding(f"{flows:,} flows with {bench}, drop", row["drop_pct"]))
            findings.append(Finding(f"{flows:,} flows with {bench}, standard error", row["standard_error_pct"]))
    return findings


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    counts = sorted(table["flows"].unique())
    panels = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    for axes, flows in zip(panels, counts, strict=True):
        for access_mops, rows in table[table["flows"] == flows].groupby("access_mops"):
            axes.errorbar(
                rows["wss_mb"],
                rows["drop_pct"],
                yerr=rows["standard_error_pct"],
                marker=".",
                capsize=2,
                label=f"{access_mops:g}",
            )
        axes.set(xscale="log", title=f"{flows:,} flows", xlabel="working set of mem-bench (MB)")
    panels[0].set_ylabel("throughput drop (%)")
    panels[-1].legend(title="M accesses/s")
