"""Admission to a GPU with a proof: how far what is admitted is from the bound, within a time limit."""

from dataclasses import replace
from random import Random
from statistics import median
from typing import Annotated

import pandas as pd
import typer

from benches.admission import GPU, TIGHT, WIDE, drawn
from benches.bench import register
from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.exact import admit_exactly
from placer.inputs.gpu.slos import read_device

SIZES = (10, 20, 35, 50, 75, 100)
WORKERS = 100_000

Instances = Annotated[int, typer.Option(min=1, help="Sets of SLOs per row.")]
Limit = Annotated[float, typer.Option(min=0.01, help="Seconds for one set.")]
Seed = Annotated[int, typer.Option(help="Of the first set.")]


@register("admission-gap")
def run(instances: Instances = 20, time_limit_s: Limit = 1.0, seed: Seed = 0) -> pd.DataFrame:
    """Per bus, range of latencies and number of SLOs: the share of sets that are proven and that are at most one SLO
    from their bound, what is admitted and the bound (means), and seconds (median, longest)."""
    device = replace(read_device(GPU), workers=WORKERS)
    rows = [
        _row(replace(device, arbitration=bus), latencies, count, range(seed, seed + instances), time_limit_s)
        for bus in Arbitration
        for latencies in (WIDE, TIGHT)
        for count in SIZES
    ]
    return pd.DataFrame(rows)


def _row(
    device: GpuDevice, latencies: tuple[float, float], count: int, seeds: range, limit_s: float
) -> dict[str, object]:
    sets = [drawn(device, latencies, count, Random(f"{count} {seed}")) for seed in seeds]
    found = [admit_exactly(device, slos, limit_s) for slos in sets]
    gaps = [one.bound - len(one.admitted) for one in found]
    return {
        "bus": device.arbitration.value,
        "latency_us": f"{latencies[0]:.0f}-{latencies[1]:.0f}",
        "slos": count,
        "proven_pct": 100 * sum(not gap for gap in gaps) / len(gaps),
        "within_one_pct": 100 * sum(gap <= 1 for gap in gaps) / len(gaps),
        "admitted": round(sum(len(one.admitted) for one in found) / len(found), 2),
        "bound": round(sum(one.bound for one in found) / len(found), 2),
        "largest_gap": max(gaps),
        "seconds": round(median(one.seconds for one in found), 3),
        "longest_s": round(max(one.seconds for one in found), 3),
    }
