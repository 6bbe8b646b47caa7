"""The peer of the benchmark of admission: the same greedy in plain C, for one transfer each."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from placer.gpu.tables import WITHIN_LIMIT, GpuNumbers, SloArrays
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
    def compiled(cls, folder: Path) -> CPeer | None:
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
