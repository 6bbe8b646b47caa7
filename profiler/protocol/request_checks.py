"""What a testbed checks before it runs a request: names, ranges and cores."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from profiles import (
    BenchLoad,
    ChainLoad,
    ConfiguredWorkload,
    GpuSettings,
    GpuWorkload,
    Load,
    NfDescription,
    NicModel,
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
    return faults + settings_refusals(description, loads)


def settings_refusals(description: TestbedDescription, loads: Sequence[Load]) -> list[str]:
    """Why a testbed of this description cannot give NFs these rates, cores and settings of a GPU; empty when it can."""
    faults = []
    for load in loads:
        workload = load.workload if isinstance(load, ConfiguredWorkload | GpuWorkload) else load
        nf = _find(description, workload.nf) if isinstance(workload, Workload) and workload.cores else None
        if nf and isinstance(workload, Workload) and workload.cores not in nf.counts:
            possible = ", ".join(map(str, nf.counts))
            faults.append(f"{nf.name} cannot be given {workload.cores} cores, possible: {possible}")
    return faults + gpu_refusals(description, loads)


def _load(description: TestbedDescription, load: Load) -> tuple[int, list[str]]:
    """The cores that a load takes, and what is wrong with it."""
    match load:
        case BenchLoad():
            # The cores that a bench takes, and what is wrong with its parameters.
            bench = description.bench(load.name)
            if bench is None:
                return 0, [f"bench {load.name} is not known"]
            values = dict(load.parameters)
            missing = [f"{load.name} needs parameter {name}" for name in bench.parameters if name not in values]
            return bench.cores, missing + _outside(bench.parameters, values)
        case ChainLoad():
            return len(load.cores), _chain(description, load)
        case ConfiguredWorkload():
            return _nf(description, load.workload, dict(load.parameters))
        case GpuWorkload():
            return _nf(description, load.workload, {})
        case Workload():
            return _nf(description, load, {})


def _nf(description: TestbedDescription, load: Workload, parameters: Mapping[str, float]) -> tuple[int, list[str]]:
    """The cores that an NF takes, and what is wrong with its traffic and parameters."""
    nf = _find(description, load.nf)
    if nf is None:
        return 0, [f"NF {load.nf} is not known"]
    return load.cores or nf.cores, _outside(description.attributes, load.traffic.as_dict()) + _parameters(
        nf, parameters
    )


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


# What a testbed checks of rates and GPU settings before it runs a request.


def gpu_refusals(description: TestbedDescription, loads: Sequence[Load]) -> list[str]:
    """Why a testbed of this description cannot run `loads` at their rates and on its GPU; empty when it can."""
    nic = description.nic
    if nic.kind != "gpu":
        return [fault for load in loads for fault in _not_known(description, load)]
    faults = []
    used: list[GpuSettings] = []
    for load in loads:
        if not isinstance(load, GpuWorkload):
            faults.append(f"{load.label}: {description.name} runs NFs with rate_kpps and gpu only")
            continue
        if not load.rate_kpps > 0:
            faults.append(f"{load.label}: rate_kpps {load.rate_kpps:g} is not above 0")
        faults += [f"{load.label}: {fault}" for fault in _settings(nic, load.gpu)]
        used.append(load.gpu)
    workers = description.workers or nic.cores
    if len(loads) > workers:
        faults.append(f"needs {len(loads)} workers, there are {workers}")
    return faults + _together(nic, used)


def has_rate(load: Load) -> bool:
    """Whether packets are offered to an NF at a rate, on a GPU or elsewhere."""
    return isinstance(load, GpuWorkload) or (isinstance(load, Workload) and not load.is_saturated)


def has_settings(load: Load) -> bool:
    """Whether an NF has a rate or cores, which a program that knows neither ignores."""
    workload = load.workload if isinstance(load, ConfiguredWorkload) else load
    return has_rate(load) or (isinstance(workload, Workload) and workload.cores > 0)


def _not_known(description: TestbedDescription, load: Load) -> list[str]:
    """What a testbed without a GPU does not know of a load."""
    on_gpu, known = isinstance(load, GpuWorkload), description.paced or not has_rate(load)
    faults = [] if known else [f"{load.label}: rate_kpps of NFs is not known to {description.name}"]
    return [*faults, f"{load.label}: {description.name} has no gpu"] if on_gpu else faults


def _settings(nic: NicModel, gpu: GpuSettings) -> list[str]:
    """What is wrong with the settings of one NF."""
    assert nic.sms and nic.executors_per_sm and nic.packets_per_executor  # a description without them is invalid
    faults = []
    if gpu.minibatches:
        faults += [
            f"minibatch on SM {minibatch.sm}: there are {nic.sms}, numbered from 0"
            for minibatch in gpu.minibatches
            if not 0 <= minibatch.sm < nic.sms
        ]
        faults += [f"two minibatches on SM {sm}" for sm in _find_repeated(part.sm for part in gpu.minibatches)]
        total = sum(minibatch.packets for minibatch in gpu.minibatches)
        if total != gpu.batch:
            faults.append(f"minibatches of {total} packets for a batch of {gpu.batch}")
        if gpu.scheduler is not None:
            faults.append("minibatches and a scheduler exclude each other")
    most = nic.sms * nic.executors_per_sm * nic.packets_per_executor
    if gpu.batch > most:
        faults.append(f"a batch of {gpu.batch} packets, the GPU takes {most}")
    return faults


def _together(nic: NicModel, used: Sequence[GpuSettings]) -> list[str]:
    """What is wrong with settings that are right one by one."""
    assert nic.executors_per_sm and nic.packets_per_executor
    faults = [f"order {order} is given twice" for order in _find_repeated(gpu.order for gpu in used)]
    if 0 < sum(gpu.order is None for gpu in used) < len(used):
        faults.append("order is given for some NFs only")
    modes = {"minibatches" if gpu.minibatches else f"scheduler {gpu.scheduler or 'spatial'}" for gpu in used}
    if len(modes) > 1:
        faults.append(f"{' and '.join(sorted(modes))} exclude each other")
    executors: defaultdict[int, int] = defaultdict(int)
    for gpu in used:
        for minibatch in gpu.minibatches:
            executors[minibatch.sm] += -(-minibatch.packets // nic.packets_per_executor)
    return faults + [
        f"SM {sm} needs {number} executors, it has {nic.executors_per_sm}"
        for sm, number in sorted(executors.items())
        if number > nic.executors_per_sm
    ]


def _find_repeated(values: Iterable[Hashable]) -> list[Hashable]:
    return [value for value, times in Counter(values).items() if times > 1 and value is not None]
