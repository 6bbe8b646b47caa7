"""Admission to a GPU by Grus's repaired algorithm: on arrays, from objects, the readable version, and a C peer."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Annotated

import pandas as pd
import typer

from benches.admission_peer import CPeer
from benches.bench import cost, register
from placer.gpu.bound import upper_bound
from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.greedy import admit_arrays, admit_greedily
from placer.gpu.plan import LatencySlo
from placer.gpu.tables import gpu_numbers, nf_times, slo_arrays
from placer.inputs.gpu.slos import read_device
from tests.reference.gpu.greedy import admit_readably
from tests.reference.gpu.greedy_gpu import FastGpu

GPU = Path(__file__).resolve().parents[1] / "examples" / "gpu.json"
SIZES = (10, 20, 50, 100, 200, 500, 1000)
REPEATS = 201
READABLE_UP_TO = 200
"""SLOs; the readable version takes seconds beyond."""
TIGHT, WIDE = (100.0, 500.0), (150.0, 1500.0)
"""Latencies (us) of sets in which many, and few, SLOs are rejected."""

Repeats = Annotated[int, typer.Option(min=3, help="Calls of which the median counts.")]
Largest = Annotated[int, typer.Option(min=10, help="The most SLOs.")]


@register("admission")
def run(repeats: Repeats = REPEATS, largest: Largest = 1000) -> pd.DataFrame:
    """Per bus, range of latencies and number of SLOs: how many are admitted, and times (us).

    `arrays_us` is the whole set from arrays to arrays, with its quartiles; `arrival_us` one SLO onto all others;
    `objects_us` from SLOs to the answer; `readable_us` the reference in Python; `c_us` the peer: the same greedy in C
    for one transfer each, compiled at the highest optimization, where there is a compiler.
    """
    device = replace(read_device(GPU), workers=100_000)
    with tempfile.TemporaryDirectory() as folder:
        peer = CPeer.compiled(Path(folder))
        if peer is None:
            print("admission: there is no C compiler; the table has no peer", file=sys.stderr)
        rows = [
            _row(replace(device, arbitration=bus), latencies, count, repeats, peer)
            for bus in Arbitration
            for latencies in (WIDE, TIGHT)
            for count in SIZES
            if count <= largest
        ]
    return pd.DataFrame(rows)


def drawn(device: GpuDevice, latencies: tuple[float, float], count: int) -> list[LatencySlo]:
    """SLOs of the four NFs at 50 to 800 kpps."""
    rng, nfs = Random(count), list(device.nfs)
    return [
        LatencySlo(f"{number}", rng.choice(nfs), rng.uniform(50, 800), rng.uniform(*latencies))
        for number in range(count)
    ]


def _row(
    device: GpuDevice, latencies: tuple[float, float], count: int, repeats: int, peer: CPeer | None
) -> dict[str, object]:
    slos = drawn(device, latencies, count)
    gpu, nfs, arrays = gpu_numbers(device), nf_times(device), slo_arrays(device, slos)
    low, median, high = quartiles(lambda: admit_arrays(gpu, nfs, arrays), repeats)
    admitted = len(admit_greedily(device, slos)[0])
    row: dict[str, object] = {
        "bus": device.arbitration.value,
        "latency_us": f"{latencies[0]:g}-{latencies[1]:g}",
        "slos": count,
        "admitted": admitted,
        "bound": upper_bound(device, slos).count,
        "arrays_us": round(median, 1),
        "from": round(low, 1),
        "to": round(high, 1),
        "arrival_us": round(arrival_us(device, slos, repeats), 1),
        "objects_us": round(quartiles(lambda: admit_greedily(device, slos), max(repeats // 10, 3))[1]),
        "peak_mb": round(cost(lambda: admit_arrays(gpu, nfs, arrays), 3).peak_mb, 2),
    }
    if count <= READABLE_UP_TO:
        row["readable_us"] = round(quartiles(lambda: admit_readably(device, slos), 3)[1])
    if peer is not None and device.arbitration is Arbitration.ONE_SHOT:
        call = peer.call(gpu, nfs, arrays)
        row["c_us"], row["c_admitted"] = round(quartiles(call, repeats)[1], 1), call()
    return row


def quartiles(call: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """Quartiles of the time of a call, us."""
    call()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - begun))
    low, median, high = statistics.quantiles(times, n=4)
    return low, median, high


def arrival_us(device: GpuDevice, slos: list[LatencySlo], repeats: int) -> float:
    """The median time of the last arrival onto all others, us."""
    times = []
    for _ in range(max(repeats // 4, 3)):
        gpu = FastGpu(device, len(slos))
        for slo in slos[:-1]:
            gpu.arrive(slo)
        begun = time.perf_counter()
        gpu.arrive(slos[-1])
        times.append(1e6 * (time.perf_counter() - begun))
    return statistics.median(times)
