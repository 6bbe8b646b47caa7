"""`placer verify CERTIFICATE`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from placer.commands.options import Timeout
from profiles import Fault, InputError, TrafficProfile

if TYPE_CHECKING:
    from placer.verify import Certificate, Completeness, Query, TenantClass, ThroughputSource

One = TypeVar("One")
File = Annotated[
    Path,
    typer.Argument(
        help="Written by `placer run --certificate`, `placer chain place --certificate` or `placer admit "
        "--certificate`; or an answer of `placer admit --format json`, with --slos and --device.",
        show_default=False,
    ),
]
Arrivals = Annotated[
    str | None,
    typer.Option(help="The trace that the tenants must match: CSV, .csv.gz or -.", show_default=False),
]
Testbeds = Annotated[
    list[str] | None,
    typer.Option(
        "--testbed",
        help="Testbed to query; once for all NICs, or once per kind of NIC. By default, those in the file. For an "
        "optimum from predictions without --models: the simulated card whose recorded models are used.",
    ),
]
ModelsDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--models", help="For an optimum from predictions: its MODELS; once for all NICs, or once per kind of NIC."
    ),
]


ChainsFile = Annotated[
    Path | None,
    typer.Option("--chains", help="Chains that a plan of chains must be about: .chains or JSON.", show_default=False),
]
RackFile = Annotated[
    Path | None,
    typer.Option("--rack", help="The rack that a plan of chains must be about: TOML or JSON.", show_default=False),
]
SlosFile = Annotated[
    Path | None,
    typer.Option("--slos", help="SLOs that an admission must be about: JSON Lines.", show_default=False),
]
DeviceFile = Annotated[
    Path | None,
    typer.Option("--device", help="The GPU that an admission must be about: JSON.", show_default=False),
]


def command(
    file: File,
    arrivals: Arrivals = None,
    testbed: Testbeds = None,
    models: ModelsDirs = None,
    timeout: Timeout = 60.0,
    chains: ChainsFile = None,
    rack: RackFile = None,
    slos: SlosFile = None,
    device: DeviceFile = None,
) -> None:
    """Check an optimum without its solver: the plan by querying the testbed, the bound by weak duality.

    A plan of chains is checked against the chains and the rack in the file, an admission to a GPU against its SLOs and
    its device. The exit status is 1 if a check fails; stderr lists the errors.
    """
    from placer.commands.verify_admission import open_admission, verify_admission
    from placer.commands.verify_chains import verify_chains
    from placer.verify import completeness_of, faults_of, fleet_faults, read_certificate, trace_faults
    from placer.verify.chains import read_chain_certificate

    of_nics: dict[str, object] = {"--arrivals": arrivals, "--testbed": testbed, "--models": models}
    of_racks: dict[str, object] = {"--chains": chains, "--rack": rack}
    of_gpus: dict[str, object] = {"--slos": slos, "--device": device}
    if (admission := open_admission(file, slos, device)) is not None:
        _refuse(of_nics | of_racks, "an admission to a GPU has none")
        verify_admission(admission, slos, device)
        return
    _refuse(of_gpus, "is for admissions of `placer admit`")
    if (of_chains := read_chain_certificate(file)) is not None:
        _refuse(of_nics, "plans of chains have none")
        verify_chains(of_chains, chains, rack)
        return
    _refuse(of_racks, "is for certificates of `placer chain place`")
    certificate = read_certificate(file)
    with ExitStack() as stack:
        sources = _sources(certificate, testbed or [], models or [], timeout, stack)
        faults = [] if arrivals is None else list(trace_faults(certificate, _trace(arrivals, sources[0].traffic)))
        for number, source in enumerate(sources):
            faults += fleet_faults(certificate, number, source)
        query: Query = lambda number, co_locations: sources[number].query(co_locations)  # noqa: E731
        faults = faults or list(faults_of(certificate, query))
        completeness = None if faults else completeness_of(certificate, query)
    for fault in faults:
        typer.echo(fault, err=True)
    if completeness is None:
        raise typer.Exit(1)
    typer.echo(_result(certificate, sources, completeness), nl=False)


def _refuse(options: Mapping[str, object], message: str) -> None:
    """Refuse options that do not belong to the certificate."""
    if faults := [Fault(name, None, None, message) for name, value in options.items() if value]:
        raise InputError(faults)


def _sources(
    certificate: Certificate, testbeds: Sequence[str], folders: Sequence[Path], timeout: float, stack: ExitStack
) -> list[ThroughputSource]:
    """The source of throughputs for each kind of NIC."""
    from placer.inputs.models import RECORDED_OF
    from placer.verify.source import testbed_source
    from profiler.testbeds import open_testbed

    kinds = len(certificate.kinds)
    specs = _each("--testbed", testbeds, kinds) if testbeds else certificate.testbeds
    only_recorded = not folders and all(spec in RECORDED_OF for spec in testbeds)
    if certificate.predictor is not None and (not testbeds or only_recorded):
        return _predictors(certificate, certificate.predictor, specs, folders)
    specs = specs if testbeds else _without_programs(specs)
    by_spec = {
        spec: testbed_source(stack.enter_context(open_testbed(spec, timeout=timeout))) for spec in dict.fromkeys(specs)
    }
    return [by_spec[spec] for spec in specs]


def _predictors(
    certificate: Certificate, predictor: str, specs: Sequence[str], folders: Sequence[Path]
) -> list[ThroughputSource]:
    """The predictor for each kind of NIC: of the folders, or of the recorded models of the simulated cards."""
    from placer.inputs.models import RECORDED, RECORDED_OF, open_models
    from placer.verify.source import predictor_source

    kinds = len(certificate.kinds)
    each: Sequence[Path | None] = _each("--models", folders, kinds) if folders else [None] * kinds
    named = list(zip(each, (RECORDED_OF.get(spec, RECORDED) for spec in specs), strict=True))
    opened = {
        (folder, recorded): open_models(folder, lambda line: typer.echo(line, err=True), recorded)
        for folder, recorded in dict.fromkeys(named)
    }
    return [predictor_source(opened[one], predictor, certificate.risk) for one in named]


def _each(option: str, given: Sequence[One], kinds: int) -> Sequence[One]:
    """One for every kind of NIC."""
    if len(given) not in (1, kinds):
        message = f"given {len(given)} times, there are {kinds} kinds of NIC"
        raise InputError.of(option, message, hint="give it once, or once per kind")
    return list(given) * kinds if len(given) == 1 else given


def _without_programs(specs: Sequence[str]) -> Sequence[str]:
    """The testbeds that a certificate names, refused where they are programs: a file does not start programs."""
    for spec in specs:
        if spec.startswith("exec:"):
            hint = f"if you trust it: --testbed '{spec}'"
            raise InputError.of("--testbed", "a certificate does not start programs by itself", hint=hint)
    return specs


def _trace(path: str, traffic: TrafficProfile) -> dict[str, TenantClass]:
    """The tenants of a trace, by id; `traffic` is the meaning of a missing or empty column."""
    from placer.inputs.arrivals import read_arrivals
    from placer.verify import TenantClass

    arrivals = read_arrivals(path, traffic, lambda workload: ())
    if departing := [arrival.id for arrival in arrivals if arrival.departure is not None]:
        message = f"{departing[0]} departs, and a certificate covers only tenants that stay"
        raise InputError.of(path, message, column="departure")
    return {one.id: TenantClass(one.workload, one.sla.max_drop, one.sla.min_kpps) for one in arrivals}


def _result(certificate: Certificate, sources: Sequence[ThroughputSource], completeness: Completeness) -> str:
    """What was checked, and whether the plan is optimal."""
    placed, left_out = len(certificate.tenants) - len(certificate.left_out), len(certificate.left_out)
    cost, bound = float(certificate.cost), float(certificate.lower_bound)
    names = ", ".join(dict.fromkeys(source.name for source in sources))
    over = f"the throughputs of {names}" if certificate.over == "co-locations" else "their cores alone"
    lines = [
        *(f"fleet: {_kind(certificate, number)}" for number in range(len(certificate.kinds))),
        f"plan: {placed:,} tenants on {len(certificate.nics):,} NICs at a cost of {cost:g}; every SLA is met by the "
        f"throughputs of {names}",
        f"bound: no plan that places as many tenants costs less than {bound:g}, by {over}",
    ]
    if left_out:
        lines.append(f"left out: {left_out:,} of {len(certificate.tenants):,} tenants; {completeness.value}")
    lines.append(f"result: {_conclusion(cost, bound, completeness.complete)}")
    return "\n".join(lines) + "\n"


def _conclusion(cost: float, bound: float, complete: bool) -> str:
    gap = "" if cost == bound else f"a cost {cost - bound:g} above the bound"
    if complete:
        return f"not proven optimal, {gap}" if gap else "the plan is optimal"
    return f"not proven optimal, more tenants may be placed{f', and {gap}' if gap else ''}"


def _kind(certificate: Certificate, number: int) -> str:
    kind = certificate.kinds[number]
    number_of = "any number of" if kind.limit is None else f"{kind.limit:,}"
    return f"{number_of} {kind.model} with {kind.cores} cores, at a cost of {float(kind.cost):g} each"
