"""Machine code: Numba compiles kernels on their first call and keeps them in the user's cache. Models are evaluated for
a few rows at a time as often as for many, and a NumPy call costs more than the arithmetic on a few rows. Kernels
therefore loop over rows, and the functions on arrays call them."""

import gc
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import platformdirs
from numba import jit, njit, types
from numba.core import event
from numba.core.compiler import Flags
from numpy.typing import NDArray

Kernel = Callable[..., Any]

NOT_NEEDED: dict[str, Any] = {"no_cfunc_wrapper": True}
"""Of `njit`: machine code by which C would call a kernel takes as long to compile as that by which Python does."""

KERNEL_FOLDERS = tuple(Path(__file__).parents[1] / room for room in ("regression", "contention", "gpu"))
"""Where kernels are."""
KEPT_FOLDERS = 24  # folders of kernels that are kept: each version of placer has four

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
"""The natural logarithm of 2 in two parts, so that multiples of it subtract without rounding."""
ROUNDING_SUMMAND = 1.5 * 2**52  # adding and subtracting it rounds to an integer, which then is in the lowest bits
LEAST_EXPONENT = -708.0  # the exponent of about the smallest normal number


def compile_kernel(kernel: Kernel) -> Kernel:
    """The kernel as machine code; where nothing may be written it is compiled anew in every process."""
    return _compile(kernel, {"contract"})


def reducing(kernel: Kernel) -> Kernel:
    """As `compile_kernel`; sums are added in any order, so that they become vector instructions."""
    return _compile(kernel, {"contract", "reassoc"})


def exact(kernel: Kernel) -> Kernel:
    """As `compile_kernel`; every operation is rounded by itself, in the order written: the same bits everywhere."""
    return _compile(kernel, set())


def _compile(kernel: Kernel, fastmath: set[str]) -> Kernel:
    return cache_kernel(njit(error_model="numpy", fastmath=fastmath, **NOT_NEEDED)(kernel), KERNEL_FOLDERS)


def cache_kernel(made: Any, folders: tuple[Path, ...]) -> Kernel:
    """A kernel that Numba has made, kept on disk until a file of the folders changes, which hold all that it calls.

    Numba alone looks at the file of the kernel, although kernels of other files are compiled into it, and at when that
    file was written, which installing placer again changes. Where nothing may be written, and where kernels are
    interpreted (NUMBA_DISABLE_JIT=1), it is returned as it is. Each digest of the folders has a folder of its own:
    Numba fails on what another version of placer left, since that names modules that have moved."""
    if not hasattr(made, "enable_caching"):
        return cast("Kernel", made)
    unliteral: Callable[[Any], Any] = types.unliteral

    own = made.get_call_template, made.get_overload

    @cache
    def for_kernels() -> tuple[Callable[..., Any], Callable[..., Any]]:
        """How kernels call it: as `made`, without what Python needs to call it, an eighth of the time to compile."""
        if getattr(made, "shared", False):
            return own
        called: Any = _keep(jit(**{**made.targetoptions, "no_cpython_wrapper": True})(made.py_func), folders, "-called")
        return called.get_call_template, called.get_overload

    def get_call_template(arguments: tuple[Any, ...], by_name: dict[str, Any]) -> Any:
        """What a kernel calls. Different constants are one type: Numba would compile the kernel for each of them."""
        by_type = {name: unliteral(kind) for name, kind in by_name.items()}
        return for_kernels()[0](tuple(map(unliteral, arguments)), by_type)

    made.get_call_template, made.get_overload = get_call_template, lambda called: for_kernels()[1](called)
    return _keep(made, folders, "")


def share_with_python(kernel: Kernel) -> Kernel:
    """The kernel, which Python calls and kernels call, too: both call the same machine code, else there would be two
    of it to compile."""
    kernel.shared = True  # type: ignore[attr-defined]
    return kernel


def _keep(made: Any, folders: tuple[Path, ...], ending: str) -> Kernel:
    """As `cache_kernel`; names of files end in `ending`."""
    try:
        made.enable_caching()
    except RuntimeError:
        return cast("Kernel", made)
    digest, kernel = digest_of_sources(folders), made.py_func
    try:
        folder = _kernel_folder(digest)
    except OSError:
        folder = Path(made._cache._cache_path)
    base = f"{kernel.__module__}.{kernel.__qualname__}-{kernel.__code__.co_firstlineno}-{digest[:12]}{ending}"
    made._cache._cache_file = type(made._cache._cache_file)(str(folder), base, digest)
    return cast("Kernel", made)


@cache
def _kernel_folder(digest: str) -> Path:
    """The folder of the kernels of this digest in the user's cache; the longest unused ones of others are removed."""
    home = platformdirs.user_cache_path("nf-placer") / "kernels"
    folder = home / f"{digest[:12]}-{sys.implementation.cache_tag}"
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    used = sorted(home.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
    for unused in used[KEPT_FOLDERS:]:
        shutil.rmtree(unused, ignore_errors=True)
    return folder


class _Compiling(event.Listener):
    """Says once that kernels are compiled, to the last who asked, and how long it took."""

    say: Callable[[str], None] | None = None

    def __init__(self) -> None:
        self._kernels: list[float] = []  # when each was begun; a kernel waits for those that it calls
        self._collected = True
        self.took_s = 0.0

    def on_start(self, compiling: event.Event) -> None:
        if not self._kernels:
            self._collected = gc.isenabled()
            gc.disable()  # a compiler keeps nearly all that it makes: looking for garbage takes a tenth of its time
        self._kernels.append(time.monotonic())
        if self.say is not None:
            say, self.say = self.say, None
            say("compiling the models for this machine (once, up to a minute)")

    def on_end(self, compiled: event.Event) -> None:
        began = self._kernels.pop()
        if not self._kernels:
            self.took_s += time.monotonic() - began
            if self._collected:
                gc.enable()


_compiling = _Compiling()
event.register("numba:compile", _compiling)  # type: ignore[no-untyped-call]

# Numba looks operators up by its options, and computes their hash each time, a tenth of the time to compile: that of
# their names, which is always the same
FLAGS_HASH = hash(Flags())  # type: ignore[no-untyped-call]
Flags.__hash__ = lambda flags: FLAGS_HASH  # type: ignore[method-assign]


def running_s() -> float:
    """The time (s) of a clock that stands still while kernels are compiled: what is measured by it takes as long on a
    new machine as later."""
    return time.monotonic() - _compiling.took_s


def announce_compiling(say: Callable[[str], None]) -> None:
    """Call `say` with a message when this process next compiles a kernel; those in the cache are not compiled. It
    replaces the `say` of a call before."""
    _compiling.say = say


@cache
def digest_of_sources(folders: tuple[Path, ...]) -> str:
    """The digest of all Python files in these folders."""
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def pad(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The arrays one after the other along a new first axis, each padded with zeros to the largest. There is at least
    one, and all have as many axes."""
    together = np.zeros((len(arrays), *np.max([array.shape for array in arrays], axis=0)), dtype=arrays[0].dtype)
    for at, array in enumerate(arrays):
        together[at][tuple(slice(length) for length in array.shape)] = array
    return together


@compile_kernel
def exponential(exponent):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """e to the power of a number that is not positive, to an error of 2e-16. The C library's function is called number
    by number; this one becomes vector instructions: e^x = 2^n e^r, where n is an integer and e^r, with r between -0.35
    and 0.35, its Taylor series."""
    exponent = max(exponent, LEAST_EXPONENT)
    shifted = exponent * LOG2_E + ROUNDING_SUMMAND
    times = shifted - ROUNDING_SUMMAND
    rest = (exponent - times * LN2_HIGH) - times * LN2_LOW
    series = 1.0 / 6227020800.0
    series = series * rest + 1.0 / 479001600.0
    series = series * rest + 1.0 / 39916800.0
    series = series * rest + 1.0 / 3628800.0
    series = series * rest + 1.0 / 362880.0
    series = series * rest + 1.0 / 40320.0
    series = series * rest + 1.0 / 5040.0
    series = series * rest + 1.0 / 720.0
    series = series * rest + 1.0 / 120.0
    series = series * rest + 1.0 / 24.0
    series = series * rest + 1.0 / 6.0
    series = series * rest + 0.5
    series = series * rest + 1.0
    series = series * rest + 1.0
    power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return series * power


# Numba compiles an expression on arrays for seconds, with the text of every error it might raise; loops take none


@compile_kernel
def fill(array, value):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Set every number of a one-dimensional array."""
    for at in range(len(array)):
        array[at] = value


@compile_kernel
def copy_into(array, values):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Set the numbers of a one-dimensional array to those of another."""
    for at in range(len(array)):
        array[at] = values[at]


@compile_kernel
def scale(array, factor):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Multiply every number of a one-dimensional array."""
    for at in range(len(array)):
        array[at] *= factor


@reducing
def dot(left, right, count):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The sum of products of the first `count` numbers."""
    total = 0.0
    for at in range(count):
        total += left[at] * right[at]
    return total
