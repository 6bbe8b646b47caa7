"""The forecast: which arrivals to expect, and what a slot of a NIC is worth to them.

First fit leaves tight SLAs wherever they happened to land. Prices show which arrivals are hard to place: the program
over patterns (`dual_simplex`), for a sample of arrivals like the recent ones, has a dual price per workload and SLA
level, high for tight SLAs and heavy NFs. That is bid-price control (Talluri and van Ryzin, "An analysis of bid-price
controls for network revenue management", Management Science 44, 1998): an arrival takes the capacity of which the loss
is smallest at these prices.

The prices of a single sample are too extreme where patterns tie, so they are averaged over several samples: an NF that
is scarce in some of them and plentiful in others has a price between. After
few arrivals the forecast is smoothed: all workloads share the SLAs of all arrivals until they have enough of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placer.policy.closing import samples
from placer.policy.dual_simplex import OpenClass, PatternProgram
from placer.policy.kernels import Floats, Ints
from placer.policy.pattern_table import PatternTable
from placer.policy.smoothing import smoothed

SAMPLES = 24
"""Number of samples of arrivals over which prices are averaged."""

SAMPLES_AT_ONCE = 6
"""The same where a decision waits for them, because a workload came that is not known yet."""

ARRIVALS_AHEAD = 240
"""Arrivals in a sample: with 60, prices differ so much between samples that a plan of 3,000 may take 6 % more NICs."""

CLOSING_PIVOTS = 5_000
"""Pivots after which prices for the last arrivals are taken as they are."""

REMEMBERED = 2_048
"""Number of recent arrivals from which future ones are forecast."""

POOLED = 256
"""Number of recent arrivals from which the SLAs of rare workloads are forecast."""

QUANTILES = 64
"""SLAs of all workloads together are smoothed to so many."""

CELLS = 8
"""Classes of SLAs by which it is seen whether workloads have SLAs of their own."""

PRICED = 8
"""Number of SLA levels per workload that have a price of their own."""

REFINED = 6
"""Number of finer levels in each, by which arrivals are sorted when classes are scored."""

LEVELS = PRICED * REFINED
"""Number of levels into which SLAs of arrivals are sorted when classes are scored. Feasibility is always exact."""


class Prices(NamedTuple):
    """What instances are worth.

    Parameters
    ----------
    worth
        In each pattern, in NICs, shape (patterns, workloads).
    levels
        Per workload the throughputs (kpps) that divide SLAs into levels, loosest first, shape (workloads, LEVELS).
    level
        The strictest level that a workload meets in each pattern, -1 where none, shape (patterns, workloads).
    """

    worth: Floats
    levels: Floats
    level: Ints


class PriceForecast:
    """Prices of the slots of one kind of NIC, renewed in small steps.

    Parameters
    ----------
    table
        All patterns of the kind.
    """

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self._program = PatternProgram(table.counts, table.members, PRICED)
        self._columns = np.zeros(REMEMBERED, dtype=np.intp)
        self._shares = np.zeros(REMEMBERED)
        self._seen = 0
        self._solo = table.solo.tolist()
        self._missing = self._samples = 0
        self._renewals = 0
        self._prices: Floats = np.zeros((len(table.workloads), PRICED))

    @property
    def renewing(self) -> bool:
        """Whether prices are being renewed."""
        return self._missing > 0

    def observe(self, column: int, required: float) -> None:
        """Count an arrival that requires so much throughput (kpps), unless that is not met even alone."""
        if required <= self._solo[column]:
            at = self._seen % REMEMBERED
            self._columns[at], self._shares[at] = column, required / self._solo[column]
            self._seen += 1

    def renew(self, samples: int = SAMPLES) -> None:
        """Begin to compute new prices, from the arrivals until now, averaged over so many samples."""
        if self._seen:
            self._levels, self._probability = self._smoothed()
            self._level = level_of(self.table, self._levels)
            self._renewals += 1
            self._random = np.random.default_rng(self._renewals)
            self._program.restart(self._level // REFINED)
            self._prices = np.zeros((len(self._solo), PRICED))
            self._missing = self._samples = samples
            self._draw()

    def advance(self, pivots: int) -> Prices | None:
        """Make up to so many pivots; returns new prices once they are complete."""
        while self._missing and pivots > 0:
            pivots = self._program.pivot(pivots)
            if pivots < 0:
                return None
            self._prices += self._program.prices()
            self._missing -= 1
            if not self._missing:
                return Prices(self._worth_of(self._prices / self._samples), self._levels, self._level)
            self._draw()
        return None

    def closing(self, arrivals: int, classes: Sequence[OpenClass]) -> Prices | None:
        """Prices for the last arrivals of a trace, given the open NICs; a renewal that is under way is given up.

        None where no arrival has come.
        """
        if not self._seen:
            return None
        self._missing = 0
        levels, probability = self._smoothed()
        self._level = level_of(self.table, levels)
        self._program.restart(self._level // REFINED, classes)
        random = np.random.default_rng(arrivals)
        drawn = random.multinomial(arrivals, probability.ravel(), size=samples(arrivals))
        prices = np.zeros(probability.shape)
        for sample in drawn:
            self._program.demand(sample.reshape(probability.shape).astype(np.float64))
            self._program.pivot(CLOSING_PIVOTS)
            prices += self._program.prices()
        return Prices(self._worth_of(prices / len(drawn)), levels, self._level)

    def _draw(self) -> None:
        """Ask for slots for another sample of arrivals."""
        drawn = self._random.multinomial(ARRIVALS_AHEAD, self._probability.ravel()).reshape(-1, PRICED)
        self._program.demand(drawn.astype(np.float64))

    def _smoothed(self) -> tuple[Floats, Floats]:
        """Levels of SLAs, and the probability of an arrival by workload and priced level, shape (workloads, PRICED)."""
        columns, shares = self._columns[: self._seen], self._shares[: self._seen]
        newest = (self._seen - 1 - np.arange(min(self._seen, POOLED))) % REMEMBERED
        pooled = np.quantile(shares[newest], (np.arange(QUANTILES) + 0.5) / QUANTILES)
        workload, pooled_weight = self._alike(columns, shares, pooled)
        levels = np.empty((len(self._solo), LEVELS))
        probability = np.empty((len(self._solo), PRICED))
        for column, solo in enumerate(self._solo):
            own = shares[columns == column]
            share = np.concatenate([own, pooled])
            weight = np.concatenate([np.ones(len(own)), np.full(QUANTILES, pooled_weight / QUANTILES)])
            order = np.argsort(share, kind="stable")
            share, weight = share[order], weight[order]
            below = np.cumsum(weight) - weight
            at = np.searchsorted(below, np.linspace(0.0, weight.sum(), LEVELS, endpoint=False), side="right") - 1
            levels[column] = share[at] * solo
            first = np.searchsorted(share, share[at[::REFINED]])
            mass = np.diff(np.append(below[first], weight.sum()))
            probability[column] = workload[column] * mass / weight.sum()
        return levels, probability

    def _alike(self, columns: NDArray[np.intp], shares: Floats, pooled: Floats) -> tuple[Floats, float]:
        """The probability of an arrival of each workload, and how many arrivals of one the SLAs of all are worth."""
        counts = np.zeros((len(self._solo), CELLS))
        np.add.at(counts, (columns, np.searchsorted(pooled[QUANTILES // CELLS :: QUANTILES // CELLS], shares)), 1.0)
        of_workload = counts.sum(axis=1)
        (likely,), _ = smoothed(of_workload[None, :], np.full(len(counts), 1.0 / len(counts)))
        together = counts.sum(axis=0) + 0.5
        _, weight = smoothed(counts, together / together.sum())
        return likely, weight

    def _worth_of(self, prices: Floats) -> Floats:
        """The price of the slot of each workload in each pattern, 0 where there is none."""
        level = self._level // REFINED
        slots = np.take_along_axis(prices.T, np.maximum(level, 0).astype(np.intp), axis=0)
        worth: Floats = np.where((self.table.counts > 0) & (level >= 0), slots, 0.0)
        return worth


def level_of(table: PatternTable, levels: Floats) -> Ints:
    """The strictest of the levels that each workload meets in each pattern, -1 where none."""
    level = np.empty(table.counts.shape, dtype=np.int32)
    for column, bounds in enumerate(levels):
        level[:, column] = np.searchsorted(bounds, table.kpps[:, column], side="right") - 1
    return level


def core_shares(table: PatternTable) -> Prices:
    """Every instance is worth the share of a NIC's cores that it takes."""
    cores = np.array([table.kind.cores_of[workload.nf] / table.kind.cores for workload in table.workloads])
    levels = np.linspace(table.floor, table.solo, LEVELS, axis=1)
    return Prices(np.where(table.counts > 0, cores, 0.0), levels, level_of(table, levels))
