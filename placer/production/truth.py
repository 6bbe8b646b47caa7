"""What NICs really do: a testbed's throughput, times the drift of each NF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placer.model.fleet import Nic, NicKind
from placer.model.oracle import Oracle
from profiles import Workload


@dataclass(frozen=True)
class TrueDrift:
    """An NF has so many times its throughput from an event on, and up to before another; None for ever."""

    nf: str
    start: int
    end: int | None
    factor: float

    def holds(self, event: int) -> bool:
        """Whether it has begun by this event and not ended."""
        return self.start <= event and (self.end is None or event < self.end)


class DriftingTruth:
    """The ground truth over the events of a trace.

    Parameters
    ----------
    oracles
        Per kind of NIC, the ground truth without drift.
    drifts
        How it changes.
    """

    def __init__(self, oracles: Sequence[Oracle], drifts: Sequence[TrueDrift]) -> None:
        self.oracles = oracles
        self.drifts = tuple(drifts)
        self._turns = {event for one in drifts for event in (one.start, one.end) if event is not None}

    def turns(self, event: int) -> bool:
        """Whether some NF changes at this event."""
        return event in self._turns

    def factor(self, nf: str, event: int) -> float:
        """How many times its throughput without drift the NF has."""
        product = 1.0
        for one in self.drifts:
            if one.nf == nf and one.holds(event):
                product *= one.factor
        return product

    def last_turn(self, nf: str, event: int) -> int | None:
        """The latest event by now at which the NF changed; None where it never did."""
        return max((turn for turn in self._turns_of(nf) if turn <= event), default=None)

    def solo(self, kind: NicKind, workload: Workload, event: int) -> float:
        """Throughput (kpps) of a workload alone on a NIC of the kind."""
        return self.oracles[kind.index].solo(workload) * self.factor(workload.nf, event)

    def throughput(self, nic: Nic, event: int) -> dict[Workload, float]:
        """Throughput (kpps) of each workload on the NIC; of equal ones the slowest counts."""
        found = self.oracles[nic.kind.index].by_workload(nic.co_location)
        return {workload: kpps * self.factor(workload.nf, event) for workload, kpps in found.items()}

    def _turns_of(self, nf: str) -> Iterator[int]:
        for one in self.drifts:
            if one.nf == nf:
                yield one.start
                if one.end is not None:
                    yield one.end
