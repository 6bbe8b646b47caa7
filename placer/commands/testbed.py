"""`placer testbed SPEC`."""

import sys
from typing import Annotated

import typer

from placer.commands.options import Timeout
from profiler.testbeds import list_testbeds, open_testbed

Spec = Annotated[str, typer.Argument(metavar="SPEC", help=f"One of {list_testbeds()}.")]


def command(spec: Spec = "simulated", timeout: Timeout = 60.0) -> None:
    """Serve a testbed over the testbed protocol on stdin and stdout, for --testbed "exec:placer testbed SPEC"."""
    from profiler.serve import serve

    with open_testbed(spec, timeout=timeout) as card:
        serve(card, sys.stdin, sys.stdout)
