"""`host`: this machine as a testbed (docs/host-testbed.md), through the program that `make nfs` builds."""

import os
import platform
import shlex
import shutil
import sys
from pathlib import Path

from profiler.testbed import Testbed
from profiler.testbeds import TESTBEDS
from profiler.testbeds.exec import ExecTestbed
from profiles import InputError

HOST_PROGRAM = "nf-testbed"
BUILT_PROGRAM = Path(__file__).resolve().parents[2] / "build" / "nfs" / "testbed" / HOST_PROGRAM
PROGRAM_VARIABLE = "NF_TESTBED"  # the environment variable that names a program built elsewhere
BUILD_COMMAND = "make deps nfs"
LEAST_TIMEOUT_S = 5
MACHINE_ID = Path("/etc/machine-id")


def find_program() -> Path:
    """The program: the one that the environment names, else the one built here, else the one on the path. Raises
    `InputError` when there is none."""
    named = os.environ.get(PROGRAM_VARIABLE)
    for place in (Path(named),) if named else (BUILT_PROGRAM, Path(shutil.which(HOST_PROGRAM) or BUILT_PROGRAM)):
        if place.is_file() and os.access(place, os.X_OK):
            return place
    if named:
        raise InputError.of(
            PROGRAM_VARIABLE, f"{named} is not a program", hint=f"`{BUILD_COMMAND}` builds one, and it is then found"
        )
    raise InputError.of("--testbed", "host: its program is not built", hint=BUILD_COMMAND)


@TESTBEDS.register("host")
def open_host(argument: str, timeout: float) -> Testbed:
    """The testbed of `host` or `host:OPTIONS`; the options are the program's own, as in `host:--cores 2-5`. The
    program's stderr, with its checks of the machine, is passed on. The program gets the timeout as an option, so that
    it ends a run in time and reports how far it came."""
    limit = f"--timeout {max(LEAST_TIMEOUT_S, int(timeout))}"
    command = f"{shlex.quote(str(find_program()))} {limit} {argument}"
    return ExecTestbed(command, timeout, _print_to_stderr, f"host {_find_machine()}")


def _find_machine() -> str:
    """What distinguishes this machine from others; its options may change."""
    try:
        return MACHINE_ID.read_text(encoding="utf-8").strip() or platform.node()
    except OSError:
        return platform.node()


def _print_to_stderr(line: str) -> None:
    print(line, file=sys.stderr)
