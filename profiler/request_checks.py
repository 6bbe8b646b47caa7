"""What a testbed checks before it runs a request: names, ranges and cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profiles import BenchLoad, Load, TestbedDescription, Workload


def refusals(description: TestbedDescription, loads: Sequence[Load]) -> list[str]:
    """Why a testbed of this description cannot run `loads` together; empty when it can."""
    checked = [_bench(description, load) if isinstance(load, BenchLoad) else _nf(description, load) for load in loads]
    faults = [fault for _, wrong in checked for fault in wrong]
    cores = sum(cores for cores, _ in checked)
    if cores > description.nic.cores:
        faults.append(f"needs {cores} cores, the NIC has {description.nic.cores}")
    return faults


def _bench(description: TestbedDescription, load: BenchLoad) -> tuple[int, list[str]]:
    """The cores that a bench takes, and what is wrong with its parameters."""
    bench = description.bench(load.name)
    if bench is None:
        return 0, [f"bench {load.name} is not known"]
    values = dict(load.parameters)
    missing = [f"{load.name} needs parameter {name}" for name in bench.parameters if name not in values]
    return bench.cores, missing + _outside(bench.parameters, values)


def _nf(description: TestbedDescription, load: Workload) -> tuple[int, list[str]]:
    """The cores that an NF takes, and what is wrong with its traffic."""
    nf = next((nf for nf in description.nfs if nf.name == load.nf), None)
    if nf is None:
        return 0, [f"NF {load.nf} is not known"]
    return nf.cores, _outside(description.attributes, load.traffic.as_dict())


def _outside(ranges: Mapping[str, tuple[float, float]], values: Mapping[str, float]) -> list[str]:
    return [
        f"{name} {values[name]:g} is outside [{low:g}, {high:g}]"
        for name, (low, high) in ranges.items()
        if name in values and not low <= values[name] <= high
    ]
