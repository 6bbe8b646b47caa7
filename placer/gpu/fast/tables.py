"""The arrays of the compiled loops, and which row of them is what.

Few large arrays instead of many small ones: each array that is handed over costs as much as placing an SLO. `sizes`
are those of the GPU; `nfs` has a column per NF; `whole` and `times` (us) have a column per SM, tenant or place in the
queue.
"""

from __future__ import annotations

import numpy as np

from placer.gpu.compiled import compiled

SMS, EXECUTORS, PACKETS, WORKERS, SPORADIC, NFS = range(6)
"""Places in `sizes`."""

SLOPE, FIXED, PRE_POST, PER_EXECUTOR, KERNEL, BETA = range(6)
"""Rows of `nfs`; from `BETA` on, a row for each NF with its penalties beside each other NF."""

COUNTS, FREE, SHARERS, SLO, NF, BATCH, LARGEST, FIRST_SM, CHANGED, CHOSEN, JOB, _OTHER_JOB, ON = range(13)
"""Rows of `whole`.

`FREE` executors and `SHARERS`, which are minibatches, by SM; SLO, NF, batch, executors of the largest minibatch and SM
of the first one by tenant; `CHANGED` tenants and `CHOSEN` SMs are scratch; `JOB` and the next one hold the tenants in
the queue. From `ON` on, a row for each SM: the tenant of each minibatch, and then as many rows with the minibatch.
"""
TENANTS, ROW = range(2)
"""Places in row `COUNTS`: the number of tenants, and which of two rows is the queue; the other is for a trial."""

(
    BEFORE, NOW, LATER, DUE, _DUE, TRANSFER, _TRANSFER, PERIOD, _PERIOD, OVER, _OVER, USED, _USED, DEMAND, _DEMAND,
    WAIT, _WAIT, BLOCKING, BASE,
) = range(19)  # fmt: skip
"""Rows of `times`.

By tenant: the latency without batching, pre- and post-processing, the kernel `NOW`, and beside an arrival (`LATER`).
By place in the queue, in two rows each: when a transfer is due, its time and period, when it is `OVER` if each came
once, the share of the bus that is `USED` up to it, the `DEMAND` of earlier ones until it must begin, and how long it is
known to `WAIT` at least. `BLOCKING` is the longest later transfer. From `BASE` on, a row for each SM: the time of each
minibatch alone. Then by NF and SM the penalty of an arrival, and as many rows with the largest delay of a tenant,
infinite where one would exceed its period.
"""


@compiled
def empty_tables(sizes, count):  # type: ignore[no-untyped-def]
    """`whole` and `times` for at most so many SLOs on a GPU without tenants."""
    sms, executors, nfs = sizes[SMS], sizes[EXECUTORS], sizes[NFS]
    width = max(min(count, sizes[WORKERS], sms * executors) + 2, sms, executors)
    whole = np.empty((ON + 2 * sms, width), np.int64)
    times = np.empty((BASE + sms + 2 * nfs, width))
    whole[COUNTS, TENANTS] = 0
    whole[COUNTS, ROW] = 0
    whole[FREE, :sms] = executors
    whole[SHARERS, :sms] = 0
    times[BASE + sms :, :sms] = 0.0
    return whole, times
