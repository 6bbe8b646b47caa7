"""A toy world for tests of the placer: NFs a to d, whose contention is told by a table that fits on a page."""

from __future__ import annotations

from collections.abc import Sequence

from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import NicKind
from placer.model.oracle import CoLocation, Oracle
from placer.model.sla import Sla
from profiles import TrafficProfile, Workload

SOLO = {"a": 100.0, "b": 200.0, "c": 400.0, "d": 800.0}
CORES = {"a": 1, "b": 2, "c": 2, "d": 3}
PRESSURE = {"a": 0.02, "b": 0.05, "c": 0.08, "d": 0.03}
SENSITIVITY = {"a": 1.0, "b": 0.5, "c": 2.0, "d": 1.0}
TRAFFIC = TrafficProfile(1000, 1500, 0)


class ToyOracle(Oracle):
    """Everybody loses the pressure of all others times their own sensitivity, so company never helps."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__()
        self.speed = speed
        self.questions = 0

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        self.questions += len(co_locations)
        answers = []
        for co_location in co_locations:
            total = sum(PRESSURE[workload.nf] for workload in co_location)
            answers.append(
                [
                    self.speed * SOLO[w.nf] * max(0.01, 1 - SENSITIVITY[w.nf] * (total - PRESSURE[w.nf]))
                    for w in co_location
                ]
            )
        return answers


class ToyCatalogue(Catalogue):
    """A catalogue whose predictors, whatever their name, are toy oracles, and which tells the truth by them, too."""

    def oracles(self, predictor: str) -> tuple[Oracle, ...]:
        return tuple(ToyOracle() for _ in self.kinds)

    def truth(self) -> tuple[Oracle, ...]:
        return tuple(ToyOracle() for _ in self.kinds)

    def shares(self, kind: NicKind, workload: Workload) -> dict[str, float]:
        return {"cores": CORES[workload.nf] / kind.cores, "cache": 3 * PRESSURE[workload.nf]}


def catalogue(*kinds: tuple[int | None, float]) -> ToyCatalogue:
    """A catalogue of 8-core NICs, one kind per (count, cost); one kind without limit for none."""
    made = [NicKind(i, f"toy-{i}", 8, CORES, count, cost) for i, (count, cost) in enumerate(kinds or [(None, 1.0)])]
    return ToyCatalogue(tuple(made), (), ())


def arrival(identity: str, time: float, nf: str, drop: float = 0.1, departure: float | None = None) -> Arrival:
    """An arrival at toy traffic."""
    return Arrival(identity, time, Workload(nf, TRAFFIC), Sla(max_drop=drop), departure)
