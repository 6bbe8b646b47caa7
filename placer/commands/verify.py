"""`placer verify CERTIFICATE`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from placer.commands.options import Timeout

File = Annotated[Path, typer.Argument(help="Written by `placer run --certificate`.", show_default=False)]
Spec = Annotated[
    str | None,
    typer.Option("--testbed", help="Whom to ask: a testbed's SPEC; by default those named in it.", show_default=False),
]


def command(file: File, testbed: Spec = None, timeout: Timeout = 60.0) -> None:
    """Check an optimum without its solver: the plan by asking the testbed, the bound by weak duality.

    Exit status 1 when either is wrong; what is wrong is told on stderr.
    """
    from placer.verify import Company, faults_of, fleet_faults, read_certificate
    from profiler.testbeds import open_testbed

    certificate = read_certificate(file)
    specs = [testbed or spec for spec in certificate.testbeds]
    with ExitStack() as stack:
        opened = {spec: stack.enter_context(open_testbed(spec, timeout=timeout)) for spec in dict.fromkeys(specs)}

        def ask(number: int, companies: Sequence[Company]) -> list[list[float]]:
            runs = opened[specs[number]].run_many(companies, noise=False)
            return [[measured.throughput_kpps for measured in run.measurements] for run in runs]

        faults = [
            fault
            for number, spec in enumerate(specs)
            for fault in fleet_faults(certificate, number, opened[spec].describe())
        ]
        faults = faults or list(faults_of(certificate, ask))
    for fault in faults:
        typer.echo(fault, err=True)
    if faults:
        raise typer.Exit(1)
    placed = len(certificate.tenants) - len(certificate.left_out)
    cost, bound = float(certificate.cost), float(certificate.lower_bound)
    proven = "so it is optimal" if cost == bound else f"a gap of {cost - bound:g}"
    over = "what the testbed tells" if certificate.over == "companies" else "their cores alone"
    typer.echo(f"plan: {placed:,} tenants on {len(certificate.nics):,} NICs at a cost of {cost:g}; every SLA is kept")
    typer.echo(f"bound: no plan that places as many costs less than {bound:g}, by {over}; {proven}")
    if certificate.left_out:
        typer.echo(f"left out: {len(certificate.left_out):,} tenants; that more cannot be placed is not certified")
