"""`placer chain compile`: the programs of all devices of a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from placer.commands.chain_place import AFTER_S, FORMATS, Format
from placer.commands.options import Quiet, one_of

CompiledPlan = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A plan, as `placer chain place --plan` wrote it.", show_default=False)
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="The directory to write.", show_default=False)]


def command(plan: CompiledPlan, out: Out, format: Format = "table", quiet: Quiet = False) -> None:
    """Generate what each device of a plan runs: switch, servers and SmartNICs, and the routing between them."""
    from placer.chains.files.plan_file import read_plan
    from placer.metacompiler.code_share import code_share, share_text
    from placer.metacompiler.compile import compiled_rack
    from placer.metacompiler.directory import write_rack
    from placer.progress import Progress
    from placer.report.text.compiled_rack import compiled_document, compiled_report

    one_of("--format", format, FORMATS)
    progress = Progress(quiet=quiet)
    with progress.waiting("generating programs", AFTER_S):
        rack = compiled_rack(read_plan(plan), str(plan), shares=None)
        uses = write_rack(rack, plan, out)
    if rack.nics and not uses:
        progress.say(
            "note: clang is not installed, so no program of a SmartNIC was compiled or held to its card's limits"
        )
    document = compiled_document(rack, uses)
    share = code_share(rack)
    if share is not None:
        lines = {"generated": share.generated, "steering": share.steering, "written": share.written}
        document = {**document, "lines_of_code": lines}
    report = compiled_report(document, out) + (share_text(share) if share else "")
    text = json.dumps(document) + "\n" if format == "json" else report
    typer.echo(text, nl=False)
