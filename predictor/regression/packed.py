"""Many arrays handed to compiled code as three: Numba takes 0.2 us for each array that a call hands over. A kernel
makes of them what it was before, an array as a view, by the places of arrays in the order of the fields."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.regression.boosting import Forests
from predictor.regression.compiled import compile_kernel
from predictor.regression.processes import Processes
from profiles.arrays import Floats

PROCESS_ARRAYS, FOREST_ARRAYS = len(Processes._fields), len(Forests._fields)


class PackedArrays(NamedTuple):
    """Arrays one after the other."""

    numbers: Floats
    whole: NDArray[np.int64]  # whole numbers and truth values
    layout: NDArray[np.int64]
    """Of each array, where it begins in `numbers` or `whole`, and its lengths, shape (arrays, 4)."""


def pack(parts: tuple[Any, ...]) -> PackedArrays:
    """The arrays of nested tuples, field by field; each has at most three axes."""
    ends, kept = [0, 0], ([np.zeros(0)], [np.zeros(0, dtype=np.int64)])
    layout = []
    for array in _flatten(parts):
        which = int(array.dtype.kind != "f")
        layout.append([ends[which], *array.shape, *[0] * (3 - array.ndim)])
        kept[which].append(array.ravel())
        ends[which] += array.size
    numbers, whole = (np.concatenate(arrays) for arrays in kept)
    return PackedArrays(numbers.astype(np.float64), whole.astype(np.int64), np.array(layout, dtype=np.int64))


def _flatten(parts: tuple[Any, ...]) -> Iterator[NDArray[Any]]:
    for part in parts:
        if isinstance(part, tuple):
            yield from _flatten(part)
        else:
            yield part


@compile_kernel
def numbers_1d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Array number `at`, of numbers along one axis; likewise below."""
    begin, first = packed.layout[at, 0], packed.layout[at, 1]
    return packed.numbers[begin : begin + first]


@compile_kernel
def numbers_2d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    begin, first, second = packed.layout[at, 0], packed.layout[at, 1], packed.layout[at, 2]
    return packed.numbers[begin : begin + first * second].reshape((first, second))


@compile_kernel
def numbers_3d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    begin, first, second, third = packed.layout[at]
    return packed.numbers[begin : begin + first * second * third].reshape((first, second, third))


@compile_kernel
def whole_1d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    begin, first = packed.layout[at, 0], packed.layout[at, 1]
    return packed.whole[begin : begin + first]


@compile_kernel
def whole_2d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    begin, first, second = packed.layout[at, 0], packed.layout[at, 1], packed.layout[at, 2]
    return packed.whole[begin : begin + first * second].reshape((first, second))


@compile_kernel
def whole_3d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    begin, first, second, third = packed.layout[at]
    return packed.whole[begin : begin + first * second * third].reshape((first, second, third))


@compile_kernel
def flags(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Array number `at`, of truth values."""
    return whole_1d(packed, at) != 0


@compile_kernel
def processes_at(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """`Processes` whose first array is number `at`."""
    return Processes(
        numbers_2d(packed, at), numbers_2d(packed, at + 1), numbers_2d(packed, at + 2), numbers_3d(packed, at + 3),
        numbers_3d(packed, at + 4), numbers_2d(packed, at + 5), flags(packed, at + 6), whole_1d(packed, at + 7),
    )  # fmt: skip


@compile_kernel
def forests_at(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """`Forests` whose first array is number `at`."""
    return Forests(
        numbers_1d(packed, at), whole_3d(packed, at + 1), numbers_3d(packed, at + 2), numbers_3d(packed, at + 3),
        whole_1d(packed, at + 4),
    )  # fmt: skip
