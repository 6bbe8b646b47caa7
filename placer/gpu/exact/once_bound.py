"""The most SLOs that the bus can serve if every transfer came only once, blocked by a later one where they recur.

Both buses serve no more than that. A transfer waits at least for one of each earlier one; with deadlines in order, for
the largest later one, too (Jeffay, Stanat, Martel, RTSS 1991).
"""

from __future__ import annotations

from math import inf

import numpy as np

from placer.gpu.compiled import compiled


@compiled
def most_once(transfer, due, blocks):  # type: ignore[no-untyped-def]
    """The largest set that the bus serves: a flag per SLO.

    After the SLOs with deadlines up to one, `least[m, b]` is the smallest sum of transfers of m of them of which all
    are in time if b is the largest later one (0 for none). An SLO of length zero or less is left out.
    """
    count = len(due)
    by_due = np.argsort(due)
    by_size = np.argsort(transfer)
    size = np.zeros(count + 1)
    rank = np.zeros(count, dtype=np.int64)
    for k in range(count):
        size[k + 1] = transfer[by_size[k]]
        rank[by_size[k]] = k + 1
    blockers = count + 1 if blocks else 1
    least = np.full((count + 1, blockers), inf)
    least[0, :] = 0.0
    taken = np.zeros((count, count + 1, blockers), dtype=np.bool_)
    for k in range(count):
        i = by_due[k]
        if transfer[i] > due[i]:
            continue
        for m in range(k + 1, 0, -1):
            for b in range(blockers):
                before = least[m - 1, max(b, rank[i]) if blocks else 0]
                finished = before + transfer[i]
                if finished + size[b] <= due[i] and finished < least[m, b]:
                    least[m, b] = finished
                    taken[k, m, b] = True
    members = np.zeros(count, dtype=np.bool_)
    m, b = 0, 0
    while m < count and least[m + 1, 0] < inf:
        m += 1
    for k in range(count - 1, -1, -1):
        if taken[k, m, b]:
            i = by_due[k]
            members[i] = True
            m -= 1
            b = max(b, rank[i]) if blocks else 0
    return members
