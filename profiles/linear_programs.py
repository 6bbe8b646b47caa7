"""scipy's solvers of linear and integer programs. HiGHS within them prints a line on stdout now and then, which is for
data: it goes to stderr."""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import scipy.optimize

STDOUT, STDERR = 1, 2
"""Descriptors, as code in C++ has them; `sys.stdout` may be another file."""

_guard = threading.Lock()
_solving = 0  # threads between the two ends of `stdout_kept`
_stdout = -1  # where descriptor 1 leads while there are any; -1: nowhere, as it is closed


def _end_in_child() -> None:
    """In a process that was forked while a thread was solving, there is no such thread."""
    global _guard, _solving, _stdout
    if _stdout >= 0:
        os.dup2(_stdout, STDOUT)
        os.close(_stdout)
    _guard, _solving, _stdout = threading.Lock(), 0, -1


os.register_at_fork(after_in_child=_end_in_child)


@contextmanager
def stdout_kept() -> Iterator[None]:
    """Let what code in C or C++ prints on stdout go to stderr; a few microseconds. Threads may be in here together.

    What other threads print meanwhile goes there, too, and so does the output of a program that they start on stdout.
    """
    global _solving, _stdout
    with _guard:
        if not _solving:
            with suppress(OSError):  # the caller has closed one of them
                _stdout = os.dup(STDOUT)
                os.dup2(STDERR, STDOUT)
        _solving += 1
    try:
        yield
    finally:
        with _guard:
            _solving -= 1
            if not _solving and _stdout >= 0:
                ctypes.pythonapi.fflush(None)  # C has it in a buffer where stdout is a pipe
                os.dup2(_stdout, STDOUT)
                os.close(_stdout)
                _stdout = -1


linprog = stdout_kept()(scipy.optimize.linprog)  # noqa: TID251
milp = stdout_kept()(scipy.optimize.milp)  # noqa: TID251
