"""Workloads of the simulated GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from profiles import GpuSettings, PacedWorkload, TrafficProfile, Workload

TRAFFIC = TrafficProfile(16_000, 850, 100)
FOUR = ("IPRouter", "ACL", "NIDS", "IPSec")


def on_sms(
    nf: str,
    minibatches: Sequence[tuple[int, int]] = ((0, 256),),
    *,
    order: int | None = 0,
    rate_kpps: float = 294.0,
    flush_us: float | None = None,
    traffic: TrafficProfile = TRAFFIC,
) -> PacedWorkload:
    """The NF with these (SM, packets)."""
    settings = GpuSettings.of(minibatches, order=order, flush_us=flush_us)
    return PacedWorkload(Workload(nf, traffic), rate_kpps, settings)


def scheduled(nf: str, scheduler: str, batch: int = 256, traffic: TrafficProfile = TRAFFIC) -> PacedWorkload:
    """The NF at 2 Gb/s, as the scheduler of the GPU places it."""
    rate_kpps = 2e6 / 8 / traffic.packet_size
    return PacedWorkload(Workload(nf, traffic), rate_kpps, GpuSettings(batch, None, (), None, scheduler))


def crowd(number: int, *, sharers: int = 3, ordered: bool = True, rate_kpps: float = 294.0) -> list[PacedWorkload]:
    """So many NFs of all four kinds, some of which share SMs; later ones have smaller orders."""
    return [
        on_sms(
            FOUR[at % 4],
            [(at // sharers, 200), (at // sharers + 1, 56)],
            order=number - at if ordered else None,
            rate_kpps=rate_kpps,
        )
        for at in range(number)
    ]
