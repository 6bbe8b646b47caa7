"""`placer chain explain`: why chains have their layouts, and what others would cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import ne
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import chain_place
from placer.commands.options import Quiet, one_of, refuse_same_files, refuse_unwritable, take_option
from profiles import Fault, InputError
from profiles.aside import file_aside
from profiles.faults import collect_faults, suggestion

if TYPE_CHECKING:
    from placer.progress import Progress
    from placer.rack.chain import Chain
    from placer.rack.contention.modelled_growth import ModelledGrowth
    from placer.rack.files.chains_file import ChainsText
    from placer.rack.files.plan_file import PlanFile as OldPlan
    from placer.rack.plan import RackPlan
    from placer.rack.rack import Rack
    from placer.rack.reasons.explain import ChainExplanation, LayoutQuestions


ChainName = Annotated[str | None, take_option("Explain only this chain.", "--chain")]
Placement = Annotated[
    str | None,
    take_option(
        "Find the best plan with NFs of the chain on these devices: 'ACL=switch LB=s0'. Other NFs may be on any "
        "device.",
        metavar="NF=DEVICE ...",
    ),
]
Layouts = Annotated[
    int, typer.Option(min=1, help="Alternative layouts per chain, those that move the fewest NFs first.")
]
RECORDED_MODELS = Path("recorded")
GivenModels = Annotated[
    Path | None,
    take_option(
        "A folder written by `placer train`, or `recorded` for those of the rack's testbed, to predict contention"
        " as `placer chain place` does. By default contention is ignored.",
        "--models",
        metavar="DIR",
    ),
]


def explain(
    chains: chain_place.ChainsFile,
    rack: chain_place.RackFile,
    chain: ChainName = None,
    placement: Placement = None,
    layouts: Layouts = 10,
    models: GivenModels = None,
    risk: chain_place.ModelRisk = 0.05,
    time_limit: chain_place.TimeLimit = 60.0,
    stages: chain_place.Stages = "blocks",
    format: chain_place.Format = "table",
    quiet: Quiet = False,
) -> None:
    """Explain the best plan: for alternative layouts of each chain, why they are infeasible or what they cost."""
    from placer.progress import Progress
    from placer.rack.compiler.own_data import is_to_compile
    from placer.rack.compiler.within_limits import cap_cores
    from placer.rack.plan import Status
    from placer.rack.reasons.explain import LayoutQuestions
    from placer.rack.reasons.infeasible import explain_infeasible
    from placer.rack.stages.stage_oracles import check_stages
    from placer.report.rack.layouts import explanation_report
    from placer.report.rack.plan import rack_report

    one_of("--format", format, chain_place.PLAN_FORMATS)
    read, on = chain_place.read_chains_and_rack(chains, rack)
    on = check_stages(on, read.chains, stages)
    numbers = _numbers(read.chains, chain)
    places = None if placement is None else _places(placement, read.chains, numbers, on)
    progress = Progress(quiet=quiet)
    chain_place.note_parameters(read.chains, on, progress)
    on = cap_cores(on) if is_to_compile(read.chains) else on
    growth = _growth(models, read, on, rack, risk, progress)
    with progress.waiting(f"placing {len(read.chains)} chains, at most {time_limit:g} s", chain_place.AFTER_S):
        limited, contended = chain_place.place_chains("optimal", read, on, growth, time_limit, progress)
    # beside the neighbours of this plan, cycles are those that the models predict; so they stay for other layouts
    plan = limited.plan if contended is None else contended.predicted
    if not plan.chains:
        if plan.status is Status.INFEASIBLE or growth is None:
            with progress.waiting(f"searching for sufficient changes, at most {time_limit:g} s", chain_place.AFTER_S):
                plan = explain_infeasible(plan, limited.chains, seconds=time_limit)
        typer.echo(rack_report(plan, "optimal", format), nl=False)
        return
    if contended is not None:
        progress.say("note: other layouts are judged by the cycles that NFs have beside their neighbours in this plan")
    questions = LayoutQuestions(plan, time_limit)
    with progress.waiting(f"looking at other layouts, at most {time_limit:g} s", chain_place.AFTER_S):
        if places is not None:
            found = [_what_if(questions, plan, numbers[0], places)]
        else:
            found = [questions.explanation(number, layouts) for number in numbers]
    typer.echo(explanation_report(plan, found, format), nl=False)


def _growth(
    models: Path | None, read: ChainsText, rack: Rack, file: Path, risk: float, progress: Progress
) -> ModelledGrowth | None:
    """What predicts contention; None without models."""
    if models is None:
        chain_place.note_cycles_alone(rack, progress)
        return None
    return chain_place.open_growth(None if models == RECORDED_MODELS else models, read, rack, file, risk, progress)


def _numbers(chains: Sequence[Chain], name: str | None) -> list[int]:
    names = [chain.name for chain in chains]
    if name is None:
        return list(range(len(names)))
    if name not in names:
        raise InputError.of("--chain", f"there is no chain {name!r}", hint=suggestion(name, names))
    return [names.index(name)]


def _places(text: str, chains: Sequence[Chain], numbers: Sequence[int], rack: Rack) -> dict[str, list[int]]:
    """Sites by NF: of a server with several sockets or NICs all."""
    from placer.rack.layout_arrays import possible_sites
    from placer.rack.plan import SWITCH_SITE

    if len(numbers) > 1:
        raise InputError.of("--placement", "needs a chain", hint=f"--chain {chains[0].name}")
    chain = chains[numbers[0]]
    ids = [nf.id for nf in chain.nfs]
    devices = {"switch": [SWITCH_SITE]}
    for number, device in enumerate(rack.devices):
        devices.setdefault(device.name, []).append(number)
    possible = possible_sites(chain, rack)
    places: dict[str, list[int]] = {}
    for part in text.replace(",", " ").split():
        nf, equals, on = part.partition("=")
        if not (nf and equals and on):
            raise InputError.of("--placement", f"{part!r} is not of the form NF=DEVICE", hint="as in ACL=switch")
        if nf not in ids:
            raise InputError.of("--placement", f"{chain.name} has no NF {nf!r}", hint=suggestion(nf, ids))
        if on not in devices:
            raise InputError.of("--placement", f"there is no device {on!r}", hint=suggestion(on, list(devices)))
        if nf in places:
            raise InputError.of("--placement", f"{nf!r} is given twice")
        places[nf] = [site for site in devices[on] if site in possible[ids.index(nf)]]
        if not places[nf]:
            raise InputError.of("--placement", f"{chain.nfs[ids.index(nf)].nf} does not run on {on}")
    if not places:
        raise InputError.of("--placement", "names no NF", hint="as in ACL=switch")
    return places


def _what_if(questions: LayoutQuestions, plan: RackPlan, number: int, places: dict[str, list[int]]) -> ChainExplanation:
    """The best layout with some NFs on given devices, or what forbids the one nearest to the plan's."""
    from placer.rack.plan import Layout
    from placer.rack.reasons.explain import ChainExplanation, with_places

    placed = plan.chains[number]
    pairs = zip(placed.chain.nfs, placed.layout.sites, strict=True)
    sites = tuple(site if site in places.get(nf.id, [site]) else places[nf.id][0] for nf, site in pairs)
    layouts = with_places(placed.chain, plan.rack, places)
    if layouts and not plan.rack.is_simple:  # NFs that are connected are at one socket and one NIC
        sites = min((layout.sites for layout in layouts), key=lambda own: sum(map(ne, own, placed.layout.sites)))
    nearest = questions.verdict(number, Layout(placed.chain, plan.rack, sites))
    if layouts and (len(places) < len(sites) or not plan.rack.is_simple):
        best = questions.best_of(number, layouts)
        nearest = best if best.marginal_mbps is not None else nearest
    return ChainExplanation(placed, (nearest,), {})


# `placer chain replan`: chains that changed, on the rack of a plan, with few NFs moved.


OldPlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="The current plan, written by `placer chain place --plan`.")
]
ChangedChains = Annotated[
    Path, typer.Argument(metavar="CHAINS", help="The new set of all chains: a .chains file, or its JSON twin.")
]
OtherRackFile = Annotated[Path | None, take_option("A rack: TOML, or its JSON twin. By default the plan's.", "--rack")]
Moves = Annotated[
    int | None,
    take_option(
        "The largest number of NFs that may change their device; by default unlimited. NFs of new chains and "
        "changed numbers of cores do not count.",
        "--moves",
        min=0,
    ),
]


def replan(
    old: OldPlanFile,
    chains: ChangedChains,
    rack: OtherRackFile = None,
    moves: Moves = None,
    models: GivenModels = None,
    risk: chain_place.ModelRisk = 0.05,
    time_limit: chain_place.TimeLimit = 60.0,
    stages: chain_place.Stages = "blocks",
    plan: chain_place.PlanFile = None,
    format: chain_place.Format = "table",
    quiet: Quiet = False,
) -> None:
    """Change a plan for new chains or SLOs: keep all SLOs, move as few NFs as possible, then maximize the rates."""
    from dataclasses import replace

    from placer.progress import Progress
    from placer.rack.compiler.own_data import is_to_compile
    from placer.rack.compiler.within_limits import cap_cores, cut_copies, keep_from_devices, refusal_of, refuse_copies
    from placer.rack.contention.contended_replan import replan_under_contention
    from placer.rack.files.sources import permissions, write_sources
    from placer.rack.files.written_twins import plan_document
    from placer.rack.reasons.infeasible import explain_infeasible
    from placer.rack.replanning.replan import replan
    from placer.rack.stages.stage_oracles import check_stages
    from placer.report.rack.plan import build_contended, replan_report

    one_of("--format", format, chain_place.PLAN_FORMATS)
    refuse_unwritable("--plan", plan)
    given = {"PLAN": old, "CHAINS": chains} | ({"--rack": rack} if rack else {})
    refuse_same_files({"--plan": plan}, {name: path for name, path in given.items() if name != "PLAN"})
    before, read, on = _read(old, chains, rack)
    on = check_stages(on, read.chains, stages)
    progress = Progress(quiet=quiet)
    chain_place.note_parameters(read.chains, on, progress)
    to_compile, asked = is_to_compile(read.chains), read.chains
    if to_compile:
        on, asked = cap_cores(on), keep_from_devices(read.chains, on, read.recorded)
    growth, contended = _growth(models, read, on, rack or old, risk, progress), None
    with progress.waiting(f"replanning {len(read.chains)} chains, at most {time_limit:g} s", chain_place.AFTER_S):
        notify = chain_place.late_messages(progress)
        if growth is None:
            found = replan(asked, on, before.places, most_moves=moves, time_limit=time_limit, notify=notify)
        else:
            found, contended = replan_under_contention(
                asked, on, before.places, growth, most_moves=moves, time_limit=time_limit, notify=notify
            )
    if growth is None:
        found = replace(found, plan=cut_copies(found.plan))
    refused = refusal_of(found.plan, asked, read.recorded) if to_compile and found.plan.chains else None
    if reason := refused[1] if refused else plan is not None and refuse_copies(found.plan):
        progress.say(f"note: `placer chain compile` refuses this plan: {reason}")
    if found.enough_moves is None and (contended is None or not contended.by_cycles.chains):
        with progress.waiting(f"searching for sufficient changes, at most {time_limit:g} s", chain_place.AFTER_S):
            found = replace(found, plan=explain_infeasible(found.plan, asked, seconds=time_limit))
    if plan is not None:
        with file_aside(plan, permissions(read.chains)) as aside:
            predicted = {"answer": build_contended(contended)} if contended else {}
            document = {**plan_document(found.plan, read.chains, write_sources(read.sources, plan)), **predicted}
            aside.write_text(json.dumps(document) + "\n", encoding="utf-8")
    typer.echo(replan_report(found, before.chains, read.chains, format, contended), nl=False)


def _read(old: Path, chains: Path, rack: Path | None) -> tuple[OldPlan, ChainsText, Rack]:
    """All files; the faults of all at once."""
    from placer.rack.files.chains_file import read_chains_file
    from placer.rack.files.plan_file import read_plan
    from placer.rack.files.rack_file import read_rack_file

    faults: list[Fault] = []
    before: OldPlan | None = None
    read: ChainsText | None = None
    on: Rack | None = None
    with collect_faults(faults):
        before = read_plan(old)
    with collect_faults(faults):
        read = read_chains_file(chains)
    with collect_faults(faults):
        on = read_rack_file(rack) if rack else before.rack if before else None
    if faults or before is None or read is None or on is None:
        raise InputError(faults)
    return before, chain_place.check_nfs(read, on), on
