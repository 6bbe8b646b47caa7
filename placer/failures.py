"""Failures: what the command line prints and exits with when a command cannot go on.

Each is one line. Files are written aside and renamed, so what is on disk is whole; a state commits before it answers.
"""

import errno
import sqlite3

from profiles import InputError

FAILED_STATUS, REFUSED_STATUS = 1, 2


def failure_of(error: BaseException) -> tuple[str, int] | None:
    """The line to print and the exit status; None for a fault of the program, which shows its traceback."""
    from placer.evaluate.checks import InvalidPlan
    from profiler.testbed import TestbedError

    match error:
        case InputError():
            return str(error), REFUSED_STATUS
        case TestbedError() | InvalidPlan():
            return f"error: {error}", FAILED_STATUS
        case MemoryError():
            return "error: out of memory; a smaller input or a machine with more memory is needed", FAILED_STATUS
        case RecursionError():
            return "error: the input is nested too deeply", REFUSED_STATUS
        case OverflowError():
            return f"error: a number of the input is too large: {error}", REFUSED_STATUS
        case ArithmeticError():
            return f"error: {error}", FAILED_STATUS
        case sqlite3.Error():
            return f"error: the state file: {error}; what was acknowledged is kept", FAILED_STATUS
        case OSError(errno=errno.ENOSPC):
            where = f" for {error.filename}" if error.filename else ""
            return f"error: no space left on the disk{where}; nothing half-written was left behind", FAILED_STATUS
        case OSError():
            return f"error: {error}", FAILED_STATUS
    return None
