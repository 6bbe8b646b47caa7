"""Admission to a GPU by Grus's repaired algorithm: on arrays, from objects, and a C peer."""

import ctypes
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from benches.bench import cost, register
from placer.gpu.bound import upper_bound
from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.greedy import admit_arrays, admit_greedily
from placer.gpu.plan import LatencySlo
from placer.gpu.tables import WITHIN_LIMIT, GpuNumbers, SloArrays, gpu_numbers, nf_times, slo_arrays
from placer.inputs.gpu.slos import read_device
from profiles.arrays import Floats

C_SOURCE = r"""
#include <math.h>
#include <stdlib.h>
enum { MOST = 1024, SMS = 64, SLOTS = 32, NFS = 8 };
struct slo { double key; int at, batch; };
static int by_key(const void *a, const void *b)
{
    const struct slo *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key ? 1 : x->at - y->at;
}
/* Minibatches on one SM each; times has slope, fixed, pre_post, per executor, fixed kernel and penalties, by NF. */
int admit(int sms, int slots, int packets, int nfs, const double *times, int count, const long *nf,
          const double *rate, const double *latency, double within)
{
    static struct slo sorted[MOST];
    static double due[MOST], transfer[MOST], kernel[MOST], period[MOST], before[MOST];
    static int queue[MOST], kind[MOST], on[SMS][SLOTS], sharers[SMS], room[SMS];
    const double *slope = times, *fixed = slope + nfs, *pre = fixed + nfs, *per = pre + nfs, *base = per + nfs;
    const double *beta = base + nfs;
    double most[NFS] = {0};
    int tenants = 0;

    for (int i = 0; i < count; i++)
        for (int n = 0; n < nfs; n++)
            most[n] = fmax(most[n], beta[n * nfs + nf[i]]);
    for (int s = 0; s < sms; s++)
        sharers[s] = 0, room[s] = slots;
    for (int i = 0; i < count; i++) {
        int n = (int)nf[i];
        double left = 1000 / rate[i] - slope[n];
        int batch = -1;
        for (int e = 1; e <= slots && left > 0; e++) {
            double longest = fmax(per[n] * e + base[n] + most[n], pre[n]);
            batch = (int)fmax(fmax(ceil(fixed[n] / left), ceil(longest * rate[i] / 1000)), (e - 1) * packets + 1);
            if (batch <= e * packets)
                break;
            batch = -1;
        }
        sorted[i] = (struct slo){batch < 0 ? INFINITY : latency[i] - 1000 * (batch - 1) / rate[i] - pre[n], i, batch};
    }
    qsort(sorted, count, sizeof *sorted, by_key);
    for (int k = 0; k < count; k++) {
        int i = sorted[k].at, n = (int)nf[i], batch = sorted[k].batch, best = -1, place;
        if (batch < 0)
            break;
        int need = (batch + packets - 1) / packets;
        double own = 0, delay = 0, alone = per[n] * need + base[n], t = slope[n] * batch + fixed[n], over = 0;
        for (int s = 0; s < sms; s++) {
            double mine = 0, theirs = 0;
            int fits = room[s] >= need;
            for (int j = 0; fits && j < sharers[s]; j++) {
                int o = on[s][j];
                double later = beta[kind[o] * nfs + n], now = before[o] - due[o];
                mine = fmax(mine, beta[n * nfs + kind[o]]);
                theirs = fmax(theirs, kernel[o] + later - now);
                fits = kernel[o] + later <= period[o] * within;
            }
            if (fits && (best < 0 || mine < own || (mine == own && theirs < delay)))
                best = s, own = mine, delay = theirs;
        }
        if (best < 0)
            continue;
        double mine = latency[i] * within - 1000 * (batch - 1) / rate[i] - pre[n];
        double end = mine - alone - own;
        for (place = tenants; place > 0 && due[queue[place - 1]] > end; place--)
            ;
        for (int j = 0; j < place; j++)
            over += transfer[queue[j]];
        int kept = (over += t) <= end;
        for (int j = place; kept && j < tenants; j++)
            kept = (over += transfer[queue[j]]) <= due[queue[j]] - delay;
        if (!kept)
            continue;
        for (int j = 0; j < sharers[best]; j++) {
            int o = on[best][j];
            due[o] = fmin(due[o], before[o] - kernel[o] - beta[kind[o] * nfs + n]);
        }
        for (int j = tenants; j > place; j--)
            queue[j] = queue[j - 1];
        queue[place] = tenants, kind[tenants] = n, due[tenants] = end, transfer[tenants] = t;
        kernel[tenants] = alone, period[tenants] = 1000 * batch / rate[i], before[tenants] = mine;
        on[best][sharers[best]++] = tenants++;
        room[best] -= need;
    }
    return tenants;
}
"""


class CPeer:
    """The compiled peer. It gives each SLO one SM and never reorders the queue, so that it may admit a few less."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    @classmethod
    def compiled(cls, folder: Path) -> "CPeer | None":
        """The peer, built in a folder; None without a C compiler."""
        compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
        if compiler is None:
            return None
        source, library = folder / "peer.c", folder / "peer.so"
        source.write_text(C_SOURCE, encoding="utf-8")
        subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
        return cls(ctypes.CDLL(str(library)))

    def call(self, gpu: GpuNumbers, nfs: Floats, slos: SloArrays) -> Callable[[], int]:
        """A call for these SLOs, which returns how many are admitted."""
        times = np.ascontiguousarray(nfs)
        columns = [np.ascontiguousarray(column) for column in (slos.nf, slos.rate_kpps, slos.latency_us)]
        pointers = [ctypes.c_void_p(column.ctypes.data) for column in columns]
        admit, number = self._library.admit, len(slos.nf)
        arguments = (
            gpu.sms, gpu.executors, gpu.packets, gpu.nfs, ctypes.c_void_p(times.ctypes.data), number, *pointers,
            ctypes.c_double(WITHIN_LIMIT),
        )  # fmt: skip
        kept = (times, *columns)  # as long as the call

        def call() -> int:
            assert kept
            return int(admit(*arguments))

        return call


GPU = Path(__file__).resolve().parents[1] / "examples" / "gpu.json"
SIZES = (10, 20, 50, 100, 200, 500, 1000)
REPEATS = 201
TIGHT, WIDE = (100.0, 500.0), (150.0, 1500.0)  # latencies (us) of sets in which many, and few, SLOs are rejected

Repeats = Annotated[int, typer.Option(min=3, help="Calls of which the median counts.")]
Largest = Annotated[int, typer.Option(min=10, help="The most SLOs.")]


@register("admission")
def run(repeats: Repeats = REPEATS, largest: Largest = 1000) -> pd.DataFrame:
    """Per bus, range of latencies and number of SLOs: how many are admitted, and times (us). `arrays_us` is the whole
    set from arrays to arrays, with its quartiles; `objects_us` from SLOs to the answer; `c_us` the peer: the same
    greedy in C for one transfer each, compiled at the highest optimization, where there is a compiler."""
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


def drawn(device: GpuDevice, latencies: tuple[float, float], count: int, rng: Random) -> list[LatencySlo]:
    """SLOs of the four NFs at 50 to 800 kpps."""
    nfs = list(device.nfs)
    return [
        LatencySlo(f"{number}", rng.choice(nfs), rng.uniform(50, 800), rng.uniform(*latencies))
        for number in range(count)
    ]


def _row(
    device: GpuDevice, latencies: tuple[float, float], count: int, repeats: int, peer: CPeer | None
) -> dict[str, object]:
    slos = drawn(device, latencies, count, Random(count))
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
        "objects_us": round(quartiles(lambda: admit_greedily(device, slos), max(repeats // 10, 3))[1]),
        "peak_mb": round(cost(lambda: admit_arrays(gpu, nfs, arrays), 3).peak_mb, 2),
    }
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
