"""The result of admission: what is admitted and how it runs, what is rejected and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

REJECTION_CAUSES = ("batching", "pcie", "executors", "kernel", "workers")  # why an SLO is rejected


@dataclass(frozen=True)
class SmShare:
    """A minibatch: the part of a batch that one SM processes."""

    sm: int
    packets: int


@dataclass(frozen=True)
class Admitted:
    """An admitted SLO. `order`: of its transfers: smaller first. `minibatches`: on distinct SMs; their packets are
    those of the batch."""

    slo: "LatencySlo"
    batch: int
    order: int
    minibatches: tuple[SmShare, ...]


@dataclass(frozen=True)
class Rejected:
    """A rejected SLO, with one of `REJECTION_CAUSES`."""

    slo: "LatencySlo"
    cause: str


@dataclass(frozen=True)
class Admission:
    """Which SLOs a GPU admits. `bound`: no plan admits more SLOs. `proven`: whether as many as the bound are admitted.
    `seconds`: of deciding."""

    admitted: tuple[Admitted, ...]
    rejected: tuple[Rejected, ...]
    bound: int
    proven: bool
    seconds: float


# A latency SLO of a network function on a GPU.


@dataclass(frozen=True)
class LatencySlo:
    """A promise: every packet of an NF at the offered rate leaves within the latency. `batch`: the packets of a batch
    where they are fixed; None where admission chooses them."""

    id: str
    nf: str
    rate_kpps: float
    latency_us: float
    batch: int | None = None


# What is known of the latency of whole plans, by a model of the server or by the server itself.


class PlanLatencies(Protocol):
    """Says how long packets take when a whole plan runs."""

    def p99_us(self, plan: Sequence[Admitted]) -> Sequence[float]:
        """The latency that 99 of 100 packets of each SLO keep, us; infinite where the server does not carry it."""
