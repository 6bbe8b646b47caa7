"""A fitted model as a table from ranges of whole numbers to whole values, for machines that cannot calculate. A range
is as long as one value is within the error bound on all of it, which gives the fewest ranges. Where there are too many,
the bound grows. Each segment is cut where it turns, so that on every piece the ends are the extremes; the cuts and ends
decide, and no number between them has to be looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.fitted_model import FittedModel
from profiles import InputError
from profiles.arrays import Floats

DEFAULT_ERROR_BOUND = 0.01
"""Relative error that is allowed if there are few enough ranges for it."""
MOST_RANGES = 1_023
SPAN_GROWTH = 1.25
"""By which the bound grows, until there are few enough ranges."""

ROUNDING_SHARE = 0.02
"""Rounding to whole values may take this share of the bound."""
WIDEST_BITS = 63
SMALLEST_SHARE = 1e-9
"""If values change sign, or come closer to 0 than this share of the largest, errors near 0 cannot be relative..."""
FLOOR_SHARE = 1e-3
"""...to the values, and are relative to this share of the largest."""

AT_ONCE = 64
MOST_ENUMERATED = 10_000_000
ENUMERATION_CHUNK = 1_000_000
RANGE_SAMPLES = 200
"""Places per range that the mean error is taken from where not every whole number is looked at."""


@dataclass(frozen=True)
class TableRange:
    """Whole numbers x from first to last, with one value."""

    first: int
    last: int
    value: int


@dataclass(frozen=True)
class IntegerTable:
    """A table that stands for a model."""

    ranges: tuple[TableRange, ...]
    """By rising x, without gaps."""
    fraction_bits: int
    """A value stands for value / 2^fraction_bits."""
    bound: float
    """The relative error within which each range was made."""
    largest_error: float
    mean_error: float
    """Relative to the model's value at a whole number x, or to `floor` where that is larger."""
    floor: float
    """In the unit of y; 0 where every error is relative to the model's value."""
    enumerated: bool
    """Whether `mean_error` is of every whole number, else of evenly spaced ones of each range."""


def integer_table(model: FittedModel, bound: float = DEFAULT_ERROR_BOUND, most: int = MOST_RANGES) -> IntegerTable:
    """The table of fewest ranges within a relative error. `model`: of x from 0. `bound`: of the relative error; it
    grows until there are at most `most` ranges. `most`: ranges. Raises `InputError` when the model's range holds no
    whole number, one below 0 or above 2^53, or when its values are too large or have no finite value."""
    if model.start < 0 or model.end > LARGEST_X:
        message = (
            f"the model is of x from {model.start:g} to {model.end:g}; a table matches whole numbers from 0 to 2^53"
        )
        raise InputError.of("--code", message)
    first, last = math.ceil(model.start), math.floor(model.end)
    if first > last:
        raise InputError.of("--code", f"there is no whole number from {model.start:g} to {model.end:g}",
                            hint="fit x in a smaller unit")  # fmt: skip
    pieces = list(_pieces(model, first, last))
    ends = np.array([value for piece in pieces for value in (piece.at(piece.first), piece.at(piece.last))])
    # whether values are far enough from 0 for relative errors.
    sizes = np.abs(ends)
    is_relative = bool(sizes.min() > SMALLEST_SHARE * sizes.max() and (ends.min() > 0 or ends.max() < 0))
    floor = float(np.abs(ends).min() if is_relative else FLOOR_SHARE * np.abs(ends).max())
    bits = max(0, math.ceil(-math.log2(2 * ROUNDING_SHARE * bound * floor))) if floor else 0
    if float(np.abs(ends).max()) * 2.0**bits >= 2.0**WIDEST_BITS:
        raise InputError.of("--code", "the values are too large, or too different, for whole numbers of 64 bits")
    while (ranges := _ranges(pieces, bound, floor, bits, most)) is None:
        bound = min(1.0, bound * SPAN_GROWTH)
    largest, mean, enumerated = _errors(model, pieces, ranges, floor, bits)
    return IntegerTable(tuple(ranges), bits, bound, largest, mean, 0.0 if is_relative else floor, enumerated)


@dataclass
class _Span:
    """The least and the largest value of a growing range, and whether one whole value is near enough to both."""

    bound: float
    floor: float
    scale: float
    least: float = math.inf
    largest: float = -math.inf

    def limits(self, values: Floats) -> tuple[Floats, Floats]:
        """Between which whole values must be, if each of the values is added."""
        least, largest = np.minimum(values, self.least), np.maximum(values, self.largest)
        low = largest - self.bound * np.maximum(np.abs(largest), self.floor)
        high = least + self.bound * np.maximum(np.abs(least), self.floor)
        return np.ceil(low * self.scale), np.floor(high * self.scale)

    def takes(self, values: Floats) -> NDArray[np.bool_]:
        """For each of the values, whether it can be added."""
        low, high = self.limits(values)
        return low <= high

    def add(self, value: float) -> None:
        """A value that the range takes."""
        self.least, self.largest = min(self.least, value), max(self.largest, value)

    def value(self) -> int:
        """The whole value of least error."""
        sizes = [max(abs(bound), self.floor) for bound in (self.least, self.largest)]
        even = (self.least * sizes[1] + self.largest * sizes[0]) / sum(sizes) if sum(sizes) else 0.0
        low, high = self.limits(np.array([self.least]))
        return int(min(max(round(even * self.scale), int(low[0])), int(high[0])))


def _ranges(pieces: list[MonotonePiece], bound: float, floor: float, bits: int, most: int) -> list[TableRange] | None:
    """The ranges, each as long as possible; None if there are more than `most`."""
    ranges: list[TableRange] = []
    span, begin = _Span(bound, floor, 2.0**bits), pieces[0].first
    for piece in pieces:
        at = piece.first
        while at <= piece.last:
            reached = _extend_range(piece, at, span)
            at = reached + 1
            if at <= piece.last:
                ranges.append(TableRange(begin, reached, span.value()))
                span, begin = _Span(bound, floor, 2.0**bits), at
                if len(ranges) >= most:
                    return None
    return [*ranges, TableRange(begin, pieces[-1].last, span.value())]


def _extend_range(piece: MonotonePiece, first: int, span: _Span) -> int:
    """Extend a range by a piece, from `first`; the last whole number that it takes, `first - 1` if it takes none."""
    beginning = np.array([piece.at(first)])
    refuse_not_finite(beginning)
    if not span.takes(beginning)[0]:
        return first - 1
    span.add(float(beginning[0]))
    reached = _last_taken(piece, first, span)
    span.add(piece.at(reached))
    return reached


def _last_taken(piece: MonotonePiece, first: int, span: _Span) -> int:
    """The last whole number of a piece, from `first` which is taken, that the range takes."""
    low, high = first, piece.last
    while low < high:
        x = np.unique(np.rint(np.linspace(low + 1, high, min(AT_ONCE, high - low))))
        taken = span.takes(piece.function(x))
        if taken.all():
            return high
        refused = int(np.argmin(taken))
        high = int(x[refused]) - 1
        low = int(x[refused - 1]) if refused else low
    return low


def _errors(
    model: FittedModel, pieces: list[MonotonePiece], ranges: list[TableRange], floor: float, bits: int
) -> tuple[float, float, bool]:
    """The largest error, the mean error, and whether these are of every whole number."""
    first, last = ranges[0].first, ranges[-1].last
    starts = np.array([span.first for span in ranges], dtype=float)
    values = np.array([span.value for span in ranges]) / 2.0**bits

    def errors(x: Floats) -> Floats:
        exact = model.predict(x)
        size = np.maximum(np.abs(exact), floor)
        difference = np.abs(values[np.searchsorted(starts, x, side="right") - 1] - exact)
        return np.divide(difference, size, out=np.zeros_like(size), where=size > 0)

    if last - first < MOST_ENUMERATED:
        largest = total = 0.0
        for begin in range(first, last + 1, ENUMERATION_CHUNK):
            found = errors(np.arange(begin, min(begin + ENUMERATION_CHUNK, last + 1), dtype=float))
            largest, total = max(largest, float(found.max())), total + float(found.sum())
        return largest, total / (last - first + 1), True
    edges = {edge for piece in pieces for edge in (piece.first, piece.last)}
    edges |= {edge for span in ranges for edge in (span.first, span.last)}
    largest = float(errors(np.array(sorted(edges), dtype=float)).max())
    means = [float(errors(np.rint(np.linspace(span.first, span.last, RANGE_SAMPLES))).mean()) for span in ranges]
    lengths = [span.last - span.first + 1 for span in ranges]
    return largest, float(np.average(means, weights=lengths)), False


# The whole numbers of a fitted model's range, cut into pieces on which it only rises or only falls.


LARGEST_X = 2**53
LOOKED_AT = 4097
"""Places of a segment, evenly and geometrically spaced, between which it is assumed to turn at most once."""
FLAT_SLOPE = 1e-12
"""A smaller relative difference is rounding, and no turn."""
CUT_CANDIDATES = 64
"""Places at a time of the search for a turn."""


@dataclass(frozen=True)
class MonotonePiece:
    """Whole numbers from first to last on which the function only rises or only falls."""

    first: int
    last: int
    function: Callable[[Floats], Floats]

    def at(self, x: int) -> float:
        """The value at a whole number."""
        return float(self.function(np.array([float(x)]))[0])


def refuse_not_finite(values: Floats) -> None:
    """InputError for values that are not finite."""
    if not np.isfinite(values).all():
        raise InputError.of("--code", "the model has no finite value at a whole number of its range")


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


def _turns(function: Callable[[Floats], Floats], first: int, last: int) -> list[int]:
    """Where a function of whole numbers turns: the last number of each piece but the last one."""
    steps = np.linspace(0.0, last - first, LOOKED_AT)
    geometric = np.expm1(np.linspace(0.0, math.log1p(last - first), LOOKED_AT))
    x = first + np.unique(np.concatenate([np.rint(steps), np.rint(geometric)]))
    values = function(x)
    refuse_not_finite(values)
    # Whether values rise (1), fall (-1), or neither but for rounding (0).
    change = np.diff(values)
    small = FLAT_SLOPE * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    direction = np.where(np.abs(change) <= small, 0, np.sign(change)).astype(np.int8)
    turns = []
    before = 0
    for at in np.flatnonzero(direction):
        if before and direction[at] != before:
            turns.append(_extreme(function, int(x[at - 1]) - 1, int(x[at + 1]), int(before), first))
        before = direction[at]
    return sorted({turn for turn in turns if first <= turn < last})


def _extreme(function: Callable[[Floats], Floats], low: int, high: int, rising: int, first: int) -> int:
    """The whole number of a range at which a function is largest (`rising` 1) or smallest (-1), by golden section."""
    low = max(low, first)
    while high - low > CUT_CANDIDATES:
        x = np.unique(np.rint(np.linspace(low, high, CUT_CANDIDATES)))
        best = int(np.argmax(rising * function(x)))
        low, high = int(x[max(best - 1, 0)]), int(x[min(best + 1, len(x) - 1)])
    x = np.arange(low, high + 1, dtype=float)
    return int(x[np.argmax(rising * function(x))])
