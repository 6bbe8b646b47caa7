"""Plans: where a strategy put every arrival."""

from __future__ import annotations

from dataclasses import dataclass

from placer.model.arrival import Arrival
from placer.model.fleet import NicKind


@dataclass(frozen=True, slots=True)
class Placement:
    """One arrival and its NIC; no NIC means that it was rejected. Not every strategy gives a reason."""

    arrival: Arrival
    nic: str | None = None
    kind: NicKind | None = None
    reason: str = ""


@dataclass(frozen=True)
class Plan:
    """What a strategy decided for a trace.

    Parameters
    ----------
    strategy
        Its name.
    predictor
        The predictor it used; None for strategies that use none.
    placements
        One per arrival, in order of arrival.
    seconds
        Time for all decisions.
    risk
        The share of cases that fall short of the predictions it used; None where it used none, or the median.
    """

    strategy: str
    predictor: str | None
    placements: tuple[Placement, ...]
    seconds: float
    risk: float | None = None

    @property
    def placed(self) -> list[Placement]:
        """The placements that have a NIC."""
        return [placement for placement in self.placements if placement.nic is not None]

    @property
    def rejected(self) -> int:
        """How many arrivals have no NIC."""
        return len(self.placements) - len(self.placed)
