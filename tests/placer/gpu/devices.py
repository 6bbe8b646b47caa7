"""Small devices and SLOs, worked by hand."""

from __future__ import annotations

from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.plan import LatencySlo


def small_device(
    *,
    sms: int = 2,
    executors: int = 2,
    workers: int = 10,
    arbitration: Arbitration = Arbitration.ONE_SHOT,
    transfer_us: tuple[float, float] = (0.0, 10.0),
    kernel_us: tuple[float, float] = (0.0, 20.0),
    pre_post_us: float = 5.0,
    beta_us: float = 0.0,
) -> GpuDevice:
    """A GPU with one NF, `ids`, ten packets per executor, and equal penalties."""
    return GpuDevice(
        sms, executors, 10, workers, arbitration, {"payload": transfer_us},
        {"ids": GpuNf("payload", pre_post_us, kernel_us)}, {"ids": {"ids": beta_us}},
    )  # fmt: skip


def slos_of(*latencies_us: float, rate_kpps: float = 10.0, batch: int | None = None) -> list[LatencySlo]:
    """An SLO of `ids` for each latency: a, b, c, ..."""
    return [LatencySlo("abcdefghij"[k], "ids", rate_kpps, time, batch) for k, time in enumerate(latencies_us)]
