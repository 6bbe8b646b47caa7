"""Measures NICs of a simulated production: with noise, outliers, lost readings, too little offered, and lies.

Every draw depends on the seed, the number of the event and the instance alone, so that compared fleets are measured
alike where they place alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp
from random import Random

from placer.inputs.production import LiarTable, MonitorTable
from placer.model.fleet import Fleet, Nic
from placer.online.events import Measure, MeasuredInstance
from placer.production.truth import DriftingTruth

LEAST_OFFERED = 0.5
"""Share of its capacity that an instance is offered at least."""
SURPLUS = (1.1, 2.0)
"""How many times its capacity an instance is offered that loses packets."""
WRONG = (1.5, 3.0)
"""By which factor an outlier is wrong, up or down."""


class Monitor:
    """Measures NICs.

    Parameters
    ----------
    settings, liars
        How, and who reports false readings.
    truth
        What NICs really do.
    seed
        Same seed, same readings.
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
            surplus, share = draw.uniform(*SURPLUS), draw.uniform(LEAST_OFFERED, 1.0)
            wrong = draw.uniform(*WRONG) ** draw.choice((-1, 1))
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
