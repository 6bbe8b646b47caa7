"""Decisions replayed: how many SLAs placement violates per violation that is expected, on measured co-locations.

Placement chooses co-locations whose predictions just suffice, so it selects predictions that are too high, and the
errors of a few co-locations are repeated on many NICs. How much that matters cannot be seen from errors of all
predictions. So arrivals are placed as if only measured co-locations could share a NIC, each of them predicted from the
others, and violations are counted by the measurements: risk is controlled by the decisions that it leads to (conformal
risk control: Angelopoulos et al., ICLR 2024; learn then test: Angelopoulos et al., Annals of Applied Statistics 19,
2025). Their assumption is exchangeability. Here it is that co-locations which were not measured err, relative to their
spread, as measured ones do when they are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet, Nic
from placer.model.offered import plain_of
from placer.model.oracle import CoLocation, Oracle
from placer.model.plan import Plan
from placer.model.replay import replay_plan
from placer.model.sla import Sla
from predictor import Predictor
from predictor.contention.left_out import LeftOutCoLocation
from profiles import Workload

FEWEST = 50
"""Measured co-locations from which on decisions are replayed."""
REPLAYED = 500
"""Arrivals of a replay, at most."""
LEAST_REPLAYED, REPLAYED_PER_ARRIVAL = 200, 5
"""Arrivals of a replay, at least, and per arrival of a short trace."""
LOOSEST = 0.999
"""The largest drop of an SLA."""


class Replayed(NamedTuple):
    """SLA violations in replayed plans.

    Parameters
    ----------
    violations
        By the measurements.
    expected
        By how far predictions and measurements are expected to err.
    of_predictions
        By how far predictions are expected to err.
    """

    violations: float = 0.0
    expected: float = 0.0
    of_predictions: float = 0.0


class LeftOutOracle(Oracle):
    """Measured co-locations, each as predicted from the others; no other can share a NIC.

    Parameters
    ----------
    predictor
        Predicts throughput alone.
    left_out
        The measured co-locations.
    risk
        The share of instances that may be expected to fall short of the answers.
    """

    def __init__(self, predictor: Predictor, left_out: Mapping[CoLocation, LeftOutCoLocation], risk: float) -> None:
        super().__init__()
        self._predictor, self._left_out, self._risk = predictor, left_out, risk

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        alone = self._predictor.solo([one for (one, *_) in co_locations])
        return [self._answer(key, float(solo)) for key, solo in zip(co_locations, alone, strict=True)]

    def _answer(self, co_location: CoLocation, solo: float) -> list[float]:
        if len(co_location) == 1:
            return [solo]
        known = self._left_out.get(co_location)
        return known.throughput(self._risk) if known else [0.0] * len(co_location)


def left_out_of(catalogue: Catalogue, predictor: str) -> list[Mapping[CoLocation, LeftOutCoLocation]]:
    """Per kind of NIC its measured co-locations; empty where some kind has too few to replay decisions."""
    if catalogue.gpus:
        return []
    found = [models.predictors[predictor].left_out(models.default_traffic) for models in catalogue.models]
    return found if all(len(of_kind) >= FEWEST for of_kind in found) else []


def replayed_arrivals(catalogue: Catalogue, arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Arrivals of the same NFs and SLAs at default traffic, none of which leaves; repeated where they are few."""
    models = catalogue.models[0]
    known = [one for one in arrivals if one.workload.nf in models.nfs][:REPLAYED]
    if not known:
        return []
    solo = next(iter(models.predictors.values())).solo([plain_of(one.workload) for one in known]).tolist()
    drops = [1.0 - one.sla.required_kpps(kpps) / kpps for one, kpps in zip(known, solo, strict=True)]
    count = min(max(REPLAYED_PER_ARRIVAL * len(arrivals), LEAST_REPLAYED), REPLAYED)
    order = (np.random.default_rng(0).permutation(count) % len(known)).tolist()
    return [
        Arrival(
            str(number),
            float(number),
            Workload(known[at].workload.nf, models.default_traffic),
            Sla(max_drop=min(max(drops[at], 0.0), LOOSEST)),
        )
        for number, at in enumerate(order)
    ]


def judged(plan: Plan, catalogue: Catalogue, predictor: str) -> Replayed:
    """The violations in a plan that was made by `LeftOutOracle`."""
    fleet = Fleet(catalogue.kinds)
    nics: dict[int, Nic] = {}
    for _, changed in replay_plan(plan, fleet):
        nics.update((nic.number, nic) for nic in changed)
    left_out = left_out_of(catalogue, predictor)
    violations = expected = of_predictions = 0.0
    for nic in nics.values():
        tenants = sorted(nic.tenants, key=lambda tenant: tenant.workload)
        if len(tenants) < 2:
            continue
        models = catalogue.models[nic.kind.index].predictors[predictor]
        known = left_out[nic.kind.index][tuple(tenant.workload for tenant in tenants)]
        solo = models.solo([tenant.workload for tenant in tenants])
        for member, tenant in enumerate(tenants):
            required = tenant.sla.required_kpps(float(solo[member]))
            violations += float(known.measured[member] < required)
            truly, measured = known.shortfall(member, required)
            of_predictions, expected = of_predictions + truly, expected + measured
    return Replayed(violations, expected, of_predictions)
