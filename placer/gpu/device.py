"""A GPU that serves network functions: its size, and the times of its stages (paper 003, section V-A)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite


class Arbitration(Enum):
    """How batches share the bus. Once each, in their order, or recurring every period, by fixed priorities without
    preemption."""

    ONE_SHOT = "one-shot"
    SPORADIC = "sporadic"


@dataclass(frozen=True)
class GpuNf:
    """An NF on a GPU. `transfer_class`: what it moves over the bus; a key of `GpuDevice.transfer_us`. `pre_post_us`: of
    processing a batch on its CPU core, before and after the GPU. `kernel_us`: per executor of a minibatch, and
    fixed."""

    transfer_class: str
    pre_post_us: float
    kernel_us: tuple[float, float]


@dataclass(frozen=True)
class GpuDevice:
    """A GPU, its bus, and the CPU cores that serve it.

    `sms`: streaming multiprocessors (SMs). `executors_per_sm`: slots of an SM. `packets_per_executor`: packets that one
    executor processes at once. `workers`: CPU cores; every admitted SLO takes one. `transfer_us`: by class, per packet
    of a batch and fixed. `sharing_us`: by NF and other NF, the sharing penalty `beta`: how much longer the NF's kernel
    takes beside the other. Absent is 0. Raises `ValueError` when a time is negative or not finite, a size is below 1,
    or an NF has an unknown class."""

    sms: int
    executors_per_sm: int
    packets_per_executor: int
    workers: int
    arbitration: Arbitration
    transfer_us: Mapping[str, tuple[float, float]]
    nfs: Mapping[str, GpuNf]
    sharing_us: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("sms", "executors_per_sm", "packets_per_executor"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, below 1")
        if self.workers < 0:
            raise ValueError(f"workers is {self.workers}, below 0")
        for name, nf in self.nfs.items():
            if nf.transfer_class not in self.transfer_us:
                raise ValueError(f"{name} has class {nf.transfer_class}, which transfer_us does not have")
        for what, time_us in self._times():
            if not (isfinite(time_us) and time_us >= 0):
                raise ValueError(f"{what} is {time_us}, not a time")

    def _times(self) -> Iterable[tuple[str, float]]:
        yield from ((f"transfer_us of {name}", time) for name, times in self.transfer_us.items() for time in times)
        for name, nf in self.nfs.items():
            yield f"pre_post_us of {name}", nf.pre_post_us
            yield from ((f"kernel_us of {name}", time) for time in nf.kernel_us)
        for name, by_other in self.sharing_us.items():
            yield from ((f"sharing_us of {name} beside {other}", time) for other, time in by_other.items())

    def batching_us(self, batch: int, rate_kpps: float) -> float:
        """How long the first packet of a batch waits for the last."""
        return 1000.0 * (batch - 1) / rate_kpps

    def period_us(self, batch: int, rate_kpps: float) -> float:
        """The time between two batches."""
        return 1000.0 * batch / rate_kpps

    def transfer(self, nf: str, batch: int) -> float:
        """The time of a batch on the bus, us."""
        per_packet, fixed = self.transfer_us[self.nfs[nf].transfer_class]
        return per_packet * batch + fixed

    def executors(self, packets: int) -> int:
        """Executors that a minibatch occupies."""
        return -(-packets // self.packets_per_executor)

    def kernel(self, nf: str, packets: int) -> float:
        """The time of a minibatch on an SM of its own, us."""
        per_executor, fixed = self.nfs[nf].kernel_us
        return per_executor * self.executors(packets) + fixed

    def penalty(self, nf: str, others: Iterable[str]) -> float:
        """How much longer the kernel takes beside the others on its SM, us: the largest sharing penalty."""
        by_other = self.sharing_us.get(nf, {})
        return max((by_other.get(other, 0.0) for other in others), default=0.0)
