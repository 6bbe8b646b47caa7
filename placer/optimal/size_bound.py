"""A lower bound on the number of bins from the sizes of items alone, dimension by dimension.

References
----------
S. Martello, P. Toth. Lower bounds and reduction procedures for the bin packing problem. Discrete Applied Mathematics
28(1), 1990 (bound L2). https://doi.org/10.1016/0166-218X(90)90094-S
"""

from __future__ import annotations

import numpy as np

from placer.optimal.arrays import Ints


def size_bound(capacities: Ints, sizes: Ints) -> int:
    """Bins of these capacities, shape (dimensions,), that items of these sizes, (items, dimensions), need at least."""
    by_dimension = (_in_one_dimension(int(capacity), sizes[:, i]) for i, capacity in enumerate(capacities))
    return max(min(len(sizes), 1), *by_dimension)


def _in_one_dimension(capacity: int, sizes: Ints) -> int:
    """Bound L2 where no size is negative, else the sum of the sizes over the capacity.

    For any threshold up to half the capacity: items above half the capacity need a bin each. Items of at least the
    threshold that are no larger than half a bin share bins only with one another and with large items that leave room
    for the threshold.
    """
    if capacity <= 0 or not len(sizes):
        return 0
    if sizes.min() < 0:
        return -(-int(sizes.sum()) // capacity)
    ascending = np.sort(sizes)
    before = np.concatenate([[0], np.cumsum(ascending)])
    half = int(np.searchsorted(ascending, capacity // 2, side="right"))
    thresholds = np.unique(np.append(ascending[:half], 0))
    first = np.searchsorted(ascending, thresholds)
    sharing = np.searchsorted(ascending, capacity - thresholds, side="right")
    free = (sharing - half) * capacity - (before[sharing] - before[half])
    more = np.maximum(-(-(before[half] - before[first] - free) // capacity), 0)
    return int(len(sizes) - half + more.max())
