"""The result of admission: what is admitted and how it runs, what is rejected and why."""

from __future__ import annotations

from dataclasses import dataclass

from placer.gpu.slo import LatencySlo

CAUSES = ("batching", "pcie", "executors", "kernel", "workers")
"""Why an SLO is rejected."""


@dataclass(frozen=True)
class SmShare:
    """A minibatch: the part of a batch that one SM processes."""

    sm: int
    packets: int


@dataclass(frozen=True)
class Admitted:
    """An admitted SLO.

    Parameters
    ----------
    order
        Of its transfers: smaller first.
    minibatches
        On distinct SMs; their packets are those of the batch.
    """

    slo: LatencySlo
    batch: int
    order: int
    minibatches: tuple[SmShare, ...]


@dataclass(frozen=True)
class Rejected:
    """A rejected SLO, with one of `CAUSES`."""

    slo: LatencySlo
    cause: str


@dataclass(frozen=True)
class Admission:
    """Which SLOs a GPU admits.

    Parameters
    ----------
    bound
        No plan admits more SLOs.
    proven
        Whether as many as the bound are admitted.
    seconds
        Of deciding.
    """

    admitted: tuple[Admitted, ...]
    rejected: tuple[Rejected, ...]
    bound: int
    proven: bool
    seconds: float
