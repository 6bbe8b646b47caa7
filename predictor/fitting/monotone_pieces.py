"""The whole numbers of a fitted model's range, cut into pieces on which it only rises or only falls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.fitted_model import FittedModel
from profiles import InputError

Array = NDArray[np.float64]

LARGEST_X = 2**53
LOOKED_AT = 4097
"""Places of a segment, evenly and geometrically spaced, between which it is assumed to turn at most once."""
FLAT = 1e-12
"""A smaller relative difference is rounding, and no turn."""
CANDIDATES = 64
"""Places at a time of the search for a turn."""


@dataclass(frozen=True)
class MonotonePiece:
    """Whole numbers from first to last on which the function only rises or only falls."""

    first: int
    last: int
    function: Callable[[Array], Array]

    def at(self, x: int) -> float:
        """The value at a whole number."""
        return float(self.function(np.array([float(x)]))[0])


def monotone_pieces(model: FittedModel) -> list[MonotonePiece]:
    """The pieces, by rising x, without gaps.

    Raises
    ------
    InputError
        When the model's range holds no whole number, one below 0 or one above 2^53, or when a value is not finite.
    """
    return list(_pieces(model, *_domain(model)))


def refuse_not_finite(values: Array) -> None:
    """InputError for values that are not finite."""
    if not np.isfinite(values).all():
        raise InputError.of("--code", "the model has no finite value at a whole number of its range")


def _domain(model: FittedModel) -> tuple[int, int]:
    if model.start < 0 or model.end > LARGEST_X:
        message = (
            f"the model is of x from {model.start:g} to {model.end:g}; a table matches whole numbers from 0 to 2^53"
        )
        raise InputError.of("--code", message)
    first, last = math.ceil(model.start), math.floor(model.end)
    if first > last:
        raise InputError.of("--code", f"there is no whole number from {model.start:g} to {model.end:g}",
                            hint="fit x in a smaller unit")  # fmt: skip
    return first, last


def _pieces(model: FittedModel, first: int, last: int) -> Iterator[MonotonePiece]:
    """The whole numbers of the model's range, cut at its breakpoints and where a segment turns."""
    ends = [math.ceil(point.at) - 1 for point in model.breakpoints]
    for segment, end in zip(model.segments, [*ends, last], strict=True):
        end = min(end, last)
        if end < first:
            continue
        for turn in [*_turns(segment.predict, first, end), end]:
            yield MonotonePiece(first, turn, segment.predict)
            first = turn + 1


def _turns(function: Callable[[Array], Array], first: int, last: int) -> list[int]:
    """Where a function of whole numbers turns: the last number of each piece but the last one."""
    steps = np.linspace(0.0, last - first, LOOKED_AT)
    geometric = np.expm1(np.linspace(0.0, math.log1p(last - first), LOOKED_AT))
    x = first + np.unique(np.concatenate([np.rint(steps), np.rint(geometric)]))
    values = function(x)
    refuse_not_finite(values)
    direction = _directions(values)
    turns = []
    before = 0
    for at in np.flatnonzero(direction):
        if before and direction[at] != before:
            turns.append(_extreme(function, int(x[at - 1]) - 1, int(x[at + 1]), int(before), first))
        before = direction[at]
    return sorted({turn for turn in turns if first <= turn < last})


def _directions(values: Array) -> NDArray[np.int8]:
    """Whether values rise (1), fall (-1), or neither but for rounding (0)."""
    change = np.diff(values)
    small = FLAT * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    return np.where(np.abs(change) <= small, 0, np.sign(change)).astype(np.int8)


def _extreme(function: Callable[[Array], Array], low: int, high: int, rising: int, first: int) -> int:
    """The whole number of a range at which a function is largest (`rising` 1) or smallest (-1), by golden section."""
    low = max(low, first)
    while high - low > CANDIDATES:
        x = np.unique(np.rint(np.linspace(low, high, CANDIDATES)))
        best = int(np.argmax(rising * function(x)))
        low, high = int(x[max(best - 1, 0)]), int(x[min(best + 1, len(x) - 1)])
    x = np.arange(low, high + 1, dtype=float)
    return int(x[np.argmax(rising * function(x))])
