"""What `placer profile` measures: contention, chains, latency, or what the placement of arrivals hinges on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from placer.commands.options import refuse_bad_budget
from placer.commands.signals import ended_by_signals
from profiler.chains.request import ChainRequest
from profiles import InputError

if TYPE_CHECKING:
    from placer.progress import Progress


def profile_contention(
    testbed: str,
    out: Path,
    nfs: list[str] | None,
    method: str,
    quota: int | None,
    timeout: float,
    seed: int,
    progress: Progress,
) -> None:
    """Each NF alone, under contention and beside others; of a GPU server, each stage."""
    from predictor.training.disagreement import disagreement
    from profiler.gpu.profiling import profile_gpu
    from profiler.profiling import profile
    from profiler.retry import RetryingTestbed
    from profiler.testbeds import open_testbed
    from profiles.gpu_tables import GPU

    with (
        ended_by_signals(),
        RetryingTestbed(lambda: open_testbed(testbed, timeout=timeout), progress.say) as card,
        progress.task("profiling") as advance,
    ):
        if card.describe().nic.kind == GPU:
            if method != "adaptive":
                raise InputError.of("--method", "is for NICs; runs on a GPU server are chosen in one way")
            profile_gpu(card, out, nfs=nfs or None, quota=quota, seed=seed, progress=advance, notify=progress.say)
            progress.say(f"profile written: {out}")
            return
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


def profile_chains(
    testbed: str, out: Path, request: ChainRequest, repeats: int | None, timeout: float, seed: int, progress: Progress
) -> None:
    """Chains of NFs, and the cycles of their NFs."""
    from profiler.chains.points import REPEATS
    from profiler.chains.profiling import profile_chains as measure_chains
    from profiler.retry import RetryingTestbed
    from profiler.testbeds import open_testbed

    with (
        ended_by_signals(),
        RetryingTestbed(lambda: open_testbed(testbed, timeout=timeout), progress.say) as card,
        progress.task("measuring chains") as advance,
    ):
        measure_chains(card, out, request, repeats=repeats or REPEATS, seed=seed, progress=advance, notify=progress.say)
    progress.say(f"chains written: {out}")


def profile_for(
    arrivals: str,
    models: Path | None,
    budget: float | None,
    testbed: str,
    out: Path,
    quota: int | None,
    timeout: float,
    seed: int,
    progress: Progress,
) -> None:
    """Further runs of an existing profile, of the co-locations on which the placement of arrivals hinges."""
    from placer.measuring.opening import open_rounds
    from placer.report.text.measuring import as_table
    from profiler.further import profile_further, refuse_quota
    from profiler.retry import RetryingTestbed
    from profiler.testbeds import open_testbed

    if models is None:
        raise InputError.of("--models", "is missing", hint="--for plans with the models that `placer train` wrote")
    if quota is None:
        raise InputError.of("--quota", "is missing", hint="with --for, it is the number of runs over all NFs")
    refuse_quota(quota)
    refuse_bad_budget(budget)
    rounds, key = open_rounds(arrivals, models, out, progress.say, budget)
    with (
        ended_by_signals(),
        RetryingTestbed(lambda: open_testbed(testbed, timeout=timeout), progress.say) as card,
        progress.task("measuring") as advance,
    ):
        profile = profile_further(
            card, out, rounds.choose, key=key, most=quota, seed=seed, progress=advance, notify=progress.say
        )
        rounds.finish(profile)
    progress.say(f"runs added to {out}; `placer train {out} --out MODELS` uses them")
    typer.echo(as_table(rounds.rounds), nl=False)


def profile_latency(
    testbed: str, out: Path, nfs: list[str] | None, repeats: int | None, timeout: float, seed: int, progress: Progress
) -> None:
    """The latency of NFs at offered rates, alone and beside others."""
    from profiler.latency.measuring import TIMES
    from profiler.latency.profiling import profile_latency as measure_latency
    from profiler.retry import RetryingTestbed
    from profiler.testbeds import open_testbed

    with (
        ended_by_signals(),
        RetryingTestbed(lambda: open_testbed(testbed, timeout=timeout), progress.say) as card,
        progress.task("measuring latency") as advance,
    ):
        measure_latency(
            card, out, nfs=nfs or None, times=repeats or TIMES, seed=seed, progress=advance, notify=progress.say
        )
    progress.say(f"latency written: {out}")
