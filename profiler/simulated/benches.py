"""The contention benches: one core each, one resource each (Tomur, section 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from profiler.simulated.card import Card
from profiler.simulated.demand import PROGRAM_BYTES, LoadDemand, Touched, filtered

CLOSED_LOOP_MPPS = 100.0
"""Packets/us on offer when a bench runs as fast as it goes."""


@dataclass(frozen=True, slots=True)
class BenchSpec:
    """A bench with the range of each parameter and the accelerator it loads, None for the memory."""

    name: str
    parameters: Mapping[str, tuple[float, float]]
    demand: Callable[[Mapping[str, float], Card], LoadDemand]
    engine: str | None = None


def mem_bench(parameters: Mapping[str, float], card: Card) -> LoadDemand:
    """Adds one to a word of one line after another in a scattered order: a read and, every other time, a write.

    The order is known in advance, so many accesses are outstanding at once: 16 reproduce the 175 million reads/s that
    the bench reached on a BlueField-2 with an array larger than the cache.
    """
    size = parameters["wss_mb"] * 1e6
    instructions = 6.0
    return LoadDemand(
        cores=1,
        instructions=instructions,
        compute_ns=instructions / 2.2 / card.clock_ghz,
        accesses=filtered([Touched(size, 1.5, 1 / 3, 24.0)], 1, card),
        offered=parameters["access_mops"],
        dma_bytes=0.0,
        queues=(0,) * len(card.engines),
        service_us=(0.0,) * len(card.engines),
        serial=False,
        wss_mb=(size + PROGRAM_BYTES) / 1e6,
    )


def _engine_bench(engine: str) -> Callable[[Mapping[str, float], Card], LoadDemand]:
    def demand(parameters: Mapping[str, float], card: Card) -> LoadDemand:
        """Submits payloads that lie in the L2 cache to one queue of the engine."""
        instructions = 700.0
        rate = parameters["rate_kpps"] / 1e3
        service = card.engines[engine].service_us(parameters["packet_size"], parameters.get("mtbr", 0.0))
        return LoadDemand(
            cores=1,
            instructions=instructions,
            compute_ns=instructions / 1.4 / card.clock_ghz,
            accesses=filtered([Touched(0.3e6, 4.0, 0.3, 2.0)], 1, card),
            offered=rate if rate > 0 else CLOSED_LOOP_MPPS,
            dma_bytes=0.0,
            queues=tuple(int(name == engine) for name in card.engines),
            service_us=tuple(service if name == engine else 0.0 for name in card.engines),
            serial=False,
            wss_mb=(0.3e6 + PROGRAM_BYTES) / 1e6,
        )

    return demand


BENCHES: tuple[BenchSpec, ...] = (
    BenchSpec("mem-bench", {"wss_mb": (0.1, 24), "access_mops": (1, 180)}, mem_bench),
    BenchSpec(
        "regex-bench",
        {"mtbr": (0, 1100), "rate_kpps": (0, 4000), "packet_size": (64, 1500)},
        _engine_bench("regex"),
        "regex",
    ),
    BenchSpec(
        "compression-bench",
        {"rate_kpps": (0, 1500), "packet_size": (64, 1500)},
        _engine_bench("compression"),
        "compression",
    ),
)
