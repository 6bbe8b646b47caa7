"""The outlook: what the room that is left on a NIC is worth, to those who are likely to come.

First fit fills a NIC with whom it happens to meet, and tight SLAs end up where only they were in the way. Which room is
scarce is told by prices. The arrivals to come are taken to be like the tenants present; the pattern program of such
arrivals, relaxed to fractions of NICs, has a dual price for every slot (workload, drop). A NIC then is worth the most
that its tenants leave to be earned: the best pattern that contains them and breaks none of their SLAs, at the prices of
its other slots. An empty NIC is worth its cost. The arrival goes where it takes least of that away.

The prices of one forecast are too sharp where patterns tie, so they are averaged over resampled forecasts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from placer.fleet import NicKind, Tenant
from placer.oracle import Company, Oracle
from profiles import Workload

Floats = NDArray[np.float64]

MOST_PATTERNS = 4_000
FORECASTS = 48
ARRIVALS_AHEAD = 30
THRESHOLDS = 16
NOWHERE = -np.inf


@dataclass(frozen=True)
class Outlook:
    """Prices of slots on one kind of NIC.

    Parameters
    ----------
    workloads
        Those that are expected, by column.
    counts
        Instances of each workload in each pattern, shape (patterns, workloads).
    drops
        Throughput drop of each workload in each pattern, as a fraction; infinite where it is not in it.
    prices
        Worth of each slot, in units of a NIC's cost; shape of `drops`.
    """

    workloads: dict[Workload, int]
    counts: Floats
    drops: Floats
    prices: Floats
    _worth: dict[object, float] = field(default_factory=dict, repr=False, compare=False)

    def knows(self, company: Sequence[Workload]) -> bool:
        """Whether all of these workloads were expected."""
        return all(workload in self.workloads for workload in company)

    def worth(self, tenants: Sequence[tuple[Workload, float]]) -> float:
        """Worth of the room that these tenants, each with the drop it bears, leave on a NIC; -inf where they cannot be.

        In units of a NIC's cost, between 0 and about 1.
        """
        held: dict[int, tuple[int, float]] = {}
        for workload, bears in tenants:
            column = self.workloads[workload]
            count, least = held.get(column, (0, np.inf))
            held[column] = count + 1, min(least, bears)
        key = tuple(sorted(held.items()))
        if key not in self._worth:
            self._worth[key] = self._best(held)
        return self._worth[key]

    def _best(self, held: dict[int, tuple[int, float]]) -> float:
        fits = np.ones(len(self.counts), dtype=bool)
        taken = np.zeros(self.counts.shape[1])
        for column, (count, bears) in held.items():
            fits &= (self.counts[:, column] >= count) & (self.drops[:, column] <= bears)
            taken[column] = count
        if not fits.any():
            return NOWHERE
        return float(((self.counts[fits] - taken) * self.prices[fits]).sum(axis=1).max())


def outlook(tenants: Sequence[Tenant], kind: NicKind, oracle: Oracle) -> Outlook | None:
    """The outlook of arrivals like these tenants; None when too many co-locations would have to be asked for."""
    hosted = [tenant for tenant in tenants if kind.hosts(tenant.workload)]
    workloads = sorted({tenant.workload for tenant in hosted})
    companies = _companies(workloads, kind)
    if companies is None or not companies:
        return None
    columns = {workload: column for column, workload in enumerate(workloads)}
    counts = np.zeros((len(companies), len(workloads)))
    drops = np.full(counts.shape, np.inf)
    solo = {workload: oracle.solo(workload) for workload in workloads}
    oracle.throughput(companies)
    for row, company in enumerate(companies):
        for workload, number in Counter(company).items():
            counts[row, columns[workload]] = number
        for workload, throughput in oracle.by_workload(company).items():
            drops[row, columns[workload]] = max(0.0, 1.0 - throughput / solo[workload])
    bears = [(columns[tenant.workload], borne(tenant, solo[tenant.workload])) for tenant in hosted]
    loosest = max(bear for _, bear in bears)
    bearable = ~((counts > 0) & (drops > loosest)).any(axis=1)
    counts, drops = counts[bearable], drops[bearable]
    prices = _averaged_prices(counts, drops, bears)
    return None if prices is None else Outlook(columns, counts, drops, prices)


def borne(tenant: Tenant, solo_kpps: float) -> float:
    """The drop (fraction) that the tenant's SLA bears where alone it has `solo_kpps`."""
    return 1.0 - tenant.sla.required_kpps(solo_kpps) / solo_kpps


def _companies(workloads: Sequence[Workload], kind: NicKind) -> list[Company] | None:
    companies: list[Company] = []
    smallest = min((kind.cores_of[workload.nf] for workload in workloads), default=kind.cores + 1)
    for size in range(1, kind.cores // smallest + 1):
        for company in combinations_with_replacement(workloads, size):
            if kind.cores_taken(company) <= kind.cores:
                companies.append(company)
                if len(companies) > MOST_PATTERNS:
                    return None
    return companies


def _averaged_prices(counts: Floats, drops: Floats, bears: Sequence[tuple[int, float]]) -> Floats | None:
    """Mean slot prices over resampled forecasts, scaled so that the best pattern is worth one NIC."""
    draw = np.random.default_rng(len(bears))
    sampled = [
        _prices(counts, drops, [bears[i] for i in draw.integers(len(bears), size=ARRIVALS_AHEAD)])
        for _ in range(FORECASTS)
    ]
    found = [prices for prices in sampled if prices is not None]
    if not found:
        return None
    mean: Floats = np.mean(found, axis=0)
    return mean / max(float((mean * counts).sum(axis=1).max()), 1e-9)


def _prices(counts: Floats, drops: Floats, forecast: Sequence[tuple[int, float]]) -> Floats | None:
    """Dual prices of the relaxed program: min sum x, slots of drop <= d no fewer than arrivals that bear <= d."""
    rows, needed, places = [], [], []
    for column in range(counts.shape[1]):
        bears = np.sort([bear for at, bear in forecast if at == column])
        if not len(bears):
            continue
        for threshold in np.unique(np.quantile(bears, np.linspace(0, 1, THRESHOLDS), method="higher")):
            rows.append(np.where(drops[:, column] <= threshold, counts[:, column], 0.0))
            needed.append(float(np.searchsorted(bears, threshold, side="right")))
            places.append((column, threshold))
    # for so small a program presolving takes longer than the simplex method itself
    solved = linprog(
        np.ones(len(counts)), A_ub=-np.array(rows), b_ub=-np.array(needed), method="highs", options={"presolve": False}
    )
    if solved.x is None:
        return None
    prices = np.zeros(drops.shape)
    for (column, threshold), dual in zip(places, -solved.ineqlin.marginals, strict=True):
        prices[:, column] += np.where(drops[:, column] <= threshold, dual, 0.0)
    return prices
