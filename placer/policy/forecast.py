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
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from placer.policy.dual_simplex import OpenClass, PatternProgram
from placer.policy.kernels import Ints, compile_kernel
from placer.policy.pattern_table import PatternTable
from placer.policy.rules import samples
from predictor.regression.significant import significant
from profiles.arrays import Floats

ARRIVAL_SAMPLES = 24  # number of samples of arrivals over which prices are averaged
SAMPLES_AT_ONCE = 6  # the same where a decision waits for them, because a workload came that is not known yet

ARRIVALS_AHEAD = 240
"""Arrivals in a sample: with 60, prices differ so much between samples that a plan of 3,000 may take 6 % more NICs."""

CLOSING_PIVOTS = 5_000  # pivots after which prices for the last arrivals are taken as they are

MAX_REMEMBERED_ARRIVALS = 2_048
POOLED_ARRIVALS = 256  # number of recent arrivals from which the SLAs of rare workloads are forecast
SLA_QUANTILES = 64  # SLAs of all workloads together are smoothed to so many
SLA_CELLS = 8  # classes of SLAs by which it is seen whether workloads have SLAs of their own
PRICED_LEVELS = 8  # number of SLA levels per workload that have a price of their own
FINER_LEVELS = 6  # number of finer levels in each, by which arrivals are sorted when classes are scored
ASKED_AGAIN = 256  # closings whose levels are kept: those of two plans for 500 arrivals

SLA_LEVELS = PRICED_LEVELS * FINER_LEVELS
"""Number of levels into which SLAs of arrivals are sorted when classes are scored. Feasibility is always exact."""


class Prices(NamedTuple):
    """What instances are worth.

    `worth`: in each pattern, in NICs, shape (patterns, workloads). `levels`: per workload the throughputs (kpps) that
    divide SLAs into levels, loosest first, shape (workloads, SLA_LEVELS). `level`: the strictest level that a workload
    meets in each pattern, -1 where none, shape (patterns, workloads).
    """

    worth: Floats
    levels: Floats
    level: Ints


class PriceForecast:
    """Prices of the slots of one kind of NIC, renewed in small steps."""

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self._program = PatternProgram(table.counts, table.members, PRICED_LEVELS)
        self._columns = np.zeros(MAX_REMEMBERED_ARRIVALS, dtype=np.intp)
        self._shares = np.zeros(MAX_REMEMBERED_ARRIVALS)
        self._seen = 0
        self._solo_kpps, self._solo = table.solo, table.solo.tolist()
        self._missing = self._samples = 0
        self._renewals = 0
        self._prices: Floats = np.zeros((len(table.workloads), PRICED_LEVELS))

    @property
    def renewing(self) -> bool:
        return self._missing > 0

    def observe(self, column: int, required: float) -> None:
        """Count an arrival that requires so much throughput (kpps), unless that is not met even alone."""
        if required <= self._solo[column]:
            at = self._seen % MAX_REMEMBERED_ARRIVALS
            self._columns[at], self._shares[at] = column, required / self._solo[column]
            self._seen += 1

    def renew(self, samples: int = ARRIVAL_SAMPLES) -> None:
        """Begin to compute new prices, from the arrivals until now, averaged over so many samples."""
        if self._seen:
            self._levels, self._probability = self._smooth()
            self._level = level_of(self.table, self._levels)
            self._renewals += 1
            self._random = np.random.default_rng(self._renewals)
            self._program.restart(self._level // FINER_LEVELS)
            self._prices = np.zeros((len(self._solo), PRICED_LEVELS))
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
        levels, probability = self._smooth()
        self._level = level_of(self.table, levels)
        self._program.restart(self._level // FINER_LEVELS, classes)
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
        drawn = self._random.multinomial(ARRIVALS_AHEAD, self._probability.ravel()).reshape(-1, PRICED_LEVELS)
        self._program.demand(drawn.astype(np.float64))

    def _smooth(self) -> tuple[Floats, Floats]:
        columns, shares = self._columns[: self._seen], self._shares[: self._seen]
        return levels_of(columns.tobytes(), shares.tobytes(), self._seen, self._solo_kpps.tobytes())

    def _worth_of(self, prices: Floats) -> Floats:
        """The price of the slot of each workload in each pattern, 0 where there is none."""
        level = self._level // FINER_LEVELS
        slots = np.take_along_axis(prices.T, np.maximum(level, 0).astype(np.intp), axis=0)
        worth: Floats = np.where((self.table.counts > 0) & (level >= 0), slots, 0.0)
        return worth


@lru_cache(maxsize=ASKED_AGAIN)
def levels_of(columns: bytes, shares: bytes, seen: int, solo: bytes) -> tuple[Floats, Floats]:
    """Levels of SLAs, and the probability of an arrival by workload and priced level, shape (workloads, PRICED_LEVELS).

    A trace that is placed at several risks asks for the same each time.

    `columns`, `shares`: of the arrivals that are remembered, as arrays of bytes: workload, and required share of
    throughput alone. `seen`: how many arrivals came. `solo`: throughput alone of each workload (kpps), too.
    """
    column, share, kpps = np.frombuffer(columns, np.intp), np.frombuffer(shares), np.frombuffer(solo)
    newest = (seen - 1 - np.arange(min(seen, POOLED_ARRIVALS))) % MAX_REMEMBERED_ARRIVALS
    pooled = np.quantile(share[newest], (np.arange(SLA_QUANTILES) + 0.5) / SLA_QUANTILES)
    likely, pooled_weight = alike(column, share, pooled, len(kpps))
    merged = np.empty((2, len(kpps), len(share) + SLA_QUANTILES))
    sizes, order = np.empty(len(kpps), dtype=np.int64), np.argsort(share, kind="stable")
    merge_shares(column[order], share[order], pooled, pooled_weight / SLA_QUANTILES, merged[0], merged[1], sizes)
    total = np.array([weight[:size].sum() for weight, size in zip(merged[1], sizes.tolist(), strict=True)])
    levels, probability = np.empty((len(kpps), SLA_LEVELS)), np.empty((len(kpps), PRICED_LEVELS))
    write_levels(merged[0], merged[1], sizes, total, kpps.copy(), likely, levels, probability)
    return levels, probability


def alike(columns: NDArray[np.intp], shares: Floats, pooled: Floats, width: int) -> tuple[Floats, float]:
    """The probability of an arrival of each workload, and how many arrivals of one the SLAs of all are worth."""
    cells = columns * SLA_CELLS + np.searchsorted(
        pooled[SLA_QUANTILES // SLA_CELLS :: SLA_QUANTILES // SLA_CELLS], shares
    )
    counts = np.bincount(cells, minlength=width * SLA_CELLS).reshape(-1, SLA_CELLS).astype(np.float64)
    of_workload = counts.sum(axis=1)
    (likely,), _ = smooth(of_workload[None, :], np.full(len(counts), 1.0 / len(counts)))
    together = counts.sum(axis=0) + 0.5
    _, weight = smooth(counts, together / together.sum())
    return likely, weight


@compile_kernel
def merge_shares(columns, shares, pooled, each, share, weight, sizes):  # type: ignore[no-untyped-def]
    """Write per column its own shares of `shares` and those pooled of all, ascending, and what each weighs.

    Own ones weigh 1, are before pooled ones that equal them, and are in ascending order already.
    """
    for column in range(len(sizes)):
        size = taken = 0
        for at in range(len(shares) + 1):
            last = at == len(shares)
            if not last and columns[at] != column:
                continue
            while taken < len(pooled) and (last or pooled[taken] < shares[at]):
                share[column, size], weight[column, size] = pooled[taken], each
                size, taken = size + 1, taken + 1
            if not last:
                share[column, size], weight[column, size] = shares[at], 1.0
                size += 1
        sizes[column] = size


@compile_kernel
def write_levels(share, weight, sizes, total, solo, likely, levels, probability):  # type: ignore[no-untyped-def]
    """Write levels that divide the weight of each column evenly, and its probability by the priced ones.

    `total` is the weight of each column, and `likely` the probability of each.
    """
    refined, below = levels.shape[1] // probability.shape[1], np.empty(share.shape[1])
    for column in range(len(sizes)):
        up_to = 0.0
        for at in range(sizes[column]):
            up_to += weight[column, at]
            below[at] = up_to - weight[column, at]
        at, first = 0, 0.0
        for level in range(levels.shape[1]):
            while at + 1 < sizes[column] and below[at + 1] <= level * (total[column] / levels.shape[1]):
                at += 1
            levels[column, level] = share[column, at] * solo[column]
            if level % refined == 0:
                equal = at
                while equal > 0 and share[column, equal - 1] == share[column, at]:
                    equal -= 1
                if level > 0:
                    probability[column, level // refined - 1] = likely[column] * (below[equal] - first) / total[column]
                first = below[equal]
        probability[column, -1] = likely[column] * (total[column] - first) / total[column]


def level_of(table: PatternTable, levels: Floats) -> Ints:
    """The strictest of the levels that each workload meets in each pattern, -1 where none."""
    level = np.empty(table.counts.shape, dtype=np.int32)
    for column, bounds in enumerate(levels):
        level[:, column] = np.searchsorted(bounds, table.kpps[:, column], side="right") - 1
    return level


def core_shares(table: PatternTable) -> Prices:
    """Every instance is worth the share of a NIC's cores that it takes."""
    cores = np.array([table.kind.cores_for(workload) / table.kind.cores for workload in table.workloads])
    levels = np.linspace(table.floor, table.solo, SLA_LEVELS, axis=1)
    return Prices(np.where(table.counts > 0, cores, 0.0), levels, level_of(table, levels))


# How far frequencies are smoothed: as much as they do not differ by more than chance.
#
# Frequencies of few arrivals are mostly chance. They are drawn towards what is expected of all alike, by a
# Dirichlet-multinomial model whose concentration, in arrivals, is averaged over its likelihood (empirical Bayes: Good,
# "The Estimation of Probabilities", 1965). Where the groups are alike, the expectation soon outweighs what was counted;
# where they differ, what was counted does.


PRIOR_CONCENTRATIONS = 2.0 ** np.arange(-1, 11)  # arrivals that an expectation may be worth, per cell of a group


def smooth(counts: Floats, expected: Floats) -> tuple[Floats, float]:
    """Probabilities of the cells of each group, shape (groups, cells), and how many arrivals the expectation is worth.

    `counts`: arrivals by group and cell, shape (groups, cells). `expected`: probabilities of the cells that are
    expected of every group, shape (cells,).
    """
    cells, total = counts.shape[1], counts.sum(axis=1)
    concentration = PRIOR_CONCENTRATIONS * cells
    prior = concentration[:, None] * expected
    likelihood = (gammaln(concentration)[:, None] - gammaln(concentration[:, None] + total)).sum(axis=1) + (
        gammaln(prior[:, None, :] + counts) - gammaln(prior)[:, None, :]
    ).sum(axis=(1, 2))
    weight = np.exp(likelihood - likelihood.max())
    weight /= weight.sum()
    each = (counts + prior[:, None, :]) / (total[:, None] + concentration[:, None, None])
    # rounded, because levels of SLAs hang on comparisons, and processors differ in the last digits
    probabilities = significant((weight[:, None, None] * each).sum(axis=0), of=1.0)
    worth = significant(np.exp((weight * np.log(concentration)).sum()))
    return probabilities / probabilities.sum(axis=1, keepdims=True), float(worth)
