"""`placer profile --testbed SPEC --out PROFILE`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.budget.rounds import Round
from placer.commands import options
from placer.report.text.table import text_table
from profiler.chains.plan import CHAIN_LENGTHS, ORDERS_PER_LENGTH, ChainRequest
from profiler.methods import list_methods
from profiler.testbeds import list_testbeds
from profiles import InputError
from profiles.description import MOST_CORES

if TYPE_CHECKING:
    from placer.inputs.arrivals import TraceOptions
    from placer.progress import Progress


TestbedSpec = Annotated[
    str | None, options.take_option(f"One of {list_testbeds()}.", autocompletion=options.complete_testbed)
]
Out = Annotated[Path, options.take_option("The PROFILE folder to write.")]
Nf = Annotated[
    list[str] | None,
    typer.Option(
        autocompletion=options.complete_nf,
        help="An NF to profile; repeatable. By default, all NFs of the testbed that fit on its NIC.",
    ),
]
MethodName = Annotated[str, typer.Option(help=f"How runs are chosen: {list_methods()}.")]
Quota = Annotated[
    int | None,
    options.take_option(
        "Runs per NF; 400 by default. On the simulated card, throughput with random neighbours and traffic is "
        "then predicted with a mean error of 0.7 %; with 200 runs 0.9 %, with 800 0.6 %. Repeats of doubtful runs"
        " are not counted. With --cores, 600 by default, over all numbers of cores.",
        min=1,
    ),
]
Cores = Annotated[
    str | None,
    options.take_option(
        "Numbers of cores to measure each NF on besides its default, as in 1,2,4. On each, the NF runs alone and "
        "beside benches; then, where the testbed offers rates, co-locations run at random rates and numbers of "
        "cores."
    ),
]
ShowStatus = Annotated[bool, typer.Option("--status", help="Print the progress and the remaining time; run nothing.")]
Merge = Annotated[
    list[Path] | None,
    typer.Option(
        help="Add the journal (.journal.sqlite) of another machine that profiled other NFs; repeatable. Runs nothing."
    ),
]

For = Annotated[
    str | None,
    options.take_option(
        "Arrivals (CSV). Add runs to an existing profile: of the co-locations that matter most for placing such "
        "arrivals, in rounds of planning, measuring and training. --quota is then the number of runs over all "
        "NFs.",
        "--for",
    ),
]
ModelsOf = Annotated[
    Path | None, options.take_option("With --for: the MODELS folder, trained on the profile.", "--models")
]
BudgetOf = Annotated[
    float | None,
    options.take_option(
        "With --for: the SLA violations to accept when such arrivals are placed, in % of the instances.  [default: 2]",
        "--budget",
    ),
]
Chain = Annotated[
    list[str] | None,
    options.take_option(
        "Measure a chain of NFs instead of contention: the NFs in order, as in ACL,NAT or ACL:rules=1024,NAT; "
        "repeatable. A chain runs to completion on one core, and as every possible pipeline on several; | begins "
        "the next core, and then only this placement is measured. The NFs alone, and their cycles per packet, are"
        " measured, too."
    ),
]
Chains = Annotated[
    list[str] | None,
    options.take_option(
        f"Draw chains by the seed, from all NFs or those of --nf: {' or '.join(CHAIN_LENGTHS)}; repeatable."
    ),
]
ChainCount = Annotated[
    int | None, options.take_option(f"Chains drawn of each length.  [default: {ORDERS_PER_LENGTH}]", min=1)
]
CoresOfChain = Annotated[
    int | None, options.take_option("The largest number of cores of a chain; by default, all cores of the NIC.", min=1)
]
Share = Annotated[
    list[float] | None,
    options.take_option(
        "The share of its time that each core spends on the chain; repeatable: every combination is measured.  "
        "[default: 1]"
    ),
]
Repeats = Annotated[
    int | None,
    options.take_option(
        "Runs of a chain at each traffic and offered load, or of an NF at each rate.  [default: 2]", min=1
    ),
]
Latency = Annotated[
    bool,
    typer.Option(
        "--latency",
        help="Measure the latency of NFs at offered rates instead of contention: alone, at several traffic "
        "profiles, and co-located.",
    ),
]


def command(
    out: Out,
    testbed: TestbedSpec = None,
    nf: Nf = None,
    arrivals: For = None,
    models: ModelsOf = None,
    budget: BudgetOf = None,
    method: MethodName = "adaptive",
    quota: Quota = None,
    cores: Cores = None,
    chain: Chain = None,
    chains: Chains = None,
    chain_count: ChainCount = None,
    cores_of_chain: CoresOfChain = None,
    share: Share = None,
    repeats: Repeats = None,
    latency: Latency = False,
    timeout: options.Timeout = 60.0,
    seed: options.Seed = 0,
    status: ShowStatus = False,
    merge: Merge = None,
    ignore_columns: options.IgnoreColumns = False,
    skip_empty_stays: options.SkipEmptyStays = False,
    quiet: options.Quiet = False,
) -> None:
    """Profile NFs, their latency, or chains of NFs, on a testbed. The same command resumes an interrupted profile."""
    from placer.progress import Progress

    progress = Progress(quiet=quiet)
    for other in merge or ():
        from profiler.profiling import merge as add_journal

        progress.say(f"{add_journal(out, other):,} runs added from {other}")
    if status:
        from profiler.journal.status import as_text, read_status
        from profiler.profiling import journal_of

        typer.echo(as_text(read_status(journal_of(out))), nl=False)
    if status or merge:
        return
    if testbed is None:
        raise InputError.of("--testbed", "is missing", hint=f"one of {list_testbeds()}")
    options.refuse_unwritable_folder("--out", out)
    if arrivals is None:
        options.refuse_without_arrivals("--for", ignore_columns, skip_empty_stays)
    of_chains: dict[str, object] = {"--chain-count": chain_count, "--cores-of-chain": cores_of_chain, "--share": share}
    of_contention: dict[str, object] = {
        "--for": arrivals, "--models": models, "--budget": budget, "--quota": quota, "--cores": cores,
        "--method": method if method != "adaptive" else None,
    }  # fmt: skip
    if latency:
        _refuse_given(
            of_contention | {"--chain": chain, "--chains": chains} | of_chains, "cannot be combined with --latency"
        )
        profile_latency(testbed, out, nf, repeats, timeout, seed, progress)
        return
    if chain or chains:
        _refuse_given(of_contention, "cannot be combined with --chain or --chains")
        if nf and not chains:
            raise InputError.of("--nf", "chooses the NFs of --chains, which is missing")
        request = ChainRequest(
            chain or (), chains or (), chain_count or ORDERS_PER_LENGTH, nf or (), cores_of_chain, share or (1.0,)
        )
        profile_chains(testbed, out, request, repeats, timeout, seed, progress)
        return
    _refuse_given(of_chains, "needs --chain or --chains")
    _refuse_given({"--repeats": repeats}, "needs --chain, --chains or --latency")
    if arrivals is not None:
        if nf or method != "adaptive" or cores:
            raise InputError.of("--for", "chooses the runs: leave out --nf, --method and --cores")
        reading = options.trace_options(ignore_columns, skip_empty_stays, progress.say)
        profile_for(arrivals, reading, models, budget, testbed, out, quota, timeout, seed, progress)
        return
    _refuse_given({"--models": models, "--budget": budget}, "needs --for")
    profile_contention(testbed, out, nf, method, quota, _parse_cores(cores), timeout, seed, progress)


def _parse_cores(text: str | None) -> list[int]:
    """Numbers of cores, as in 1,2,4."""
    counts = text.split(",") if text is not None else []
    if not all(count.strip().isdecimal() and 0 < int(count) <= MOST_CORES for count in counts):
        raise InputError.of("--cores", f"'{text}' is no list of numbers of cores", hint="such as 1,2,4")
    return [int(count) for count in counts]


def _refuse_given(given: Mapping[str, object], message: str) -> None:
    """InputError for the first of these options that was given."""
    for option, value in given.items():
        if value is not None and value != []:
            raise InputError.of(option, message)


# What `placer profile` measures: contention, chains, latency, or what the placement of arrivals hinges on.


def profile_contention(
    testbed: str,
    out: Path,
    nfs: list[str] | None,
    method: str,
    quota: int | None,
    cores: list[int],
    timeout: float,
    seed: int,
    progress: Progress,
) -> None:
    """Each NF alone, under contention and beside others; of a GPU server, each stage."""
    from predictor.training.disagreement import disagreement
    from profiler.gpu.profiling import profile_gpu
    from profiler.profiling import profile
    from profiles.gpu_tables import GPU_KIND

    with options.measuring(testbed, timeout, progress, "profiling") as (card, advance):
        if card.describe().nic.kind == GPU_KIND:
            if method != "adaptive":
                raise InputError.of("--method", "is for NICs; runs on a GPU server are chosen in one way")
            if cores:
                raise InputError.of("--cores", "is for NICs; an NF on a GPU server has one core")
            profile_gpu(card, out, nfs=nfs or None, quota=quota, seed=seed, progress=advance, notify=progress.say)
        else:
            profile(
                card, out, nfs=nfs or None, method=method, quota=quota, cores=cores, seed=seed, progress=advance,
                notify=progress.say, suggest=disagreement(seed),
            )  # fmt: skip
    progress.say(f"profile written: {out}")


def profile_chains(
    testbed: str, out: Path, request: ChainRequest, repeats: int | None, timeout: float, seed: int, progress: Progress
) -> None:
    """Chains of NFs, and the cycles of their NFs."""
    from profiler.chains.plan import CHAIN_REPEATS
    from profiler.chains.profiling import profile_chains as measure_chains

    with options.measuring(testbed, timeout, progress, "measuring chains") as (card, advance):
        measure_chains(
            card, out, request, repeats=repeats or CHAIN_REPEATS, seed=seed, progress=advance, notify=progress.say
        )
    progress.say(f"chains written: {out}")


def profile_for(
    arrivals: str,
    reading: TraceOptions,
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
    from placer.budget.rounds import open_rounds
    from profiler.further import profile_further, refuse_quota

    if models is None:
        raise InputError.of("--models", "is missing", hint="--for plans with the models that `placer train` wrote")
    if quota is None:
        raise InputError.of("--quota", "is missing", hint="with --for, it is the number of runs over all NFs")
    refuse_quota(quota)
    options.refuse_bad_budget(budget)
    rounds, key = open_rounds(arrivals, models, out, progress.say, budget, reading)
    with options.measuring(testbed, timeout, progress, "measuring") as (card, advance):
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
    from profiler.latency import RUNS_PER_RATE
    from profiler.latency import profile_latency as measure_latency

    with options.measuring(testbed, timeout, progress, "measuring latency") as (card, advance):
        measure_latency(
            card, out, nfs=nfs or None, times=repeats or RUNS_PER_RATE, seed=seed, progress=advance, notify=progress.say
        )
    progress.say(f"latency written: {out}")


# The rounds of `placer profile --for` as a table.


ROUND_HEADINGS = (
    "round", "runs", "co-locations measured", "repeats", "NICs planned", "expected violations %", "after",
    "largest change %",
)  # fmt: skip


def as_table(rounds: Sequence[Round]) -> str:
    """A row per round; expected violations are those of the round's plan, before and after the round."""
    return text_table(
        ROUND_HEADINGS,
        [
            (
                number,
                one.runs,
                one.co_locations,
                one.repeats,
                one.nics,
                f"{one.expected_pct:.2f}",
                f"{one.expected_after_pct:.2f}",
                f"{one.change_pct:.1f}",
            )
            for number, one in enumerate(rounds, 1)
        ],
        words=0,
    )
