"""`placer profile --testbed SPEC --out PROFILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placer.commands.options import Quiet, Seed, Timeout

TestbedSpec = Annotated[str, typer.Option(help="simulated, exec:COMMAND or replay:PROFILE.", show_default=False)]
Out = Annotated[Path, typer.Option(help="The PROFILE folder to write.", show_default=False)]
Nf = Annotated[list[str] | None, typer.Option(help="Repeatable; all that the testbed hosts by default.")]
Method = Annotated[str, typer.Option(help="adaptive, random or full.")]
Quota = Annotated[
    int | None, typer.Option(min=1, help="Runs per NF, everything counted; 400 by default.", show_default=False)
]


def command(
    testbed: TestbedSpec,
    out: Out,
    nf: Nf = None,
    method: Method = "adaptive",
    quota: Quota = None,
    timeout: Timeout = 60.0,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Profile NFs on a testbed. An interrupted profile goes on where it was with the same command."""
    from placer.progress import Progress
    from profiler.profiling import profile
    from profiler.retry import RetryingTestbed
    from profiler.testbeds import open_testbed

    progress = Progress(quiet=quiet)
    with (
        RetryingTestbed(lambda: open_testbed(testbed, timeout=timeout), progress.say) as card,
        progress.task("profiling") as advance,
    ):
        profile(card, out, nfs=nf or None, method=method, quota=quota, seed=seed, progress=advance, say=progress.say)
    progress.say(f"profile written: {out}")
