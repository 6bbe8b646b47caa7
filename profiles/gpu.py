"""How a network function runs on a GPU: its batches, its turn on the bus, and its minibatches (Grus, section IV)."""

from collections.abc import Sequence
from dataclasses import dataclass

GPU_SCHEDULERS = ("temporal", "spatial")
"""How a GPU without executors runs kernels: one at a time, or side by side while there is room."""


@dataclass(frozen=True, slots=True, order=True)
class Minibatch:
    """The part of each batch that one streaming multiprocessor (SM) processes; SMs are numbered from 0."""

    sm: int
    packets: int


@dataclass(frozen=True, slots=True, order=True)
class GpuSettings:
    """How one NF uses a GPU."""

    batch: int  # packets that its worker collects before it sends them
    order: int | None  # its turn on the bus to the GPU, smaller first; None where the bus serves batches as they come
    minibatches: tuple[Minibatch, ...] = ()
    """How each batch is split over the SMs; empty where the scheduler of the GPU places its threads."""
    flush_us: float | None = None
    """The worker sends fewer packets than a batch when the first of them has waited this long; None: never."""
    scheduler: str | None = None  # of `GPU_SCHEDULERS`; only without minibatches, where None is `spatial`

    @classmethod
    def of(
        cls, minibatches: Sequence[tuple[int, int]], *, order: int | None = None, flush_us: float | None = None
    ) -> "GpuSettings":
        """The settings with these (SM, packets); the batch is the sum of their packets."""
        return cls(
            sum(packets for _, packets in minibatches), order, tuple(Minibatch(*m) for m in minibatches), flush_us
        )

    def as_request(self) -> dict[str, object]:
        """The settings as the testbed protocol writes them; only what is set."""
        written: dict[str, object] = {"batch": self.batch}
        optional = {"order": self.order, "flush_us": self.flush_us, "scheduler": self.scheduler}
        written |= {name: value for name, value in optional.items() if value is not None}
        if self.minibatches:
            written["minibatches"] = [{"sm": part.sm, "packets": part.packets} for part in self.minibatches]
        return written
