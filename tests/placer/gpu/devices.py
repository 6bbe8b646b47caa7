"""Small devices and SLOs, worked by hand, and those of the random instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.slo import LatencySlo


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


def device_of(written: Mapping[str, Any]) -> GpuDevice:
    """A DEVICE of CONTRACTS.md, section 10."""
    return GpuDevice(
        written["sms"],
        written["executors_per_sm"],
        written["packets_per_executor"],
        written["workers"],
        Arbitration(written["arbitration"]),
        {name: (times[0], times[1]) for name, times in written["transfer_us"].items()},
        {
            name: GpuNf(nf["class"], nf["pre_post_us"], (nf["kernel_us"][0], nf["kernel_us"][1]))
            for name, nf in written["nfs"].items()
        },
        written.get("sharing_us", {}),
    )


def written_slos(written: Sequence[Mapping[str, Any]]) -> list[LatencySlo]:
    """SLOs of CONTRACTS.md, section 10."""
    return [LatencySlo(one["id"], one["nf"], one["rate_kpps"], one["latency_us"], one.get("batch")) for one in written]
