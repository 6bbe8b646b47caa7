"""`placer verify CERTIFICATE`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from placer.commands import options
from profiles import Fault, InputError, TrafficProfile

if TYPE_CHECKING:
    from placer.inputs.arrivals import TraceOptions
    from placer.verify import Budget, Certificate, Completeness, Query, ThroughputSource
if TYPE_CHECKING:
    from placer.verify.admission import AdmissionCase
if TYPE_CHECKING:
    from placer.verify.chains import ChainCertificate


One = TypeVar("One")
File = Annotated[
    Path,
    options.take_argument(
        "FILE",
        "Written by `placer run --certificate`, `placer chain place --certificate` or `placer admit "
        "--certificate`; or an answer of `placer admit --format json`, with --slos and --device.",
    ),
]
Arrivals = Annotated[str | None, options.take_option("The trace that the tenants must match: CSV, .csv.gz or -.")]
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
    Path | None, options.take_option("The chains that a plan of chains must match: .chains or JSON.", "--chains")
]
RackFile = Annotated[
    Path | None, options.take_option("The rack that a plan of chains must match: TOML or JSON.", "--rack")
]
SlosFile = Annotated[Path | None, options.take_option("The SLOs that an admission must match: JSON Lines.", "--slos")]
DeviceFile = Annotated[Path | None, options.take_option("The GPU that an admission must match: JSON.", "--device")]


def command(
    file: File,
    arrivals: Arrivals = None,
    testbed: Testbeds = None,
    models: ModelsDirs = None,
    timeout: options.Timeout = 60.0,
    chains: ChainsFile = None,
    rack: RackFile = None,
    slos: SlosFile = None,
    device: DeviceFile = None,
    ignore_columns: options.IgnoreColumns = False,
    skip_empty_stays: options.SkipEmptyStays = False,
) -> None:
    """Check a certificate without the solver: the plan by querying the testbed, the bound by weak duality.

    A plan of chains is checked against the chains and the rack in the file, an admission to a GPU against its SLOs and
    its device. The exit status is 1 if a check fails; stderr lists the errors."""
    from placer.verify import completeness_of, faults_of, fleet_faults, read_certificate
    from placer.verify.chains import read_chain_certificate

    if arrivals is None:
        options.refuse_without_arrivals("--arrivals", ignore_columns, skip_empty_stays)
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
        reading = options.trace_options(ignore_columns, skip_empty_stays, partial(typer.echo, err=True))
        faults = [] if arrivals is None else _trace_faults(certificate, arrivals, sources[0].traffic, reading)
        for number, source in enumerate(sources):
            faults += fleet_faults(certificate, number, source)
        query: Query = lambda number, co_locations: sources[number].query(co_locations)  # noqa: E731
        if certificate.budget is not None:
            faults = faults or _budget_faults(certificate, certificate.budget, sources)
            result = "" if faults else _result_within(certificate, certificate.budget, sources)
        else:
            faults = faults or list(faults_of(certificate, query))
            result = "" if faults else _result(certificate, sources, completeness_of(certificate, query))
    _end_with(faults)
    typer.echo(result, nl=False)


def _end_with(faults: Sequence[str]) -> None:
    """Print faults, and end with the exit status 1, if there are any."""
    for fault in faults:
        typer.echo(fault, err=True)
    if faults:
        raise typer.Exit(1)


def _budget_faults(certificate: Certificate, budget: Budget, sources: Sequence[ThroughputSource]) -> list[str]:
    """The faults of a plan within a budget, by the error models of its predictor."""
    from placer.verify import budget_faults

    workloads = {tenant.workload for tenant in certificate.tenants.values()}
    for kind, source in zip(certificate.kinds, sources, strict=True):
        source.check([workload for workload in workloads if workload.nf in kind.cores_of])
    errors = [source.errors for source in sources if source.errors is not None]
    if len(errors) < len(sources):
        hint = "leave --testbed out, or give --models"
        raise InputError.of("--testbed", "a budget is checked by the errors of a predictor", hint=hint)
    return list(budget_faults(certificate, budget, errors))


def _refuse(given: Mapping[str, object], message: str) -> None:
    """Refuse options that do not belong to the certificate."""
    if faults := [Fault(name, None, None, message) for name, value in given.items() if value]:
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
    from placer.inputs.models import RECORDED_OF, RECORDED_PROFILE, open_models
    from placer.verify.source import predictor_source

    kinds = len(certificate.kinds)
    each: Sequence[Path | None] = _each("--models", folders, kinds) if folders else [None] * kinds
    named = list(zip(each, (RECORDED_OF.get(spec, RECORDED_PROFILE) for spec in specs), strict=True))
    opened = {
        (folder, recorded): open_models(folder, lambda line: typer.echo(line, err=True), recorded)
        for folder, recorded in dict.fromkeys(named)
    }
    return [predictor_source(opened[model], predictor, certificate.risk) for model in named]


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


def _trace_faults(certificate: Certificate, path: str, traffic: TrafficProfile, reading: TraceOptions) -> list[str]:
    """What differs from a trace; `traffic` is the meaning of a missing or empty column."""
    from placer.inputs.arrivals import read_arrivals, refuse_priorities
    from placer.model.nic_kind import NicKind
    from placer.verify import TenantClass, trace_faults

    kinds = [
        NicKind(at, of.model, of.cores, of.cores_of, of.limit, float(of.cost), pool=of.pool, domain=of.domain)
        for at, of in enumerate(certificate.kinds)
    ]
    arrivals = read_arrivals(path, traffic, lambda workload: (), reading, kinds=kinds, may_run=False)
    refuse_priorities(arrivals)
    if departing := [arrival.id for arrival in arrivals if arrival.departure is not None]:
        message = f"{departing[0]} departs, and a certificate covers only tenants that stay"
        raise InputError.of(path, message, column="departure")
    classes, groups = {}, {}
    for arrival in arrivals:
        constraints = dict(arrival.constraints.values)
        pools = constraints.pop("pool", "")
        classes[arrival.id] = TenantClass(arrival.workload, arrival.sla.max_drop, arrival.sla.min_kpps, pools)
        groups[arrival.id] = constraints
    return list(trace_faults(certificate, classes, {arrival.id: arrival.time for arrival in arrivals}, groups))


def _result(certificate: Certificate, sources: Sequence[ThroughputSource], found: Completeness) -> str:
    """What was checked, and whether the plan is optimal."""
    kept = f"every SLA is met by the throughputs of {_names(sources)}"
    return _report(certificate, sources, "throughputs", kept, "", found.value, complete=found.complete)


def _result_within(certificate: Certificate, budget: Budget, sources: Sequence[ThroughputSource]) -> str:
    """What was checked of a plan within a budget, and whether none is better."""
    from placer.verify import places_most

    complete = places_most(certificate, budget)
    within = (
        f"within the budget of {float(budget.pct):g} %"
        if budget.pct < 100
        else f"no probability is above {budget.limit:g}"
    )
    kept = (
        f"{budget.expected_pct:.4g} % are expected to violate their SLA, {budget.reserve_pct:.4g} % are kept back, by "
        f"the errors of {_names(sources)}: {within}"
    )
    others = " within the budget, without what is kept back,"
    known = "no plan within the budget leaves out fewer" if complete else "that none leaves out fewer is not proven"
    return _report(certificate, sources, "errors", kept, others, known, complete=complete)


def _report(
    certificate: Certificate,
    sources: Sequence[ThroughputSource],
    by: str,
    kept: str,
    others: str,
    known: str,
    *,
    complete: bool,
) -> str:
    """Lines on fleet, plan and bound. `by`: what of the sources. `kept`: by the plan. `others`: which other plans the
    bound is of. `known`: of tenants that are left out."""
    placed, left_out = len(certificate.tenants) - len(certificate.left_out), len(certificate.left_out)
    cost, bound = float(certificate.cost), float(certificate.lower_bound)
    over = f"the {by} of {_names(sources)}" if certificate.over == "co-locations" else "their cores alone"
    lines = [
        *(f"fleet: {_kind(certificate, number)}" for number in range(len(certificate.kinds))),
        f"plan: {placed:,} tenants on {len(certificate.nics):,} NICs at a cost of {cost:g}; {kept}{_kept(certificate)}",
        f"bound: no plan{others} that places as many tenants costs less than {bound:g}, by {over}",
    ]
    if left_out:
        lines.append(f"left out: {left_out:,} of {len(certificate.tenants):,} tenants; {known}")
    lines.append(f"result: {_conclusion(cost, bound, complete)}")
    return "\n".join(lines) + "\n"


def _names(sources: Sequence[ThroughputSource]) -> str:
    return ", ".join(dict.fromkeys(source.name for source in sources))


def _conclusion(cost: float, bound: float, complete: bool) -> str:
    gap = "" if cost == bound else f"a cost {cost - bound:g} above the bound"
    if complete:
        return f"not proven optimal, {gap}" if gap else "the plan is optimal"
    return f"not proven optimal, more tenants may be placed{f', and {gap}' if gap else ''}"


def _kind(certificate: Certificate, number: int) -> str:
    kind = certificate.kinds[number]
    number_of = "any number of" if kind.limit is None else f"{kind.limit:,}"
    places = "".join(f" in {word} {name}" for word, name in (("pool", kind.pool), ("domain", kind.domain)) if name)
    return f"{number_of} {kind.model}{places} with {kind.cores} cores, at a cost of {float(kind.cost):g} each"


def _kept(certificate: Certificate) -> str:
    constrained = any(certificate.groups.values()) or any(kind.pool for kind in certificate.kinds)
    return "; every group and pool is kept" if constrained else ""


# `placer verify FILE` of an admission to a GPU.


def open_admission(file: Path, slos: Path | None, device: Path | None) -> AdmissionCase | None:
    """The admission in a certificate, or in an answer with the files it is about; None for another certificate. Raises
    `InputError` when a file is refused, or an answer comes without SLOs and device."""
    from placer.verify.admission import admission_case, is_answer, read_admission, read_json, read_slos

    if (certificate := read_admission(file)) is not None:
        return certificate
    if not is_answer(file):
        return None
    missing = [name for name, given in (("--slos", slos), ("--device", device)) if given is None]
    if slos is None or device is None:
        raise InputError([Fault(name, None, None, f"{file} is an answer alone, and needs it") for name in missing])
    return admission_case(read_json(device), read_slos(slos), read_json(file), str(file))


def verify_admission(case: AdmissionCase, slos: Path | None, device: Path | None) -> None:
    """Check an admission, print what is proven; the exit status is 1 if a check fails. `slos`, `device`: files that the
    admission must be about; None: those in it are not compared."""
    from placer.verify.admission import admission_faults

    _end_with([*_others(case, slos, device), *admission_faults(case)])
    typer.echo(_admission_result(case))


def _others(case: AdmissionCase, slos: Path | None, device: Path | None) -> Iterator[str]:
    """SLOs that are missing in file or certificate, or differ; and another device."""
    from placer.verify.admission import device_of, read_json, read_slos, slos_of

    if device is not None and device_of(read_json(device), str(device)) != case.device:
        yield f"device: differs from {device}"
    if slos is None:
        return
    given = {slo.id: slo for slo in slos_of(read_slos(slos), str(slos))}
    claimed = {slo.id: slo for slo in case.slos}
    yield from _differences("slos", given, claimed, slos)


def _differences(what: str, given: Mapping[str, object], claimed: Mapping[str, object], file: Path) -> Iterator[str]:
    """What of a file, by name, is missing there or in the certificate, or differs."""
    for name in _differing(given, claimed):
        only = name not in given or name not in claimed
        of = f"is only in {file if name in given else 'the certificate'}" if only else f"differs from {file}"
        yield f"{what}: {name} {of}"


def _admission_result(case: AdmissionCase) -> str:
    """One line: what was checked. The bound has no proof in the file, and is said to be so."""
    answer, bus = case.answer, case.device.arbitration
    kept = f"the {len(answer.admitted):,} admitted of {len(case.slos):,} SLOs keep their latency on a {bus} bus"
    claim = "claimed optimal" if answer.proven else f"at most {answer.bound:,} are claimed possible"
    return f"result: {kept}; {claim}, which is not checked"


# `placer verify CERTIFICATE` of a plan of chains.


def verify_chains(certificate: ChainCertificate, chains: Path | None, rack: Path | None) -> None:
    """Check plan and bound, print what is proven; the exit status is 1 if a check fails. `chains`, `rack`: files that
    the certificate must be about; None: those in it are not compared."""
    from placer.verify.chains import chain_faults

    faults = [*_other_chains(certificate, chains), *_other_rack(certificate, rack)]
    faults = faults or list(chain_faults(certificate))
    _end_with(faults)
    typer.echo(_say_what_is_proven(certificate))


def _other_chains(certificate: ChainCertificate, file: Path | None) -> Iterator[str]:
    """Chains, by name, that are missing in file or certificate, or differ; compared as JSON has them."""
    from placer.rack.compiler.own_data import load_own_data
    from placer.rack.files.chains_file import read_chains_file
    from placer.rack.files.json_twins import chains_of
    from placer.rack.files.written_twins import write_chains

    if file is None:
        return
    read = chains_of(_as_json(write_chains(load_own_data(read_chains_file(file)).chains)), str(file))
    given, claimed = {one.name: one for one in read}, {chain.name: chain for chain in certificate.chains}
    yield from _differences("chains", given, claimed, file)


def _other_rack(certificate: ChainCertificate, file: Path | None) -> Iterator[str]:
    """Parts of the rack that differ."""
    from placer.rack.files.json_twins import rack_of
    from placer.rack.files.rack_file import read_rack_file
    from placer.rack.files.written_twins import write_rack
    from placer.rack.stages.stage_oracles import check_stages
    from placer.verify.chains.table_fit import blocks_by_tables

    if file is None:
        return
    given, claimed = rack_of(_as_json(write_rack(read_rack_file(file))), str(file)), certificate.rack
    if claimed.stage_oracle == "tables":  # those of NFs for which the file has none are known to placing
        given = blocks_by_tables(check_stages(given, certificate.chains, "tables"))
    parts = ("switch", "crossing_us", "overheads")
    differing = [part for part in parts if getattr(given, part) != getattr(claimed, part)]
    differing += _differing(
        {server.name: server for server in given.servers}, {server.name: server for server in claimed.servers}
    )
    differing += _differing(given.costs, claimed.costs)
    yield from (f"rack: {part} differs from {file}" for part in differing)


def _differing(given: Mapping[str, object], claimed: Mapping[str, object]) -> list[str]:
    names = [*given, *(name for name in claimed if name not in given)]
    return [name for name in names if given.get(name) != claimed.get(name)]


def _as_json(written: Mapping[str, object]) -> object:
    return json.loads(json.dumps(written))


def _say_what_is_proven(certificate: ChainCertificate) -> str:
    """One line: what was checked."""
    plan = certificate.plan
    chains = f"{_number(len(certificate.chains), 'chain')} on {_number(len(certificate.rack.servers), 'server')}"
    if plan.status == "infeasible":
        return f"result: no plan of {chains} keeps all SLOs"
    at_most = "" if plan.bound_mbps is None else f"no plan gives more than {float(plan.bound_mbps):,.1f} Mbps"
    if plan.marginal_mbps is None:
        return f"result: the certificate has no plan of {chains}; {at_most or 'nothing is proven'}"
    kept = f"the plan of {chains} keeps all SLOs, with {float(plan.marginal_mbps):,.1f} Mbps beyond the least rates"
    if plan.status == "optimal":
        return f"result: {kept}, and is optimal: no plan gives more"
    return f"result: {kept}; {at_most or 'its bound is not proven'}"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
