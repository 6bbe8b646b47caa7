"""`placer chain exec`: packets of a capture through the programs of a compiled rack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from placer.commands.chain_place import AFTER_S, FORMATS, Format
from placer.commands.options import Quiet, one_of, refuse_same_files, refuse_unwritable
from placer.commands.signals import ended_by_signals

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="What `placer chain compile` wrote.", show_default=False)
]
Source = Annotated[Path, typer.Option("--in", metavar="X.pcap", help="Packets from the world.", show_default=False)]
Target = Annotated[Path, typer.Option("--out", metavar="Y.pcap", help="Packets to the world.", show_default=False)]


def command(
    directory: Directory, source: Source, target: Target, format: Format = "table", quiet: Quiet = False
) -> None:
    """Run a compiled rack, emulated: one process for each switch, server and SmartNIC, joined by links."""
    from placer.metacompiler.execute import executed
    from placer.progress import Progress
    from placer.report.text.executed_rack import executed_document, executed_report

    one_of("--format", format, FORMATS)
    refuse_unwritable("--out", target)
    refuse_same_files({"--out": target}, {"--in": source})
    progress = Progress(quiet=quiet)
    with ended_by_signals(), progress.waiting("packets pass the rack", AFTER_S):
        result = executed(directory, source, target)
    document = executed_document(result)
    typer.echo(json.dumps(document) + "\n" if format == "json" else executed_report(document), nl=False)
