"""How the drops on single resources add up: by the NF's execution pattern (Tomur, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pattern = Literal["pipeline", "run-to-completion"]
PIPELINE: Pattern = "pipeline"
RUN_TO_COMPLETION: Pattern = "run-to-completion"
PATTERNS: tuple[Pattern, ...] = (PIPELINE, RUN_TO_COMPLETION)


def pipeline(solo: Array, drops: Sequence[Array]) -> Array:
    """The slowest stage decides: T = T_solo - max(dT_k) (Tomur, equations 3 and 7)."""
    return solo - np.maximum.reduce([np.zeros_like(solo), *drops])


def run_to_completion(solo: Array, drops: Sequence[Array]) -> Array:
    """Every added wait counts: T = 1 / (sum_k 1/(T_solo - dT_k) - (r-1)/T_solo) (Tomur, equations 4 and 7)."""
    time = 1.0 / solo
    with np.errstate(divide="ignore"):
        time = time + sum(1.0 / (solo - drop) - 1.0 / solo for drop in drops)
    rates: Array = 1.0 / time
    return rates


def summed(solo: Array, drops: Sequence[Array]) -> Array:
    """Strawman: every resource's loss is added (Tomur, section 2.2)."""
    return np.maximum(solo - sum(drops), 0.0)


def smallest(solo: Array, drops: Sequence[Array]) -> Array:
    """Strawman: the lowest of the single-resource predictions (Tomur, section 2.2)."""
    return np.minimum.reduce([solo, *(solo - drop for drop in drops)])


COMPOSITIONS: dict[str, Callable[[Array, Sequence[Array]], Array]] = {
    "pipeline": pipeline,
    "run-to-completion": run_to_completion,
    "sum": summed,
    "min": smallest,
}
