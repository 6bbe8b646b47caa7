"""`placer chain compile`, `exec` and `update`: programs of all devices of a plan, packets and new tables for them."""

import json
from pathlib import Path
from typing import Annotated

import typer

from placer.commands.chain_place import AFTER_S, PLAN_FORMATS, Format
from placer.commands.options import Quiet, end_by_signals, one_of, refuse_same_files, refuse_unwritable

CompiledPlan = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A plan, written by `placer chain place --plan`.", show_default=False)
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="The directory to write.", show_default=False)]


def compile_plan(plan: CompiledPlan, out: Out, format: Format = "table", quiet: Quiet = False) -> None:
    """Generate a program for each device of a plan (switch, servers, SmartNICs), and the routing between them."""
    from placer.progress import Progress
    from placer.rack.compiler.compile import compile_rack, own_warnings
    from placer.rack.compiler.directory import write_rack
    from placer.rack.files.plan_file import read_plan
    from placer.report.rack.compiled_rack import code_share, format_compiled, rack_document, share_text

    one_of("--format", format, PLAN_FORMATS)
    progress = Progress(quiet=quiet)
    with progress.waiting("generating programs", AFTER_S):
        rack = compile_rack(read_plan(plan), str(plan), shares=None)
        uses = write_rack(rack, plan, out)
    for warning in own_warnings(rack):
        progress.say(f"note: {warning}")
    if rack.nics and not uses:
        progress.say(
            "note: clang is not installed, so SmartNIC programs were neither compiled nor checked against the limits "
            "of the card"
        )
    document = rack_document(rack, uses)
    share = code_share(rack)
    if share is not None:
        lines = {"generated": share.generated, "steering": share.steering, "written": share.written}
        document = {**document, "lines_of_code": lines}
    report = format_compiled(document, out) + (share_text(share) if share else "")
    text = json.dumps(document) + "\n" if format == "json" else report
    typer.echo(text, nl=False)


# `placer chain exec`: packets of a capture through the programs of a compiled rack.


Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder written by `placer chain compile`.", show_default=False)
]
Source = Annotated[
    Path, typer.Option("--in", metavar="X.pcap", help="Packets from the outside world.", show_default=False)
]
Target = Annotated[
    Path, typer.Option("--out", metavar="Y.pcap", help="Packets to the outside world.", show_default=False)
]
OpenFlow = Annotated[
    str,
    typer.Option(
        metavar="SWITCH",
        help="What runs the rules of an OpenFlow switch: emulated, or ovs: Open vSwitch, which needs root.",
    ),
]


Attach = Annotated[
    bool,
    typer.Option(
        "--attach",
        help="Attach the programs of SmartNICs to network interfaces of their own, in a namespace; needs root.",
    ),
]


def execute(
    directory: Directory,
    source: Source,
    target: Target,
    openflow: OpenFlow = "emulated",
    attach: Attach = False,
    format: Format = "table",
    quiet: Quiet = False,
) -> None:
    """Run a compiled rack in emulation: one process per switch, server and SmartNIC, connected by links."""
    from placer.progress import Progress
    from placer.rack.compiler.execute import execute_rack
    from placer.rack.compiler.openflow.open_vswitch import OPENFLOW_SWITCHES
    from placer.report.rack.compiled_rack import build_execution, format_execution

    one_of("--format", format, PLAN_FORMATS)
    one_of("--openflow", openflow, OPENFLOW_SWITCHES)
    refuse_unwritable("--out", target)
    refuse_same_files({"--out": target}, {"--in": source})
    progress = Progress(quiet=quiet)
    with end_by_signals(), progress.waiting("packets pass the rack", AFTER_S):
        result = execute_rack(directory, source, target, openflow=openflow, attach=attach)
    document = build_execution(result)
    typer.echo(json.dumps(document) + "\n" if format == "json" else format_execution(document), nl=False)


# `placer chain update`: the tables of a compiled rack from sources that have changed.


DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the sources, and say what would change.")]


def update(directory: Directory, dry_run: DryRun = False, format: Format = "table", quiet: Quiet = False) -> None:
    """Read the files that chains name again, and replace the tables of a compiled rack in one step, also while it
    runs."""
    from placer.progress import Progress
    from placer.rack.compiler.execute import read_rack_file
    from placer.rack.compiler.update import read_update
    from placer.report.rack.compiled_rack import format_update, update_document

    one_of("--format", format, PLAN_FORMATS)
    progress = Progress(quiet=quiet)
    read_rack_file(directory)
    took = None
    with progress.waiting("generating tables", AFTER_S):
        found = read_update(directory)
        if not dry_run:
            took = found.write()
    document = update_document(found, is_dry=dry_run, took=took)
    typer.echo(json.dumps(document) + "\n" if format == "json" else format_update(document, directory), nl=False)
