"""`host`: the machine at hand as a testbed (docs/host-testbed.md), through the program that `make nfs` builds."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from profiler.exec import ExecTestbed
from profiler.testbed import Testbed
from profiles import InputError

PROGRAM = "nf-testbed"
BUILT = Path(__file__).resolve().parents[1] / "build" / "nfs" / "testbed" / PROGRAM
TOLD_BY = "NF_TESTBED"
"""The environment variable that names a program built elsewhere."""
BUILD = "make deps nfs"
LEAST_TIMEOUT_S = 5


def find_program() -> Path:
    """The program: the one that the environment names, else the one built here, else the one on the path.

    Raises
    ------
    InputError
        When there is none.
    """
    told = os.environ.get(TOLD_BY)
    for place in (Path(told),) if told else (BUILT, Path(shutil.which(PROGRAM) or BUILT)):
        if place.is_file() and os.access(place, os.X_OK):
            return place
    if told:
        raise InputError.of(TOLD_BY, f"{told} is not a program", hint=f"`{BUILD}` builds one, and it is then found")
    raise InputError.of("--testbed", "host: its program is not built", hint=BUILD)


def open_host(argument: str, timeout: float) -> Testbed:
    """The testbed of `host` or `host:OPTIONS`; the options are the program's own, as in `host:--cores 2-5`.

    What it says of the machine (its null control, what it leaves out) is said on stderr. It is told when an answer is
    due, so that it ends what it does by itself, and says how far it came.
    """
    due = f"--timeout {max(LEAST_TIMEOUT_S, int(timeout))}"
    return ExecTestbed(f"{shlex.quote(str(find_program()))} {due} {argument}", timeout, hear=_say)


def _say(line: str) -> None:
    print(line, file=sys.stderr)
