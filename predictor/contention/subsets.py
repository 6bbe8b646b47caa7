"""Memory contention never falls when a competitor is added: predictions are bounded by those of fewer competitors.

A model that is fitted to noisy runs may predict slightly less contention for a larger sum of counters, where runs are
few or noise exceeds the effect. All NFs together contend for the memory at least as much as some of them do, so the
prediction is the lowest over all subsets of an NF's competitors.

This holds for memory alone. On an accelerator, a competitor may slow another competitor, which leaves more of the
accelerator to the NF; the equilibrium is not bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from predictor.contention.batch import CoLocationBatch
from predictor.contention.workload_table import WorkloadTable

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

MOST_COMPETITORS = 7
"""With more competitors only all of them together are looked at: subsets are too many."""


def lowest_over_subsets(
    table: WorkloadTable, batch: CoLocationBatch, predict: Callable[[str, Rows, Array], Array]
) -> Array:
    """The lowest prediction for each member over all subsets of its competitors, shape (co-locations, members).

    Parameters
    ----------
    table
        The workloads.
    batch
        The co-locations.
    predict
        Called with an NF, rows of the table and summed counters of the competitors, shapes (N,) and (N, 7); returns
        shape (N,).

    Returns
    -------
    predicted
        Infinite where a member has no competitors.
    """
    lowest, together = np.full(batch.member.shape, np.inf), table.competitors(batch.member)
    groups = []
    for size in np.unique(batch.sizes[batch.sizes > 1]).tolist():
        at = np.flatnonzero(batch.sizes == size)
        groups.append((at, _summed(table.counters[batch.member[at, :size]], together[at, :size])))
    if not groups:
        return lowest
    # one call per NF for all sizes: many small calls would cost more than the subsets
    rows = np.concatenate([np.repeat(batch.member[at, : of.shape[1]].ravel(), of.shape[2]) for at, of in groups])
    counters = np.concatenate([of.reshape(-1, of.shape[3]) for _, of in groups])
    predicted = np.empty(len(rows))
    for name, of_nf in table.by_nf(rows):
        predicted[of_nf] = predict(name, rows[of_nf], counters[of_nf])
    for at, of in groups:
        of_group, predicted = np.split(predicted, [of.size // of.shape[3]])
        lowest[at[:, None], np.arange(of.shape[1])] = of_group.reshape(of.shape[:3]).min(axis=2)
    return lowest


def _summed(own: Array, together: Array) -> Array:
    """Summed counters of every subset of each member's competitors, all competitors first.

    `own` and `together`, counters of each member and of all its competitors, are of shape (co-locations, members, 7);
    the sums are of shape (co-locations, members, subsets, 7).
    """
    size = own.shape[1]
    if size - 1 > MOST_COMPETITORS:
        return together[:, :, None, :]
    others, subsets = _others(size), _proper_subsets(size - 1)
    partial = np.einsum("sk,cmkf->cmsf", subsets, own[:, others])
    return np.concatenate([together[:, :, None, :], partial], axis=2)


@cache
def _others(size: int) -> NDArray[np.intp]:
    """The other members of each, shape (size, size - 1)."""
    return np.array([[other for other in range(size) if other != member] for member in range(size)], dtype=np.intp)


@cache
def _proper_subsets(count: int) -> Array:
    """Every subset that is neither empty nor all, shape (subsets, count): 1 for those in it, else 0."""
    numbers = np.arange(1, 2**count - 1)
    return ((numbers[:, None] >> np.arange(count)) & 1).astype(np.float64)
