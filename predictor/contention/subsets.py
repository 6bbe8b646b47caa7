"""Memory contention never falls when a competitor is added: predictions are bounded by those of fewer competitors.

A model that is fitted to noisy runs may predict slightly less contention for a larger sum of counters, where runs are
few or noise exceeds the effect. All NFs together contend for the memory at least as much as some of them do, so the
prediction is the lowest over all subsets of an NF's competitors.

This holds for memory alone. On an accelerator, a competitor may slow another competitor, which leaves more of the
accelerator to the NF; the equilibrium is not bounded.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from predictor.contention.batch import CoLocationBatch
from predictor.contention.memory_logarithm import WORKING_SET, MemoryModels, write_logarithms
from predictor.contention.workload_table import WorkloadTable
from predictor.regression.compiled import compiled, copy_into, fill

Array = NDArray[np.float64]

MOST_COMPETITORS = 7
"""With more competitors only all of them together are looked at: subsets are too many."""


def lowest_over_subsets(table: WorkloadTable, batch: CoLocationBatch, models: MemoryModels) -> Array:
    """The lowest share of its throughput that memory contention of any subset of its competitors leaves each member.

    Shape (co-locations, members), between 0 and 1; 1 where a member has no competitors. The models are in the order of
    the table's NFs.
    """
    shares = np.ones(batch.member.shape)
    for at, size in enumerate(batch.sizes.tolist()):
        write_lowest_shares(table.columns, models, batch.member[at, :size], shares[at, :size])
    return shares


@compiled
def write_lowest_shares(table, models, member, shares):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the lowest share of each of the members of one co-location."""
    if len(member) < 2:
        fill(shares, 1.0)
        return
    others = len(member) - 1
    subsets = (1 << others) - 1 if others <= MOST_COMPETITORS else 1
    counters = np.empty((subsets, table.counters.shape[1]))
    traffic, own_wss = np.empty((subsets, table.traffic.shape[1])), np.empty(subsets)
    logarithm = np.empty(subsets)
    for place in range(len(member)):
        row = member[place]
        if place > 0 and member[place - 1] == row:
            shares[place] = shares[place - 1]
            continue
        _write_sums(table.counters, member, place, counters)
        for subset in range(subsets):
            copy_into(traffic[subset], table.traffic[row])
        fill(own_wss, table.counters[row, WORKING_SET] if table.relative[row] else 0.0)
        write_logarithms(models, table.nf[row], counters, traffic, own_wss, logarithm)
        lowest = np.inf
        for subset in range(subsets):
            lowest = min(lowest, logarithm[subset])
        if not table.relative[row]:
            lowest -= math.log(table.base[row])
        shares[place] = math.exp(min(lowest, 0.0))


@compiled
def _write_sums(own, member, place, sums):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write the summed counters of every subset of the competitors of one member, or of all where subsets are many.

    Subset k holds those competitors whose bit in k + 1 is set: one of them, and a subset that was summed before.
    """
    others = len(member) - 1
    for other in range(others):
        competitor = own[member[other if other < place else other + 1]]
        if others > MOST_COMPETITORS:
            if other == 0:
                fill(sums[0], 0.0)
            for counter in range(len(competitor)):
                sums[0, counter] += competitor[counter]
            continue
        first = 1 << other
        copy_into(sums[first - 1], competitor)
        for without in range(first - 1):
            for counter in range(len(competitor)):
                sums[first + without, counter] = sums[without, counter] + competitor[counter]
