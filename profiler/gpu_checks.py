"""What a testbed checks of rates and GPU settings before it runs a request."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence

from profiles import GpuSettings, Load, NicModel, PacedWorkload, TestbedDescription


def gpu_refusals(description: TestbedDescription, loads: Sequence[Load]) -> list[str]:
    """Why a testbed of this description cannot run `loads` at their rates and on its GPU; empty when it can."""
    nic = description.nic
    if nic.kind != "gpu":
        return [fault for load in loads if isinstance(load, PacedWorkload) for fault in _not_known(description, load)]
    faults = []
    used: list[GpuSettings] = []
    for load in loads:
        if not isinstance(load, PacedWorkload) or load.gpu is None:
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


def _not_known(description: TestbedDescription, load: PacedWorkload) -> list[str]:
    """What a testbed without a GPU does not know of a load."""
    faults = [] if description.paced else [f"{load.label}: rate_kpps of NFs is not known to {description.name}"]
    return faults if load.gpu is None else [*faults, f"{load.label}: {description.name} has no gpu"]


def _settings(nic: NicModel, gpu: GpuSettings) -> list[str]:
    """What is wrong with the settings of one NF."""
    assert nic.sms and nic.executors_per_sm and nic.packets_per_executor  # a description without them is invalid
    faults = []
    if gpu.minibatches:
        faults += [
            f"minibatch on SM {one.sm}: there are {nic.sms}, numbered from 0"
            for one in gpu.minibatches
            if not 0 <= one.sm < nic.sms
        ]
        faults += [f"two minibatches on SM {sm}" for sm in _repeated(one.sm for one in gpu.minibatches)]
        total = sum(one.packets for one in gpu.minibatches)
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
    faults = [f"order {order} is given twice" for order in _repeated(gpu.order for gpu in used)]
    if 0 < sum(gpu.order is None for gpu in used) < len(used):
        faults.append("order is given for some NFs only")
    modes = {"minibatches" if gpu.minibatches else f"scheduler {gpu.scheduler or 'spatial'}" for gpu in used}
    if len(modes) > 1:
        faults.append(f"{' and '.join(sorted(modes))} exclude each other")
    executors: defaultdict[int, int] = defaultdict(int)
    for gpu in used:
        for one in gpu.minibatches:
            executors[one.sm] += -(-one.packets // nic.packets_per_executor)
    return faults + [
        f"SM {sm} needs {number} executors, it has {nic.executors_per_sm}"
        for sm, number in sorted(executors.items())
        if number > nic.executors_per_sm
    ]


def _repeated(values: Iterable[Hashable]) -> list[Hashable]:
    return [value for value, times in Counter(values).items() if times > 1 and value is not None]
