"""Lemur's brute force (section 3.2), rebuilt for one server: placement patterns, core allocations, a linear program."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import comb, prod
from random import Random

import numpy as np

from placer.rack.chain import Chain
from placer.rack.layout_arrays import all_layouts
from placer.rack.plan import Layout
from placer.rack.rack import Rack
from profiles.arrays import Floats, Ints
from profiles.linear_programs import linprog


@dataclass(frozen=True)
class Pattern:
    """A layout of one chain: the rate of each subgroup on one core, whether it may have more, and shares of the NIC."""

    alone: tuple[float, ...]
    replicable: tuple[bool, ...]
    shares: tuple[float, float]


BestOf = Callable[[Sequence[Pattern], float | None], float | None]
"""The best marginal throughput of a pattern; the second argument is that of earlier ones."""


@dataclass(frozen=True)
class BruteForced:
    """What was found."""

    marginal: float | None  # the best of the patterns that were tried, Mbps; None if none keeps the SLOs
    seconds: float
    tried: int  # patterns that were tried
    patterns: int  # all patterns
    error: float  # relative standard error of the mean time of a pattern

    @property
    def all_seconds(self) -> float:
        """For all patterns, extrapolated from those that were tried."""
        return self.seconds * self.patterns / max(self.tried, 1)


class BruteForce:
    """Tries placements of chains on a rack with one server, without overheads or a bound on stages."""

    def __init__(self, chains: Sequence[Chain], rack: Rack) -> None:
        self.cores = rack.devices[0].cores
        self.nic = float(rack.servers[0].nic_mbps)
        self.least = np.array([float(chain.slo.t_min_mbps) for chain in chains])
        self.most = np.array([float(chain.slo.t_max_mbps) for chain in chains])
        self.patterns = [_patterns(chain, rack) for chain in chains]

    def published(self, seconds: float) -> BruteForced:
        """As published: a linear program for each allocation; of patterns drawn at random until the time is over."""
        return self._run(self._draw(), seconds, self._by_programs)

    def fast(self, seconds: float) -> BruteForced:
        """All patterns, with all allocations of one at once, and a linear program only where it may raise the best."""
        return self._run(product(*self.patterns), seconds, self._at_once)

    def _run(self, patterns: Iterable[Sequence[Pattern]], seconds: float, best_of: BestOf) -> BruteForced:
        begin = time.perf_counter()
        ends = [begin]
        best: float | None = None
        for pattern in patterns:
            found = best_of(pattern, best)
            best = found if best is None or (found is not None and found > best) else best
            ends.append(time.perf_counter())
            if ends[-1] - begin > seconds:
                break
        each = np.diff(ends)
        error = float(each.std(ddof=1) / each.mean() / np.sqrt(len(each))) if len(each) > 1 else float("inf")
        return BruteForced(best, ends[-1] - begin, len(each), prod(len(pattern) for pattern in self.patterns), error)

    def _draw(self) -> Iterator[tuple[Pattern, ...]]:
        random = Random(0)
        while True:
            yield tuple(random.choice(pattern) for pattern in self.patterns)

    def _caps(self, pattern: Sequence[Pattern]) -> Floats:
        """Per allocation of cores and chain the largest rate; shape (allocations, chains)."""
        alone = np.array([rate for layout in pattern for rate in layout.alone])
        replicable = np.array([may for layout in pattern for may in layout.replicable], dtype=bool)
        spare = self.cores - len(alone)
        if spare < 0:
            return np.empty((0, len(pattern)))
        added = _compositions(spare, int(replicable.sum()))
        cores = np.ones((len(added), len(alone)), dtype=np.int64)
        cores[:, replicable] += added
        rates = cores * alone
        ends = np.cumsum([0, *(len(layout.alone) for layout in pattern)])
        caps = [
            rates[:, begin:end].min(axis=1, initial=most)
            for begin, end, most in zip(ends[:-1], ends[1:], self.most, strict=True)
        ]
        return np.stack(caps, axis=1)

    def _by_programs(self, pattern: Sequence[Pattern], best: float | None) -> float | None:
        """Each allocation by a linear program."""
        found = [self._program(pattern, caps) for caps in self._caps(pattern)]
        return max((plan for plan in found if plan is not None), default=None)

    def _at_once(self, pattern: Sequence[Pattern], best: float | None) -> float | None:
        caps = self._caps(pattern)
        caps = caps[(caps >= self.least * (1 - 1e-9)).all(axis=1)]
        if not len(caps):
            return None
        gains = np.maximum(caps, self.least).sum(axis=1) - self.least.sum()
        shares = np.array([layout.shares for layout in pattern])
        fits = (caps @ shares <= self.nic * (1 + 1e-9)).all(axis=1)
        found = float(gains[fits].max(initial=-np.inf))
        for row in np.argsort(-gains):
            if fits[row]:
                continue
            if gains[row] <= max(found, best if best is not None else -np.inf):
                break
            rates = self._program(pattern, caps[row])
            found = found if rates is None else max(found, rates)
        return found if found > -np.inf else None

    def _program(self, pattern: Sequence[Pattern], caps: Floats) -> float | None:
        """The largest marginal throughput with these caps; None where it is infeasible."""
        if (caps < self.least * (1 - 1e-9)).any():
            return None
        bounds = list(zip(self.least.tolist(), np.maximum(caps, self.least).tolist(), strict=True))
        shares = np.array([layout.shares for layout in pattern]).T
        found = linprog(-np.ones(len(caps)), A_ub=shares, b_ub=np.full(2, self.nic), bounds=bounds, method="highs")
        return None if found.x is None else float(found.x.sum() - self.least.sum())


def _patterns(chain: Chain, rack: Rack) -> list[Pattern]:
    device = rack.devices[0]
    found = []
    for sites in all_layouts(chain, rack).sites:
        layout = Layout(chain, rack, tuple(int(site) for site in sites))
        rates = [group.rate(1, device, chain.packet_bits) for group in layout.subgroups]
        shares = tuple(float(layout.nic_shares.get((0, way), 0)) for way in ("in", "out"))
        found.append(
            Pattern(
                tuple(float(rate) if rate is not None else np.inf for rate in rates),
                tuple(group.cycles_of_replicas is not None for group in layout.subgroups),
                (shares[0], shares[1]),
            )
        )
    return found


@cache
def _compositions(spare: int, parts: int) -> Ints:
    """All ways to give out spare cores; shape (ways, parts)."""
    if not parts:
        return np.zeros((1, 0), dtype=np.int64)
    rows = [[*rest] for rest in _ways(spare, parts)]
    assert len(rows) == comb(spare + parts - 1, parts - 1)
    return np.array(rows, dtype=np.int64)


def _ways(spare: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (spare,)
        return
    for first in range(spare + 1):
        for rest in _ways(spare - first, parts - 1):
            yield (first, *rest)
