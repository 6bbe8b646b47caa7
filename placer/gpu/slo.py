"""A latency SLO of a network function on a GPU."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LatencySlo:
    """A promise: every packet of an NF at the offered rate leaves within the latency.

    Parameters
    ----------
    batch
        The packets of a batch where they are fixed; None where admission chooses them.
    """

    id: str
    nf: str
    rate_kpps: float
    latency_us: float
    batch: int | None = None
