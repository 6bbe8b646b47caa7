"""Many arrays handed to compiled code as one number, where in memory they are described: Numba takes 0.2 us for each
array that a call hands over, and counts references to each view of it. A kernel makes of the address what it was
before, an array as a view, by the places of arrays in the order of the fields."""

from collections.abc import Callable, Iterator
from ctypes import POINTER, c_bool, c_double, c_int64
from ctypes import cast as cast_pointer
from typing import Any, Self, cast

import numpy as np
from numba import carray, config, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from numpy.typing import NDArray

from predictor.regression.boosting import Forests
from predictor.regression.compiled import compile_kernel
from predictor.regression.processes import Processes

PROCESS_ARRAYS, FOREST_ARRAYS = len(Processes._fields), len(Forests._fields)


class PackedArrays:
    """The arrays of nested tuples, field by field; each has at most three axes. Kernels may read them by `address` as
    long as this is there."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self._arrays = [np.ascontiguousarray(array, _kept_type(array)) for array in _flatten(parts)]
        self._layout = np.zeros((len(self._arrays), 1 + MOST_AXES), dtype=np.int64)
        for at, array in enumerate(self._arrays):
            self._layout[at, : 1 + array.ndim] = array.ctypes.data, *array.shape
        self.address: int = self._layout.ctypes.data

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[NDArray[Any], ...]]]:
        """A copy has its own arrays, which are elsewhere."""
        return type(self), (tuple(self._arrays),)


MOST_AXES = 3


def _kept_type(array: NDArray[Any]) -> type[np.generic]:
    return {"f": np.float64, "b": np.bool_}.get(array.dtype.kind, np.int64)


def _flatten(parts: tuple[Any, ...]) -> Iterator[NDArray[Any]]:
    for part in parts:
        if isinstance(part, tuple):
            yield from _flatten(part)
        else:
            yield part


def _pointer_to(kind: types.Type) -> Callable[[int], Any]:
    """What makes a pointer to such values of an address: compiled code, or Python where kernels are interpreted."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        types_of_c: dict[str, Any] = {"float64": c_double, "int64": c_int64, "bool": c_bool}
        of_c = POINTER(types_of_c[str(kind)])
        return lambda address: cast_pointer(int(address), of_c)

    @intrinsic
    def pointer(_, address):  # type: ignore[no-untyped-def]  # pragma: no cover - runs in the compiler
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), generate  # type: ignore[no-untyped-call]

    return cast("Callable[[int], Any]", pointer)


_number_pointer, _whole_pointer = _pointer_to(types.float64), _pointer_to(types.int64)
_flag_pointer = _pointer_to(types.boolean)


@compile_kernel
def _described(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Where array number `at` begins, and its lengths."""
    return carray(_whole_pointer(packed + 8 * (1 + MOST_AXES) * at), 1 + MOST_AXES)


@compile_kernel
def numbers_1d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Array number `at`, of numbers along one axis; likewise below."""
    here = _described(packed, at)
    return carray(_number_pointer(here[0]), here[1])


@compile_kernel
def numbers_2d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    here = _described(packed, at)
    return carray(_number_pointer(here[0]), (here[1], here[2]))


@compile_kernel
def numbers_3d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    here = _described(packed, at)
    return carray(_number_pointer(here[0]), (here[1], here[2], here[3]))


@compile_kernel
def whole_1d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    here = _described(packed, at)
    return carray(_whole_pointer(here[0]), here[1])


@compile_kernel
def whole_2d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    here = _described(packed, at)
    return carray(_whole_pointer(here[0]), (here[1], here[2]))


@compile_kernel
def whole_3d(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    here = _described(packed, at)
    return carray(_whole_pointer(here[0]), (here[1], here[2], here[3]))


@compile_kernel
def flags(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Array number `at`, of truth values."""
    here = _described(packed, at)
    return carray(_flag_pointer(here[0]), here[1])


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
