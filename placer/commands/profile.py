"""`placer profile --testbed SPEC --out PROFILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands.options import Quiet, Seed, Timeout
from profiles import InputError

if TYPE_CHECKING:
    from placer.progress import Progress

TestbedSpec = Annotated[
    str | None, typer.Option(help="simulated, host, exec:COMMAND or replay:PROFILE.", show_default=False)
]
Out = Annotated[Path, typer.Option(help="The PROFILE folder to write.", show_default=False)]
Nf = Annotated[list[str] | None, typer.Option(help="Repeatable; all that the testbed hosts by default.")]
Method = Annotated[str, typer.Option(help="adaptive, active, random or full.")]
Quota = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Runs per NF; 400 by default. On the simulated card, throughput in random company and traffic is then "
        "predicted with a mean error of 0.7 %; with 200 runs 0.9 %, with 800 0.6 %. Runs again, where one is in doubt, "
        "come on top.",
        show_default=False,
    ),
]
Status = Annotated[bool, typer.Option("--status", help="Tell what is done and how long the rest takes; run nothing.")]
Merge = Annotated[
    list[Path] | None,
    typer.Option(
        help="Add the journal (.journal.sqlite) of another machine that profiled other NFs; repeatable; runs nothing."
    ),
]


def command(
    out: Out,
    testbed: TestbedSpec = None,
    nf: Nf = None,
    method: Method = "adaptive",
    quota: Quota = None,
    timeout: Timeout = 60.0,
    seed: Seed = 0,
    status: Status = False,
    merge: Merge = None,
    quiet: Quiet = False,
) -> None:
    """Profile NFs on a testbed. An interrupted profile goes on where it was with the same command."""
    from placer.progress import Progress

    progress = Progress(quiet=quiet)
    for other in merge or ():
        from profiler.profiling import merge as take_over

        progress.say(f"{take_over(out, other):,} runs taken over from {other}")
    if status:
        from profiler.profiling import journal_of
        from profiler.status import as_text, read_status

        typer.echo(as_text(read_status(journal_of(out))), nl=False)
    if status or merge:
        return
    if testbed is None:
        raise InputError.of("--testbed", "is missing", hint="simulated, host, exec:COMMAND or replay:PROFILE")
    _profile(testbed, out, nf, method, quota, timeout, seed, progress)


def _profile(
    testbed: str,
    out: Path,
    nfs: list[str] | None,
    method: str,
    quota: int | None,
    timeout: float,
    seed: int,
    progress: Progress,
) -> None:
    from predictor.training.disagreement import disagreement
    from profiler.profiling import profile
    from profiler.retry import RetryingTestbed
    from profiler.testbeds import open_testbed

    with (
        RetryingTestbed(lambda: open_testbed(testbed, timeout=timeout), progress.say) as card,
        progress.task("profiling") as advance,
    ):
        profile(
            card,
            out,
            nfs=nfs or None,
            method=method,
            quota=quota,
            seed=seed,
            progress=advance,
            notify=progress.say,
            suggest=disagreement(seed),
        )
    progress.say(f"profile written: {out}")
