"""`placer chain place`: chains of NFs on a rack of a switch, servers and SmartNICs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import options
from placer.rack.strategies import CHAIN_STRATEGIES
from profiles import Fault, InputError
from profiles.aside import file_aside
from profiles.faults import collect_faults, suggestion

if TYPE_CHECKING:
    from placer.progress import Progress
    from placer.rack.chain import Chain
    from placer.rack.compiler.within_limits import LimitedPlan
    from placer.rack.contention.loop import ContendedPlan
    from placer.rack.contention.modelled_growth import ModelledGrowth
    from placer.rack.files.chains_file import ChainsText
    from placer.rack.plan import RackPlan
    from placer.rack.rack import Rack

PLAN_FORMATS = ("table", "json")
AFTER_S = 1.0  # seconds after which a message says what takes so long

ChainsFile = Annotated[Path, typer.Argument(metavar="CHAINS", help="A .chains file, or its JSON twin.")]
RackFile = Annotated[Path, options.take_option("A rack: TOML, or its JSON twin.", "--rack")]
StrategyName = Annotated[
    str, typer.Option("--strategy", help=f"The strategy: {', '.join(CHAIN_STRATEGIES.file_names())}.")
]
TimeLimit = Annotated[
    float,
    typer.Option(
        min=0.1, help="Time limit in seconds. If it is reached, the best plan so far and its gap are printed."
    ),
]
PlanFile = Annotated[
    Path | None, options.take_option("Write the plan, with chains and rack, as JSON.", "--plan", "--out")
]
ModelsFolder = Annotated[
    Path | None,
    options.take_option(
        "A folder written by `placer train`, to predict contention between subgroups on a server or a SmartNIC. "
        "By default the recorded models of the rack's testbed; without a testbed, or with `none`, contention is "
        "ignored.",
        "--models",
        metavar="DIR",
    ),
]
ModelRisk = Annotated[
    float,
    typer.Option(
        min=0.001,
        max=0.5,
        help="With models: the chance that an NF is slower than placement assumes; 0.5 uses the median prediction.",
    ),
]
CertificateFile = Annotated[
    Path | None, options.take_option("Write the plan with a proof, for `placer verify`, as JSON.", "--certificate")
]
Stages = Annotated[
    str,
    typer.Option(
        "--stages",
        help="How to check that NFs fit the stages of the switch: blocks (of the rack file), tables (with "
        "dependencies, keys and entries), or exec:PROGRAM (a compiler).",
    ),
]
Format = Annotated[str, typer.Option(help="table or json.")]


def command(
    chains: ChainsFile,
    rack: RackFile,
    strategy: StrategyName = "optimal",
    models: ModelsFolder = None,
    risk: ModelRisk = 0.05,
    time_limit: TimeLimit = 60.0,
    stages: Stages = "blocks",
    plan: PlanFile = None,
    certificate: CertificateFile = None,
    report: options.Report = None,
    format: Format = "table",
    quiet: options.Quiet = False,
    *,
    context: typer.Context,
) -> None:
    """Place chains such that each keeps its SLO, with the largest marginal throughput (rates above t_min)."""
    from placer.progress import Progress
    from placer.rack.compiler.own_data import is_to_compile
    from placer.rack.compiler.within_limits import cap_cores, refuse_copies
    from placer.rack.files.sources import permissions, write_sources
    from placer.rack.files.written_twins import plan_document
    from placer.rack.plan import Status
    from placer.rack.reasons.infeasible import explain_infeasible
    from placer.rack.stages.stage_oracles import check_stages
    from placer.report.rack.plan import build_contended, format_contended, rack_report

    options.one_of("--format", format, PLAN_FORMATS)
    CHAIN_STRATEGIES.find(strategy)
    outputs = {"--plan": plan, "--certificate": certificate, "--report": report}
    for option, path in outputs.items():
        options.refuse_unwritable(option, path)
    options.refuse_same_files(outputs, {"CHAINS": chains, "--rack": rack})
    if certificate is not None and stages.startswith("exec:"):
        raise InputError.of(
            "--certificate", f"holds no proof of --stages {stages}", hint="--stages blocks or --stages tables"
        )
    read, on = read_chains_and_rack(chains, rack)
    on = check_stages(on, read.chains, stages)
    progress = Progress(quiet=quiet)
    note_parameters(read.chains, on, progress)
    on = cap_cores(on) if is_to_compile(read.chains) else on
    growth = open_growth(models, read, on, rack, risk, progress)
    with progress.waiting(f"placing {len(read.chains)} chains, at most {time_limit:g} s", AFTER_S):
        limited, contended = place_chains(strategy, read, on, growth, time_limit, progress)
    found = limited.plan
    if reason := limited.refusal or (plan is not None and refuse_copies(found)):
        progress.say(f"note: `placer chain compile` refuses this plan: {reason}")
    if found.status is Status.INFEASIBLE:
        with progress.waiting(f"searching for sufficient changes, at most {time_limit:g} s", AFTER_S):
            found = explain_infeasible(found, limited.chains, seconds=time_limit)
    if contended is not None:
        contended = replace(contended, plan=found, predicted=contended.predicted if found.chains else found)
    if plan is not None:
        with file_aside(plan, permissions(read.chains)) as aside:
            predicted = {"answer": build_contended(contended)} if contended else {}
            document = {**plan_document(found, read.chains, write_sources(read.sources, plan)), **predicted}
            aside.write_text(json.dumps(document) + "\n", encoding="utf-8")
    if certificate is not None:
        _certify(found, read.chains, certificate, time_limit, progress)
        if contended is not None:
            progress.say("note: the certificate is about cycles alone; predictions of contention are not in it")
    if report is not None:
        from placer.report.html.files import write_page
        from placer.report.rack.page import page_of_rack_plan

        page = page_of_rack_plan(found, strategy, chains.name, predicted=contended is not None)
        write_page(replace(page, made_by=options.command_line(context)), report)
    text = format_contended(contended, strategy, format) if contended else rack_report(found, strategy, format)
    typer.echo(text, nl=False)


def place_chains(
    strategy: str,
    read: ChainsText,
    rack: Rack,
    growth: ModelledGrowth | None,
    time_limit: float,
    progress: Progress,
) -> tuple[LimitedPlan, ContendedPlan | None]:
    """The plan, and what is predicted of it; one that compiles, where chains are to be compiled."""
    from placer.rack.compiler.within_limits import is_unchecked, plan_within_limits
    from placer.rack.contention.loop import run_contended
    from placer.rack.strategies import run_strategy

    notify, until = late_messages(progress), time.monotonic() + time_limit
    by_plan: dict[int, ContendedPlan] = {}

    def solve(given: Sequence[Chain]) -> RackPlan:
        left = max(until - time.monotonic(), 0.1)
        if growth is None:
            return run_strategy(strategy, given, rack, time_limit=left, notify=notify)
        contended = run_contended(strategy, given, rack, growth, time_limit=left, notify=notify)
        by_plan[id(contended.plan)] = contended
        return contended.plan

    limited = plan_within_limits(
        solve, read.chains, rack, sources=read.recorded, time_limit=time_limit, cuts_copies=growth is None
    )
    if is_unchecked(limited):
        progress.say("note: clang is not installed, so programs of SmartNICs were not checked against their limits")
    return limited, by_plan.get(id(limited.solved))


def _certify(plan: RackPlan, chains: Sequence[Chain], file: Path, seconds: float, progress: Progress) -> None:
    """Write the certificate; say where it proves less than the plan claims."""
    from placer.rack.files.sources import permissions
    from placer.rack.proofs.certificate import certificate_of, weaker_claim

    with progress.waiting(f"proving the bound once more, at most {seconds:g} s", AFTER_S):
        written = certificate_of(plan, chains, seconds=seconds)
    with file_aside(file, permissions(chains)) as aside:
        aside.write_text(json.dumps(written) + "\n", encoding="utf-8")
    if note := weaker_claim(plan, written):
        progress.say(note)


def late_messages(progress: Progress) -> Callable[[str], None]:
    """Prints messages of a search that takes longer than `AFTER_S`."""
    begin = time.monotonic()

    def notify(message: str) -> None:
        if time.monotonic() - begin > AFTER_S:
            progress.say(message)

    return notify


def read_chains_and_rack(chains: Path, rack: Path) -> tuple[ChainsText, Rack]:
    """Both files; the faults of both at once."""
    from placer.rack.files.chains_file import read_chains_file
    from placer.rack.files.rack_file import read_rack_file

    faults: list[Fault] = []
    with collect_faults(faults):
        read = read_chains_file(chains)
    with collect_faults(faults):
        on = read_rack_file(rack)
    if faults:
        raise InputError(faults)
    return check_nfs(read, on), on


def check_nfs(read: ChainsText, rack: Rack) -> ChainsText:
    """The chains with the sizes of their own data.

    Raises `InputError` with every NF that the rack does not name, and every fault of own data."""
    from placer.rack.compiler.own_data import load_own_data

    faults: list[Fault] = []
    with collect_faults(faults):
        read = load_own_data(read)
    for chain in read.chains:
        for nf in chain.nfs:
            if nf.nf not in rack.costs:
                hint = suggestion(nf.nf, rack.costs) if rack.costs else "the rack names no NF"
                faults.append(read.fault(chain.name, nf.id, f"NF {nf.nf} is not in the rack", hint))
    if faults:
        raise InputError(faults)
    return read


def open_growth(
    models: Path | None, read: ChainsText, rack: Rack, file: Path, risk: float, progress: Progress
) -> ModelledGrowth | None:
    """What predicts contention; None where cycles alone count."""
    spec = rack.testbed.spec
    if models == Path("none") or (models is None and spec is None):
        return None
    from placer.inputs.models import RECORDED_OF, RECORDED_PROFILE, open_models
    from placer.rack.contention.modelled_growth import ModelledGrowth, refuse_unknown

    if models is None and spec not in RECORDED_OF:
        hint = f"name a folder with --models; recorded are those of {', '.join(RECORDED_OF)}"
        raise InputError.of(str(file), f"there are no recorded models of '{spec}'", column="testbed.spec", hint=hint)
    growth = ModelledGrowth(
        rack, open_models(models, progress.say, RECORDED_OF.get(spec or "", RECORDED_PROFILE)), risk=risk
    )
    refuse_unknown(growth, read)
    for note in growth.notes():
        progress.say(f"note: {note}")
    return growth


def note_cycles_alone(rack: Rack, progress: Progress) -> None:
    """Say that contention is not looked at, where `place` would."""
    if rack.testbed.spec is not None:
        progress.say("note: contention between subgroups on a device is ignored here; --models predicts it")


def note_parameters(chains: Sequence[Chain], rack: Rack, progress: Progress) -> None:
    """Say which parameters change no cost: who counts on it would get a plan for other NFs."""
    followed = {
        nf: {name for cost in (costs.server, costs.smartnic) if cost for name in cost.by}
        for nf, costs in rack.costs.items()
    }
    kinds = sorted({nf.nf for chain in chains for nf in chain.nfs if nf.parameters and not followed[nf.nf]})
    if kinds:
        progress.say(
            f"note: parameters of {', '.join(kinds)} do not change what an NF costs; "
            "for other cycles, write cycles_per_rule or the like in the rack"
        )
