"""A GPU, SLOs and what is admitted as JSON, for `placer verify` (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placer.gpu.device import GpuDevice
from placer.gpu.slo import LatencySlo

VERSION = 1
KIND = "admission"


def admission_certificate(
    device: GpuDevice, slos: Sequence[LatencySlo], answer: Mapping[str, object]
) -> dict[str, object]:
    """What a checker needs that shares no code with the methods: the GPU, the SLOs, and the answer with its bound.

    Parameters
    ----------
    answer
        As `placer admit --format json` prints it.
    """
    return {
        "certificate": VERSION,
        "kind": KIND,
        "device": written_device(device),
        "slos": [written_slo(slo) for slo in slos],
        "answer": dict(answer),
    }


def written_device(device: GpuDevice) -> dict[str, Any]:
    """DEVICE."""
    return {
        "sms": device.sms,
        "executors_per_sm": device.executors_per_sm,
        "packets_per_executor": device.packets_per_executor,
        "workers": device.workers,
        "arbitration": device.arbitration.value,
        "transfer_us": {name: list(line) for name, line in device.transfer_us.items()},
        "nfs": {
            name: {"class": nf.transfer_class, "pre_post_us": nf.pre_post_us, "kernel_us": list(nf.kernel_us)}
            for name, nf in device.nfs.items()
        },
        "sharing_us": {name: dict(others) for name, others in device.sharing_us.items()},
    }


def written_slo(slo: LatencySlo) -> dict[str, Any]:
    """SLO."""
    written: dict[str, Any] = {"id": slo.id, "nf": slo.nf, "rate_kpps": slo.rate_kpps, "latency_us": slo.latency_us}
    return written if slo.batch is None else written | {"batch": slo.batch}
