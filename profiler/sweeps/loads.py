"""Which loads run at a point of a sweep, and what a testbed does not accept of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from profiler.sweeps.spec import CYCLES_METRIC, Competitor, Path, SweepSpec, SweptWorkload
from profiles import ATTRIBUTES, BenchLoad, ConfiguredWorkload, Load, TestbedDescription, TrafficProfile, Workload
from profiles.faults import suggestion
from profiles.files.toml import WrongKey

PARAMETERS_KIND = "parameters"
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class KeyTarget:
    """What a varied key changes: a traffic attribute or a parameter, of the NF (no owner) or of competitors."""

    owner: str
    kind: Literal["traffic", "parameters"]
    name: str


def target_of(key: str, workload: SweptWorkload) -> KeyTarget:
    """What a key names: `flows`, `rules`, `parameters.flows`, `mem-bench.access_mops`, `FlowStats.flows`."""
    names = sorted({competitor.name for competitor in workload.competitors}, key=len, reverse=True)
    owner = next((name for name in names if key.startswith(f"{name}.")), "")
    benches = {competitor.name for competitor in workload.competitors if competitor.bench is not None}
    rest = key.removeprefix(f"{owner}.") if owner else key
    if rest in ATTRIBUTES and owner not in benches:
        return KeyTarget(owner, "traffic", rest)
    return KeyTarget(owner, "parameters", rest.removeprefix(f"{PARAMETERS_KIND}."))


def loads_at(spec: SweepSpec, description: TestbedDescription, point: Mapping[str, float]) -> tuple[Load, ...]:
    """The NF and its competitors where each varied key has the value of `point`; the NF is the first."""
    targets = {target_of(key, spec.workload): value for key, value in point.items()}
    loads = [_load(spec.workload, "", targets, description)]
    for competitor in spec.workload.competitors:
        loads += [_load(competitor, competitor.name, targets, description)] * competitor.count
    return tuple(loads)


def _load(
    member: SweptWorkload | Competitor, owner: str, targets: Mapping[KeyTarget, float], description: TestbedDescription
) -> Load:
    def values(kind: str) -> dict[str, float]:
        return {one.name: value for one, value in targets.items() if one.owner == owner and one.kind == kind}

    parameters = {**member.parameters, **values("parameters")}
    if isinstance(member, Competitor) and member.bench is not None:
        return BenchLoad.of(member.bench, parameters)
    traffic = TrafficProfile.from_mapping(description.traffic.as_dict() | _traffic(member) | values("traffic"))
    workload = Workload(member.nf or "", traffic)
    return ConfiguredWorkload.of(workload, parameters) if parameters else workload


def _traffic(member: SweptWorkload | Competitor) -> dict[str, float]:
    """The traffic attributes that the file gives."""
    given = {name: getattr(member, name) for name in ATTRIBUTES}
    return {name: value for name, value in given.items() if value is not None}


def faults_on_testbed(spec: SweepSpec, description: TestbedDescription) -> list[WrongKey]:
    """What a testbed of this description does not accept of a sweep. Where a testbed that is no simulation describes no
    parameters of an NF, it judges them itself when it runs."""
    faults = [*_unknown_members(spec, description)]
    if faults:
        return faults
    faults += _of_fixed_values(spec, description)
    for number, one in enumerate(spec.vary):
        faults += _of_varied(spec, description, number, one.key)
    nf = description.nf(spec.workload.nf)
    if CYCLES_METRIC in spec.measure.metrics and not description.nic.clock_mhz:
        hint = f"{description.name} does not describe its clock_mhz; measure throughput_kpps"
        faults.append(WrongKey(("measure", "metrics"), f"{CYCLES_METRIC} is not known", hint))
    cores = nf.cores + sum(_cores(rival, description) * rival.count for rival in spec.workload.competitors)
    if cores > description.nic.cores:
        message = f"needs {cores} cores, the NIC of {description.name} has {description.nic.cores}"
        faults.append(WrongKey(("workload",), message))
    return [*faults, *_missing_of_benches(spec, description)]


def _unknown_members(spec: SweepSpec, description: TestbedDescription) -> Iterator[WrongKey]:
    nfs, benches = [nf.name for nf in description.nfs], [bench.name for bench in description.benches]
    wanted: list[tuple[Path, str, list[str]]] = [(("workload", "nf"), spec.workload.nf, nfs)]
    for number, one in enumerate(spec.workload.competitors):
        kind = "nf" if one.bench is None else "bench"
        wanted.append((("workload", "competitors", number, kind), one.name, nfs if one.bench is None else benches))
    for path, name, known in wanted:
        if name not in known:
            hint = suggestion(name, known) if known else None
            yield WrongKey(path, f"{description.name} has no {name}", hint)


def _of_fixed_values(spec: SweepSpec, description: TestbedDescription) -> Iterator[WrongKey]:
    members: list[tuple[Path, str, SweptWorkload | Competitor]] = [(("workload",), "", spec.workload)]
    members += [(("workload", "competitors", at), one.name, one) for at, one in enumerate(spec.workload.competitors)]
    for path, owner, member in members:
        for name, value in _traffic(member).items():
            yield from _outside((*path, name), KeyTarget(owner, "traffic", name), value, spec, description)
        for name, value in member.parameters.items():
            yield from _outside(
                (*path, PARAMETERS_KIND, name), KeyTarget(owner, "parameters", name), value, spec, description
            )


def _of_varied(spec: SweepSpec, description: TestbedDescription, number: int, key: str) -> Iterator[WrongKey]:
    target = target_of(key, spec.workload)
    if any(target == target_of(other.key, spec.workload) for other in spec.vary[:number]):
        yield WrongKey(("vary", number, "key"), f"{key} is varied twice")
        return
    one = spec.vary[number]
    values = {"values": one.values or (), "from": (one.start,), "to": (one.end,)}
    for place, numbers in values.items():
        for value in numbers:
            if value is not None:
                path: Path = ("vary", number, place)
                found = [*_outside(path, target, value, spec, description)]
                yield from found
                if found and "has no" in found[0].message:
                    return


def _outside(
    path: Path, target: KeyTarget, value: float, spec: SweepSpec, description: TestbedDescription
) -> Iterator[WrongKey]:
    """A value that is outside the range of its key, or whose key the testbed does not have."""
    ranges = _ranges(target, spec, description)
    if ranges is None:
        return
    if target.name not in ranges:
        place: Path = (*path[:-1], "key") if path[0] == "vary" else path
        yield WrongKey(
            place, f"{target.owner or spec.workload.nf} has no {target.name}", _keys_hint(target, spec, ranges)
        )
        return
    low, high = ranges[target.name]
    if not low <= value <= high:
        yield WrongKey(path, f"{target.name} {value:g} is outside [{low:g}, {high:g}] of {description.name}")


def _keys_hint(target: KeyTarget, spec: SweepSpec, ranges: Mapping[str, Range]) -> str:
    known = [*ranges]
    if not target.owner:
        known += [*ATTRIBUTES, *(f"{competitor.name}.KEY" for competitor in spec.workload.competitors)]
    return suggestion(target.name, dict.fromkeys(known))


def _ranges(target: KeyTarget, spec: SweepSpec, description: TestbedDescription) -> Mapping[str, Range] | None:
    """The range of each key of the same kind; None where the testbed describes none."""
    if target.kind == "traffic":
        return {name: description.range_of(name) for name in ATTRIBUTES}
    if bench := _bench_of(target.owner, spec):
        found = description.bench(bench)
        return dict(found.parameters) if found else None
    described = dict(description.nf(target.owner or spec.workload.nf).parameters)
    return described if described or description.simulated else None


def _bench_of(owner: str, spec: SweepSpec) -> str | None:
    return next((competitor.bench for competitor in spec.workload.competitors if competitor.name == owner), None)


def _cores(one: Competitor, description: TestbedDescription) -> int:
    bench = description.bench(one.bench) if one.bench is not None else None
    return bench.cores if bench else description.nf(one.nf or "").cores


def _missing_of_benches(spec: SweepSpec, description: TestbedDescription) -> Iterator[WrongKey]:
    """Parameters of benches that have neither a value nor are varied."""
    varied = {target_of(variation.key, spec.workload) for variation in spec.vary}
    for number, one in enumerate(spec.workload.competitors):
        bench = description.bench(one.bench) if one.bench is not None else None
        for name, (low, high) in bench.parameters.items() if bench else ():
            if name not in one.parameters and KeyTarget(one.name, "parameters", name) not in varied:
                hint = f"parameters = {{ {name} = ... }}, between {low:g} and {high:g}"
                yield WrongKey(("workload", "competitors", number), f"{one.name} needs parameter {name}", hint)
