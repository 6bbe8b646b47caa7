"""`placer verify CERTIFICATE`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from placer.commands.options import Timeout
from profiles import InputError, TrafficProfile

if TYPE_CHECKING:
    from placer.verify import Certificate, Class, Witness

One = TypeVar("One")
File = Annotated[Path, typer.Argument(help="Written by `placer run --certificate`.", show_default=False)]
Arrivals = Annotated[
    str | None,
    typer.Option(help="The trace that the tenants are to be those of: CSV, .csv.gz or -.", show_default=False),
]
Testbeds = Annotated[
    list[str] | None,
    typer.Option(
        "--testbed", help="Whom to ask, for all NICs or repeated for each kind; by default those named in it."
    ),
]
ModelsDirs = Annotated[
    list[Path] | None,
    typer.Option("--models", help="Of a predicted optimum: its MODELS, for all NICs or repeated for each kind."),
]


def command(
    file: File,
    arrivals: Arrivals = None,
    testbed: Testbeds = None,
    models: ModelsDirs = None,
    timeout: Timeout = 60.0,
) -> None:
    """Check an optimum without its solver: the plan by asking the testbed, the bound by weak duality.

    Exit status 1 when either is wrong; what is wrong is told on stderr.
    """
    from placer.verify import faults_of, fleet_faults, read_certificate, trace_faults

    certificate = read_certificate(file)
    with ExitStack() as stack:
        witnesses = _witnesses(certificate, testbed or [], models or [], timeout, stack)
        faults = [] if arrivals is None else list(trace_faults(certificate, _trace(arrivals, witnesses[0].traffic)))
        for number, witness in enumerate(witnesses):
            faults += fleet_faults(certificate, number, witness)
        faults = faults or list(faults_of(certificate, lambda number, asked: witnesses[number].tell(asked)))
    for fault in faults:
        typer.echo(fault, err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo(_accepted(certificate, witnesses), nl=False)


def _witnesses(
    certificate: Certificate, testbeds: Sequence[str], folders: Sequence[Path], timeout: float, stack: ExitStack
) -> list[Witness]:
    """Who tells throughputs, by NIC kind."""
    from placer.inputs.models import open_models
    from placer.verify.witness import measuring, predicting
    from profiler.testbeds import open_testbed

    kinds = len(certificate.kinds)
    if certificate.predictor is not None and not testbeds:
        chosen: Sequence[Path | None] = folders or [None]
        opened = [open_models(folder, lambda told: typer.echo(told, err=True)) for folder in chosen]
        return [predicting(one, certificate.predictor, certificate.risk) for one in _each("--models", opened, kinds)]
    specs = _each("--testbed", testbeds, kinds) if testbeds else _harmless(certificate.testbeds)
    asked = {spec: measuring(stack.enter_context(open_testbed(spec, timeout=timeout))) for spec in dict.fromkeys(specs)}
    return [asked[spec] for spec in specs]


def _each(option: str, told: Sequence[One], kinds: int) -> Sequence[One]:
    """One for every NIC kind."""
    if len(told) not in (1, kinds):
        raise InputError.of(option, f"told {len(told)} times, there are {kinds} kinds of NIC", hint="tell one, or each")
    return list(told) * kinds if len(told) == 1 else told


def _harmless(specs: Sequence[str]) -> Sequence[str]:
    """The testbeds that a certificate names: a file that somebody sent does not decide which programs run."""
    for spec in specs:
        if spec.startswith("exec:"):
            hint = f"if you trust it: --testbed '{spec}'"
            raise InputError.of("--testbed", "a certificate does not start programs by itself", hint=hint)
    return specs


def _trace(path: str, traffic: TrafficProfile) -> dict[str, Class]:
    """Who is in a trace, by id; `traffic` is what a missing or empty column means."""
    from placer.inputs.arrivals import read_arrivals
    from placer.verify import Class

    arrivals = read_arrivals(path, traffic, lambda workload: ())
    if leaving := [arrival.id for arrival in arrivals if arrival.departure is not None]:
        raise InputError.of(
            path, f"{leaving[0]} leaves, and a certificate is of tenants who all stay", column="departure"
        )
    return {one.id: Class(one.workload, one.sla.max_drop, one.sla.min_kpps) for one in arrivals}


def _accepted(certificate: Certificate, witnesses: Sequence[Witness]) -> str:
    placed = len(certificate.tenants) - len(certificate.left_out)
    cost, bound = float(certificate.cost), float(certificate.lower_bound)
    proven = "so it is optimal" if cost == bound else f"a gap of {cost - bound:g}"
    asked = ", ".join(dict.fromkeys(witness.name for witness in witnesses))
    over = f"what {asked} tells" if certificate.over == "companies" else "their cores alone"
    lines = [
        *(f"fleet: {_kind(certificate, number)}" for number in range(len(certificate.kinds))),
        f"plan: {placed:,} tenants on {len(certificate.nics):,} NICs at a cost of {cost:g}; by what {asked} tells, "
        "every SLA is kept",
        f"bound: no plan that places as many costs less than {bound:g}, by {over}; {proven}",
    ]
    if certificate.left_out:
        lines.append(f"left out: {len(certificate.left_out):,} tenants; that more cannot be placed is not certified")
    return "\n".join(lines) + "\n"


def _kind(certificate: Certificate, number: int) -> str:
    kind = certificate.kinds[number]
    number_of = "any number of" if kind.limit is None else f"{kind.limit:,}"
    return f"{number_of} {kind.model} with {kind.cores} cores, at a cost of {float(kind.cost):g} each"
