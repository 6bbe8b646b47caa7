"""Methods of admission to a GPU: from a device and SLOs to what is admitted. Each file in `methods/` registers one
function under its own name. Another package adds its own by an entry point of the group `placer.gpu_methods`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from profiles.registry import Registry

if TYPE_CHECKING:
    from placer.gpu.device import GpuDevice
    from placer.gpu.plan import Admission, LatencySlo, PlanLatencies


@dataclass(frozen=True)
class MethodSetting:
    """What limits a method. `time_limit_s`: of methods that search; then they return the best they found. `latencies`:
    of whole plans, for methods that ask models; None where there are none."""

    seed: int = 0
    time_limit_s: float = 1.0
    latencies: PlanLatencies | None = None


class AdmissionMethod(Protocol):
    """A way to admit SLOs."""

    def __call__(self, device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
        """What is admitted and rejected. The ids of the SLOs differ, and the device has their NFs."""


METHODS: Registry[AdmissionMethod] = Registry(
    "method of admission",
    room="placer.gpu.methods",
    group="placer.gpu_methods",
    option="--method",
    first=("exact", "grus"),
)
"""Every method by name."""


def register(name: str) -> Callable[[AdmissionMethod], AdmissionMethod]:
    """A decorator that makes a method known."""
    return METHODS.register(name)
