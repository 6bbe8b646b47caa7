"""Lemur's brute force (section 3.2): every placement pattern, every allocation of cores, a linear program for each.

It takes hours for the paper's four chains, so its time is estimated: patterns are drawn at random, each is searched
whole, and the mean is multiplied by their number.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb, prod

import numpy as np

from placer.chains.chain import Chain
from placer.chains.fixed_layouts import CoreAllocation, plan_of
from placer.chains.layout import Layout
from placer.chains.layouts import possible_sites
from placer.chains.plan import RackPlan
from placer.chains.rack import Rack

MOST_ALLOCATIONS = 200
"""Of a pattern, in an estimate: where it has more, its time is that of these, times their share."""


def patterns(chains: Sequence[Chain], rack: Rack) -> int:
    """How many combinations of sites there are."""
    return prod(len(sites) for chain in chains for sites in possible_sites(chain, rack))


def brute_force(chains: Sequence[Chain], rack: Rack) -> RackPlan | None:
    """The best plan of all patterns; None if none keeps all SLOs. For one server."""
    each = [[Layout(chain, rack, sites) for sites in product(*possible_sites(chain, rack))] for chain in chains]
    best: RackPlan | None = None
    for layouts in product(*each):
        found = best_of_pattern(layouts)
        if found and (best is None or found.marginal_mbps > best.marginal_mbps):
            best = found
    return best


def best_of_pattern(layouts: Sequence[Layout]) -> RackPlan | None:
    """The best plan with these layouts, over all allocations of cores; None if none keeps all SLOs."""
    plans = (plan_of(allocation) for allocation in allocations(layouts))
    return max((plan for plan in plans if plan.chains), key=lambda plan: plan.marginal_mbps, default=None)


def allocations(layouts: Sequence[Layout]) -> Iterator[CoreAllocation]:
    """All ways to give all cores of a server to the subgroups, at least one to each; others have replicas."""
    rack = layouts[0].rack
    first = CoreAllocation(rack, layouts)
    if not first.fits:
        return
    groups = [(chain, at) for chain, layout in enumerate(layouts) for at in range(len(layout.subgroups))]
    more = [at for at in groups if layouts[at[0]].subgroups[at[1]].cycles_of_replicas is not None]
    spare = sum(first.spare)
    for counts in _compositions(spare, len(more)):
        allocation = CoreAllocation(rack, layouts)
        for (chain, at), count in zip(more, counts, strict=True):
            cores = list(allocation.cores[chain])
            cores[at] += count
            allocation.give(chain, cores)
        yield allocation


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a sum of this many parts; the empty way without parts."""
    if parts == 0:
        yield ()
    elif parts == 1:
        yield (total,)
    else:
        for first in range(total + 1):
            yield from ((first, *rest) for rest in _compositions(total - first, parts - 1))


@dataclass(frozen=True)
class BruteForceTime:
    """An estimate.

    Parameters
    ----------
    patterns
        All of them.
    sampled
        How many of these were searched.
    allocations
        Of a pattern, the mean of the sample.
    seconds
        For all patterns: mean of the sample times their number.
    error
        Standard error of `seconds`.
    """

    patterns: int
    sampled: int
    allocations: float
    seconds: float
    error: float


def brute_force_time(chains: Sequence[Chain], rack: Rack, sampled: int, rng: np.random.Generator) -> BruteForceTime:
    """How long the brute force would take, from patterns drawn at random.

    Parameters
    ----------
    sampled
        How many patterns are drawn.
    """
    number, seconds, counts = patterns(chains, rack), [], []
    for _ in range(sampled):
        begin = time.perf_counter()
        layouts = [
            Layout(chain, rack, tuple(int(rng.choice(sites)) for sites in possible_sites(chain, rack)))
            for chain in chains
        ]
        count = _allocations(layouts)
        for _, allocation in zip(range(MOST_ALLOCATIONS), allocations(layouts), strict=False):
            plan_of(allocation)
        seconds.append((time.perf_counter() - begin) * max(count / MOST_ALLOCATIONS, 1.0))
        counts.append(count)
    return BruteForceTime(
        number,
        sampled,
        float(np.mean(counts)),
        number * float(np.mean(seconds)),
        number * float(np.std(seconds, ddof=1)) / sampled**0.5,
    )


def _allocations(layouts: Sequence[Layout]) -> int:
    """How many there are."""
    allocation = CoreAllocation(layouts[0].rack, layouts)
    if not allocation.fits:
        return 0
    parts = sum(group.cycles_of_replicas is not None for layout in layouts for group in layout.subgroups)
    return comb(sum(allocation.spare) + parts - 1, parts - 1) if parts else 1
