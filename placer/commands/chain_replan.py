"""`placer chain replan`: chains that changed, on the rack of a plan, with few NFs moved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands.chain_place import (
    AFTER_S,
    FORMATS,
    Format,
    PlanFile,
    TimeLimit,
    late_messages,
    note_cycles_alone,
    note_parameters,
)
from placer.commands.options import Quiet, one_of, refuse_same_files, refuse_unwritable
from profiles import Fault, InputError
from profiles.aside import file_aside

if TYPE_CHECKING:
    from placer.chains.files.chains_file import ChainsText
    from placer.chains.files.plan_file import PlanFile as OldPlan
    from placer.chains.rack import Rack

OldPlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="The plan in use, as `placer chain place --plan` wrote it.")
]
ChangedChains = Annotated[
    Path, typer.Argument(metavar="CHAINS", help="All chains as they shall be: a .chains file, or its JSON twin.")
]
RackFile = Annotated[
    Path | None,
    typer.Option("--rack", help="A rack: TOML, or its JSON twin. By default the plan's.", show_default=False),
]
Moves = Annotated[
    int | None,
    typer.Option(
        "--moves",
        min=0,
        help="How many NFs may move: an NF moves if its chain was there before and its device is another one. NFs of "
        "new chains do not count, nor do changed numbers of cores. By default any number.",
        show_default=False,
    ),
]


def command(
    old: OldPlanFile,
    chains: ChangedChains,
    rack: RackFile = None,
    moves: Moves = None,
    time_limit: TimeLimit = 60.0,
    plan: PlanFile = None,
    format: Format = "table",
    quiet: Quiet = False,
) -> None:
    """Change a plan: keep the SLOs of all chains, then move as few NFs as possible, then raise the rates."""
    from dataclasses import replace

    from placer.chains.files.written_twins import plan_document
    from placer.chains.reasons.infeasible import explained
    from placer.chains.replanning.replan import replan
    from placer.progress import Progress
    from placer.report.text.replan import replan_report

    one_of("--format", format, FORMATS)
    refuse_unwritable("--plan", plan)
    given = {"PLAN": old, "CHAINS": chains} | ({"--rack": rack} if rack else {})
    refuse_same_files({"--plan": plan}, {name: path for name, path in given.items() if name != "PLAN"})
    before, read, on = _read(old, chains, rack)
    progress = Progress(quiet=quiet)
    note_parameters(read.chains, progress)
    note_cycles_alone(on, progress)
    with progress.waiting(f"replanning {len(read.chains)} chains, at most {time_limit:g} s", AFTER_S):
        found = replan(
            read.chains,
            on,
            before.places,
            most_moves=moves,
            time_limit=time_limit,
            notify=late_messages(progress),
        )
    if found.enough_moves is None:
        with progress.waiting(f"looking for what would be enough, at most {time_limit:g} s", AFTER_S):
            found = replace(found, plan=explained(found.plan, read.chains, seconds=time_limit))
    if plan is not None:
        with file_aside(plan) as aside:
            aside.write_text(json.dumps(plan_document(found.plan, read.chains)) + "\n", encoding="utf-8")
    typer.echo(replan_report(found, before.chains, read.chains, format), nl=False)


def _read(old: Path, chains: Path, rack: Path | None) -> tuple[OldPlan, ChainsText, Rack]:
    """All files; the faults of all at once."""
    from placer.chains.files.chains_file import read_chains_file
    from placer.chains.files.plan_file import read_plan
    from placer.chains.files.rack_file import read_rack_file

    faults: list[Fault] = []
    before: OldPlan | None = None
    read: ChainsText | None = None
    on: Rack | None = None
    try:
        before = read_plan(old)
    except InputError as error:
        faults += error.faults
    try:
        read = read_chains_file(chains)
    except InputError as error:
        faults += error.faults
    try:
        on = read_rack_file(rack) if rack else before.rack if before else None
    except InputError as error:
        faults += error.faults
    if faults or before is None or read is None or on is None:
        raise InputError(faults)
    read.check_nfs(on)
    return before, read, on
