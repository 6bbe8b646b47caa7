"""Predicted: SLOs come one by one, admitted where the predicted p99 of the whole plan keeps every promise."""

from __future__ import annotations

import time
from collections.abc import Sequence

from placer.gpu.device import GpuDevice
from placer.gpu.plan import Admission
from placer.gpu.plan_search import admit_whole_plans
from placer.gpu.registry import MethodSetting, register
from placer.gpu.slo import LatencySlo
from profiles import InputError


@register("predicted")
def predicted(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What is admitted by models of the server; the bound is that of workers alone.

    Raises
    ------
    InputError
        Without models.
    """
    if setting.latencies is None:
        hint = "`placer train` writes them from the profile of a GPU"
        raise InputError.of("--models", "is missing: --method predicted admits by models", hint=hint)
    begun = time.perf_counter()
    admitted, rejected = admit_whole_plans(device, slos, setting.latencies)
    bound = min(len(slos), device.workers)
    return Admission(admitted, rejected, bound, len(admitted) == bound, time.perf_counter() - begun)
