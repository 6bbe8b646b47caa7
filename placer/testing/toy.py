"""A toy world that can be checked by hand: NFs a to d, whose contention is a table that fits on a page."""

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
    """An NF loses the sum of its neighbours' pressures, times its own sensitivity; a neighbour never helps."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__()
        self.speed = speed
        self.queries = 0

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        self.queries += len(co_locations)
        answers = []
        for co_location in co_locations:
            total = sum(PRESSURE[workload.nf] for workload in co_location)
            drops = [SENSITIVITY[one.nf] * (total - PRESSURE[one.nf]) for one in co_location]
            shares = [max(0.01, 1 - drop) for drop in drops]
            answers.append([self.speed * SOLO[one.nf] * share for one, share in zip(co_location, shares, strict=True)])
        return answers


class ToyCatalogue(Catalogue):
    """A catalogue whose predictors and ground truth are toy oracles, whatever the predictor's name."""

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
