"""`placer testbed SPEC`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from placer.commands.options import Timeout

Spec = Annotated[str, typer.Argument(help="simulated, host, exec:COMMAND or replay:PROFILE.")]


def command(spec: Spec = "simulated", timeout: Timeout = 60.0) -> None:
    """Serve a testbed over the testbed protocol on stdin and stdout, for --testbed "exec:placer testbed SPEC"."""
    from profiler.serve import serve
    from profiler.testbeds import open_testbed

    with open_testbed(spec, timeout=timeout) as card:
        serve(card, sys.stdin, sys.stdout)
