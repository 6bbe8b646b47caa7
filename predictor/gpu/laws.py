"""What the time of a stage depends on: the terms of its linear law, and the inputs of what the law leaves over.

Grus (section V-A) fits one straight line per stage: over the batch for transfers, over executors for kernels. Here the
slope also depends on the traffic, and a smooth correction (`stage_time`) follows whatever the line does not.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from profiles.traffic import ATTRIBUTES

Array = NDArray[np.float64]

INPUTS = ("count", *ATTRIBUTES)
"""Columns of the inputs of every stage: packets of the batch (of the minibatch for kernels), then the traffic."""
KB = 1e-3
"""Sizes in terms are in units of 1,000 bytes, so that coefficients are of one order."""


class Law(Enum):
    """The kinds of stages."""

    TRANSFER = "transfer"
    """Copies over the bus, and pre- and post-processing: a fixed time, and one per packet and byte."""
    KERNEL = "kernel"
    """Kernels: a fixed time, and one per executor; within its last executor a minibatch costs little more."""


def executors(packets: Array, per_executor: int) -> Array:
    """The executors that this many packets occupy."""
    whole: Array = np.ceil(packets / per_executor)
    return whole


def terms(law: Law, inputs: Array, per_executor: int) -> Array:
    """The terms of the linear law, shape (N, terms); their coefficients are not negative."""
    count, _, size, mtbr = inputs.T
    ones = np.ones(len(inputs))
    if law is Law.TRANSFER:
        return np.column_stack([ones, count, count * size * KB])
    used = executors(count, per_executor)
    return np.column_stack([ones, used, size * KB, used * size * KB, count * KB, used * size * mtbr * KB * KB])


def coordinates(law: Law, inputs: Array, per_executor: int) -> Array:
    """The inputs of the smooth correction, shape (N, coordinates): logarithms, so that ranges are of one order."""
    count, flows, size, mtbr = inputs.T
    traffic = [np.log(flows), np.log(size), np.log1p(mtbr)]
    if law is Law.TRANSFER:
        return np.column_stack([np.log(count), *traffic])
    used = executors(count, per_executor)
    return np.column_stack([np.log(used), count / (used * per_executor), *traffic])
