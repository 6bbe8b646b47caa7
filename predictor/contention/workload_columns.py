"""The columns of a `WorkloadTable`: two arrays with a row per workload, and each column as a view of them.

What a kernel reads of a workload is in a few lines of the processor's cache, and a call hands over two arrays.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.regression.compiled import compile_kernel
from profiles.arrays import Floats

GIVEN_NUMBERS, FIXED_NUMBERS, WHOLE_NUMBERS = 9, 23, 4
"""Numbers of a row that do not follow from others in it, those that are not of an accelerator, and whole ones: the
last is when the row was filled."""


class WorkloadColumns(NamedTuple):
    """The arrays of a `WorkloadTable`, as compiled code reads them; one row per workload."""

    nf: NDArray[np.int64]
    pipeline: NDArray[np.int64]
    relative: NDArray[np.int64]
    factor: Floats
    alone_spread: Floats
    rate: Floats
    pressure: Floats
    exposure: Floats
    doubt: Floats
    traffic: Floats
    deviation: Floats
    counters: Floats
    base: Floats
    match_ms: Floats
    modelled_solo: Floats
    presence: Floats
    queues: Floats
    service: Floats


def count_numbers(accelerators: int) -> int:
    """How many numbers a row has."""
    return FIXED_NUMBERS + 2 * accelerators


def view_columns(numbers: Floats, whole: NDArray[np.int64]) -> WorkloadColumns:
    """The columns of these arrays, shapes (workloads, `count_numbers`) and (workloads, `WHOLE_NUMBERS`)."""
    accelerators = (numbers.shape[1] - FIXED_NUMBERS) // 2
    return WorkloadColumns(
        whole[:, 0], whole[:, 1], whole[:, 2], numbers[:, 0], numbers[:, 1], numbers[:, 2], numbers[:, 3],
        numbers[:, 4], numbers[:, 5], numbers[:, 6:9], numbers[:, 9:12], numbers[:, 12:19], numbers[:, 19],
        numbers[:, 20], numbers[:, 21], numbers[:, 22], numbers[:, FIXED_NUMBERS : FIXED_NUMBERS + accelerators],
        numbers[:, FIXED_NUMBERS + accelerators :],
    )  # fmt: skip


columns_of = compile_kernel(view_columns)
"""As `view_columns`, in compiled code."""
