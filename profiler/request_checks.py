"""What a testbed checks before it runs a request: names, ranges and cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from profiler.gpu_checks import gpu_refusals
from profiles import (
    BenchLoad,
    ChainLoad,
    ConfiguredWorkload,
    Load,
    NfDescription,
    PacedWorkload,
    TestbedDescription,
    Workload,
)


def refusals(description: TestbedDescription, loads: Sequence[Load]) -> list[str]:
    """Why a testbed of this description cannot run `loads` together; empty when it can."""
    checked = [_load(description, load) for load in loads]
    faults = [fault for _, wrong in checked for fault in wrong]
    cores = sum(cores for cores, _ in checked)
    if cores > description.nic.cores:
        faults.append(f"needs {cores} cores, the NIC has {description.nic.cores}")
    return faults + gpu_refusals(description, loads)


def _load(description: TestbedDescription, load: Load) -> tuple[int, list[str]]:
    """The cores that a load takes, and what is wrong with it."""
    match load:
        case BenchLoad():
            return _bench(description, load)
        case ChainLoad():
            return len(load.cores), _chain(description, load)
        case ConfiguredWorkload():
            return _nf(description, load.workload, dict(load.parameters))
        case PacedWorkload():
            return _nf(description, load.workload, {})
        case Workload():
            return _nf(description, load, {})


def _bench(description: TestbedDescription, load: BenchLoad) -> tuple[int, list[str]]:
    """The cores that a bench takes, and what is wrong with its parameters."""
    bench = description.bench(load.name)
    if bench is None:
        return 0, [f"bench {load.name} is not known"]
    values = dict(load.parameters)
    missing = [f"{load.name} needs parameter {name}" for name in bench.parameters if name not in values]
    return bench.cores, missing + _outside(bench.parameters, values)


def _nf(description: TestbedDescription, load: Workload, parameters: Mapping[str, float]) -> tuple[int, list[str]]:
    """The cores that an NF takes, and what is wrong with its traffic and parameters."""
    nf = _find(description, load.nf)
    if nf is None:
        return 0, [f"NF {load.nf} is not known"]
    return nf.cores, _outside(description.attributes, load.traffic.as_dict()) + _parameters(nf, parameters)


def _chain(description: TestbedDescription, load: ChainLoad) -> list[str]:
    """What is wrong with a chain."""
    if not description.chains:
        return [f"chains of NFs are not known to {description.name}"]
    faults = _outside(description.attributes, load.traffic.as_dict())
    for at, stage in enumerate(load.stages):
        nf = _find(description, stage.nf)
        wrong = [f"NF {stage.nf} is not known"] if nf is None else _parameters(nf, dict(stage.parameters))
        faults += [f"stage {at}: {fault}" for fault in wrong]
    return [f"chain {load.label}: {fault}" for fault in [*faults, *_placement(load), *_shares(load)]]


def _placement(load: ChainLoad) -> list[str]:
    """What is wrong with the stages that each core runs."""
    if not load.cores:
        return ["has no cores"]
    times = Counter(stage for core in load.cores for stage in core)
    faults = [f"core {at} has no stage" for at, core in enumerate(load.cores) if not core]
    faults += [
        f"stage {stage} does not exist: there are {len(load.stages)}, numbered from 0"
        for stage in times
        if not 0 <= stage < len(load.stages)
    ]
    for at, stage in enumerate(load.stages):
        if times[at] != 1:
            where = f"is placed {times[at]} times" if times[at] else "is on no core"
            faults.append(f"stage {at} ({stage.nf}) {where}")
    return faults


def _shares(load: ChainLoad) -> list[str]:
    faults = [f"share {share:g} is not above 0 and at most 1" for share in load.shares if not 0 < share <= 1]
    if load.shares and len(load.shares) != len(load.cores):
        faults.append(f"has {len(load.shares)} shares for {len(load.cores)} cores")
    return faults


def _find(description: TestbedDescription, name: str) -> NfDescription | None:
    return next((nf for nf in description.nfs if nf.name == name), None)


def _parameters(nf: NfDescription, values: Mapping[str, float]) -> list[str]:
    """What is wrong with the parameters of an NF; those that are left out have their default."""
    unknown = [f"{nf.name} has no parameter {name}" for name in values if name not in nf.parameters]
    return unknown + _outside(nf.parameters, values)


def _outside(ranges: Mapping[str, tuple[float, float]], values: Mapping[str, float]) -> list[str]:
    return [
        f"{name} {values[name]:g} is outside [{low:g}, {high:g}]"
        for name, (low, high) in ranges.items()
        if name in values and not low <= values[name] <= high
    ]
