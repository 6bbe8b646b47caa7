"""Drift of NFs: false alarms, and readings until a change is found, in simulated lives of a fleet.

Predictions err by a bias of the NF and by an error of each co-location, which stay; readings by noise. Co-locations and
tenants come and go.
"""

from collections.abc import Iterator
from math import exp
from random import Random
from statistics import median
from typing import Annotated, NamedTuple

import pandas as pd
import typer

from benches.bench import register
from placer.fleet.learning.drift import Drift, DriftDetector
from placer.fleet.learning.ledger import ProductionReading
from placer.model.oracle import co_location_of
from profiles import TrafficProfile, Workload

MODEL, KPPS, SPREAD, NOISE = "card", 1000.0, 0.05, 0.025
BIAS, TENANTS, PLACES = 0.02, 20, 12
NFS = ("acl", "flow-stats", "ip-router", "nat", "nids", "tunnel")
FOUND_WITHIN = 40

Lives = Annotated[int, typer.Option(min=1, help="Simulated lives per row.")]
Readings = Annotated[int, typer.Option(min=1, help="Readings of all NFs in a life without drift.")]
Seed = Annotated[int, typer.Option(help="Of the first life.")]


class Troubles(NamedTuple):
    """What is wrong with readings: the share of outliers, and of those that are lower bounds; how many times its
    throughput one tenant of each NF reports."""

    outliers: float = 0.0
    lower_bounds: float = 0.0
    lie: float = 1.0


CASES = {
    "none": Troubles(),
    "10 % outliers": Troubles(outliers=0.1),
    "half are lower bounds": Troubles(lower_bounds=0.5),
    "a tenant reports half": Troubles(lie=0.5),
    "all three": Troubles(0.1, 0.5, 0.5),
}


@register("drift")
def run(lives: Lives = 50, readings: Readings = 10_000, seed: Seed = 0) -> pd.DataFrame:
    """Per trouble with readings: false alarms per life without drift; and of lives in which an NF falls to 85 %, the
    capacity readings of the NF until that is found (median, 95th percentile), the share found within 40, the factor
    found and how many of its readings late the change is dated (medians)."""
    return pd.DataFrame([_row(name, troubles, range(seed, seed + lives), readings) for name, troubles in CASES.items()])


def _row(name: str, troubles: Troubles, seeds: range, readings: int) -> dict[str, object]:
    alarms = [sum(drift is not None for drift in _life(seed, troubles, readings)) for seed in seeds]
    found = [_delay(seed, troubles) for seed in seeds]
    delays = [count for count, _, _ in found]
    return {
        "troubles": name,
        "lives": len(seeds),
        "false_alarms_mean": sum(alarms) / len(alarms),
        "false_alarms_most": max(alarms),
        "readings_to_find": median(delays),
        "readings_p95": sorted(delays)[int(0.95 * (len(delays) - 1))],
        f"within_{FOUND_WITHIN}_pct": 100 * sum(one <= FOUND_WITHIN for one in delays) / len(delays),
        "factor": round(median(factor for _, factor, _ in found), 3),
        "since_late": median(late for _, _, late in found),
    }


def _life(seed: int, troubles: Troubles, readings: int) -> Iterator[Drift | None]:
    """A life without drift."""
    nfs = {nf: _Nf(nf, Random(f"{seed} {nf}"), troubles) for nf in NFS}
    detector, rng = DriftDetector(), Random(seed)
    for event in range(readings):
        yield detector.add(nfs[rng.choice(NFS)].reading(event, 1.0), KPPS, SPREAD)


def _delay(seed: int, troubles: Troubles, before: int = 300) -> tuple[int, float, int]:
    """Capacity readings after an NF fell to 85 % until that is found; the factor; how late the change is dated."""
    nf, detector = _Nf("nat", Random(f"{seed} falls"), troubles), DriftDetector()
    after = 0
    for event in range(before + 10_000):
        reading = nf.reading(event, 0.85 if event >= before else 1.0)
        after += reading.is_capacity and event >= before
        found = detector.add(reading, KPPS, SPREAD)
        if found is not None and event >= before:
            return after, found.beside, found.since - before
    return after, 1.0, 0


class _Nf:
    """Instances of an NF in co-locations that come and go."""

    def __init__(self, nf: str, rng: Random, troubles: Troubles) -> None:
        self._nf, self._rng, self._troubles = nf, rng, troubles
        self._bias = rng.gauss(0.0, BIAS)
        self._errors: dict[int, float] = {}
        self._first = 0

    def reading(self, event: int, factor: float) -> ProductionReading:
        """What one of them does now; they have so many times their throughput."""
        rng = self._rng
        self._first += rng.random() < 0.1
        place, tenant = self._first + rng.randrange(PLACES), rng.randrange(TENANTS)
        error = self._errors.setdefault(place, self._bias + rng.gauss(0.0, SPREAD))
        kpps = KPPS * factor * exp(error + rng.gauss(0.0, NOISE))
        if rng.random() < self._troubles.outliers:
            kpps *= rng.uniform(0.2, 2.0)
        if tenant == 0:
            kpps *= self._troubles.lie
        offered = None if rng.random() < self._troubles.lower_bounds else 10 * KPPS
        own, other = (Workload(nf, TrafficProfile(1000 + place, 1500, 0)) for nf in (self._nf, "other"))
        return ProductionReading(MODEL, co_location_of([own, other]), own, f"{self._nf} {tenant}", kpps, offered, event)
