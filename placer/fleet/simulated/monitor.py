"""Measures NICs of a simulated production: with noise, outliers, lost readings, too little offered, and lies.

Every draw depends on the seed, the number of the event and the instance alone, so that compared fleets are measured
alike where they place alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from random import Random

from placer.fleet.events import Measure, MeasuredInstance
from placer.inputs.production import LiarTable, MonitorTable
from placer.model.fleet import Fleet
from placer.model.nic import Nic
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from profiles import Workload

LEAST_OFFERED = 0.5  # share of its capacity that an instance is offered at least
SURPLUS_RANGE = (1.1, 2.0)  # how many times its capacity an instance is offered that loses packets
OUTLIER_FACTORS = (1.5, 3.0)  # by which factor an outlier is wrong, up or down


class Monitor:
    """Measures NICs.

    `settings`, `liars`: how, and who reports false readings.
    """

    def __init__(self, settings: MonitorTable, liars: Sequence[LiarTable], truth: DriftingTruth, seed: int) -> None:
        self.settings = settings
        self.liars = tuple(liars)
        self.truth = truth
        self.seed = seed

    def measure(self, event: int, fleet: Fleet) -> Iterator[Measure]:
        """The measurements after an event of the trace; a NIC whose readings are all lost has none."""
        if event % self.settings.every or not len(fleet.nics):
            return
        nics = list(fleet.nics.values())
        chosen = Random(f"{self.seed}/nics/{event}").sample(nics, max(1, round(self.settings.share * len(nics))))
        for nic in chosen:
            readings = tuple(self._readings(event, nic))
            if readings:
                yield Measure(nic.id, self.settings.window_s, readings)

    def _readings(self, event: int, nic: Nic) -> Iterator[MeasuredInstance]:
        reached = self.truth.throughput(nic, event)
        for tenant in nic.tenants:
            draw = Random(f"{self.seed}/reading/{event}/{tenant.id}")
            lost, outlier, unsaturated = (100.0 * draw.random() < pct for pct in self._percentages())
            capacity = reached[tenant.workload] * exp(draw.gauss(0.0, self.settings.noise_pct / 100.0))
            surplus, share = draw.uniform(*SURPLUS_RANGE), draw.uniform(LEAST_OFFERED, 1.0)
            wrong = draw.uniform(*OUTLIER_FACTORS) ** draw.choice((-1, 1))
            lie = self._lie(tenant.id)
            if lost:
                continue
            if lie is not None:  # claims to have lost packets, so that its reading counts most
                yield MeasuredInstance(tenant.id, capacity * lie, capacity * lie * surplus)
            elif outlier:
                yield MeasuredInstance(tenant.id, capacity * wrong, capacity * wrong * surplus)
            elif unsaturated:
                yield MeasuredInstance(tenant.id, capacity * share, capacity * share)
            else:
                yield MeasuredInstance(tenant.id, capacity, capacity * surplus)

    def _percentages(self) -> tuple[float, float, float]:
        return self.settings.lost_pct, self.settings.outliers_pct, self.settings.unsaturated_pct

    def _lie(self, tenant: str) -> float | None:
        """The factor of the first table that names the tenant or draws it."""
        for number, liar in enumerate(self.liars):
            if liar.tenant == tenant:
                return liar.factor
            if liar.share is not None and Random(f"{self.seed}/liar/{number}/{tenant}").random() < liar.share:
                return liar.factor
        return None


# What NICs really do: a testbed's throughput, times the drift of each NF.


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

    `oracles`: per kind of NIC, the ground truth without drift. `drifts`: how it changes.
    """

    def __init__(self, oracles: Sequence[Oracle], drifts: Sequence[TrueDrift]) -> None:
        self.oracles = oracles
        self.drifts = tuple(drifts)
        self._turns = {event for drift in drifts for event in (drift.start, drift.end) if event is not None}

    def turns(self, event: int) -> bool:
        """Whether some NF changes at this event."""
        return event in self._turns

    def factor(self, nf: str, event: int) -> float:
        """How many times its throughput without drift the NF has."""
        product = 1.0
        for drift in self.drifts:
            if drift.nf == nf and drift.holds(event):
                product *= drift.factor
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
        for drift in self.drifts:
            if drift.nf == nf:
                yield drift.start
                if drift.end is not None:
                    yield drift.end
