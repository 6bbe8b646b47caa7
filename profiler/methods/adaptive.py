"""Adaptive profiling: Tomur's algorithm 1 (section 5.2), with decisions of our own where the paper leaves them open.

1. *Prune* every attribute if throughput at both ends of its range differs by less than `epsilon_0`.
2. *Bisect* the ranges of the others where throughput changes by `epsilon_1` or more, with `BENCH_LEVELS` random
   contention levels at each midpoint, for up to half of the quota.
3. *Spread* the rest of the quota over all combinations of the ranges, more densely where throughput changes; a quarter
   of the rest is spent at default traffic.

Decisions that the paper leaves open:

- Throughput is compared alone *and* under the strongest memory contention, at each end and midpoint. A table that
  fits the cache while the NF is alone has an effect only under contention, so solo throughput by itself would prune it.
- With several attributes, each is varied along three lines: with all others at their default, at their smallest and at
  their largest value. It is bisected along the first line, unless it matters more on another one. Step 3 then covers
  combinations. Bisecting boxes would need a number of runs exponential in the number of attributes; bisecting the
  diagonal would not separate the attributes.
- Ranges whose ends differ a hundredfold are halved on a logarithmic scale: data structures grow with the number of
  flows, and their effect ends at the first few percent of its range.
- Changes are relative to solo throughput at default traffic. Both epsilons are 5 %, or four standard deviations of a
  difference when repeats show more noise than that allows.
- If the change differs from epsilon by less than a quarter, the means of three runs at each end decide, because with
  one run, noise would decide. Every end is confirmed by a second run, because an outlier could prune an attribute that
  matters.
- Intervals with the largest changes are halved first, so that a small quota is spent where it reduces the error most.
- Default traffic is where most NFs will run, so many of the contention levels are measured there.

The effect of these decisions, as mean errors (%) on the grid of table 8, under contention that NFs cause / under
stronger contention, for six NFs and three seeds with 400 runs:

- as implemented: 1.03 / 3.2 (with 200 runs 1.09 / 4.3);
- ranges halved on a linear scale: 3.6 / 5.5;
- no bisection: 1.06 / 4.3 (with 200 runs 1.17 / 5.9);
- even spread: 1.03 / 3.3;
- no runs reserved for default traffic: 1.01 / 3.0, but lower accuracy at default traffic.

Repeats and pruning change nothing for these NFs: each of their attributes matters much or not at all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from profiler.contention import NO_CONTENTION, Contention, OperatingPoint
from profiler.methods import METHODS, Method
from profiler.runs.nf_runs import NfRuns
from profiler.sampling import EvenPoints, Range, at, traffic_with
from profiles import TrafficProfile

DEFAULT_EPSILON = 0.05
BENCH_LEVELS = 4
LINE_REPEATS = 3
NEAR_EPSILON = 0.25  # share of epsilon by which a change may differ from it and still be decided by repeats
BISECTED_SHARE = 0.5
NARROWEST_INTERVAL = 1 / 64
EVERYWHERE_SHARE = 0.5
RUN_BATCH = 32
AT_DEFAULT = 0.25

Throughputs = tuple[float, ...]  # at one traffic profile: alone, and under the strongest contention


@dataclass
class Line:
    """One attribute's range, the others held at `base`, with the throughputs measured on it by position in [0, 1]."""

    attribute: str
    bounds: Range  # the attribute and its range
    base: TrafficProfile  # the traffic profile that holds the values of the other attributes
    measured: dict[float, Throughputs] = field(default_factory=dict)
    """Throughputs relative to solo throughput at default traffic."""

    def traffic(self, position: float) -> TrafficProfile:
        """The traffic profile at a position."""
        return traffic_with(self.base, {self.attribute: at(self.bounds, position)})

    def changes(self) -> list[tuple[float, float, float]]:
        """For each pair of adjacent positions: the largest change of throughput, and both positions."""
        ends = sorted(self.measured)
        return [
            (max(abs(a - b) for a, b in zip(self.measured[start], self.measured[end], strict=True)), start, end)
            for start, end in pairwise(ends)
        ]


@METHODS.register("adaptive")
class Adaptive(Method):
    """Prune, bisect, spread."""

    def profile(self, runs: NfRuns, rng: Generator) -> None:
        solo, epsilon = _noise(runs)
        views = tuple(dict.fromkeys((NO_CONTENTION, runs.memory.strongest())))
        lines = _prune(runs, views, solo, epsilon)
        _bisect(runs, lines, views, solo, epsilon)
        self.finish(runs, lines, rng)

    def finish(self, runs: NfRuns, lines: list[Line], rng: Generator) -> None:
        """Spend what is left of the quota."""
        spread(runs, lines, rng)


def _noise(runs: NfRuns) -> tuple[float, float]:
    """Solo throughput at default traffic, and the smallest relative change that is not noise."""
    repeats = np.array(runs.repeat((runs.base, NO_CONTENTION), LINE_REPEATS))
    deviation = float(repeats.std(ddof=1) / repeats.mean())
    return float(repeats.mean()), max(DEFAULT_EPSILON, 4 * math.sqrt(2) * deviation)


def _prune(runs: NfRuns, views: Sequence[Contention], solo: float, epsilon: float) -> list[Line]:
    """For each attribute that matters, the line at default traffic, unless it matters much more on another line."""
    lines = [
        Line(name, bounds, base)
        for name, bounds in runs.attributes.items()
        for base in _bases(runs.base, runs.attributes)
    ]
    _measure(runs, [(line, position) for line in lines for position in (0.0, 1.0)], views, solo, confirm=True)
    best: dict[str, tuple[float, Line]] = {}
    for line in lines:
        ((change, _, _),) = line.changes()
        if abs(change - epsilon) < NEAR_EPSILON * epsilon:
            # The change between the ends of a line, from the means of several runs.
            low, high = (
                [np.mean(runs.check((line.traffic(position), view), LINE_REPEATS)) / solo for view in views]
                for position in (0.0, 1.0)
            )
            change = max(abs(float(a - b)) for a, b in zip(low, high, strict=True))
        if change >= epsilon + best.get(line.attribute, (0.0, line))[0]:
            best[line.attribute] = (change, line)
    return [line for _, line in best.values()]


def _bases(base: TrafficProfile, ranges: Mapping[str, Range]) -> list[TrafficProfile]:
    ends = [traffic_with(base, {name: bounds[end] for name, bounds in ranges.items()}) for end in (0, 1)]
    return list(dict.fromkeys([base, *ends]))


def _bisect(runs: NfRuns, lines: Sequence[Line], views: Sequence[Contention], solo: float, epsilon: float) -> None:
    """Halve, in rounds, every interval over which throughput changes by at least `epsilon`, largest change first."""
    keep = runs.left * (1 - BISECTED_SHARE)
    while intervals := sorted(
        (
            (-change, number, start, end)
            for number, line in enumerate(lines)
            for change, start, end in line.changes()
            if change >= epsilon
            and end - start > NARROWEST_INTERVAL
            and line.traffic((start + end) / 2) not in (line.traffic(start), line.traffic(end))
        )
    ):
        affordable = (
            max(int((runs.left - keep) / (len(views) + BENCH_LEVELS)), 0) if math.isfinite(keep) else len(intervals)
        )
        if not affordable:
            return
        middles = [(lines[number], (start + end) / 2) for _, number, start, end in intervals[:affordable]]
        _measure(runs, middles, views, solo)
        for line, middle in middles:
            runs.measure((line.traffic(middle), level) for level in runs.memory.mixtures(BENCH_LEVELS))


def _measure(
    runs: NfRuns,
    spots: Sequence[tuple[Line, float]],
    views: Sequence[Contention],
    solo: float,
    *,
    confirm: bool = False,
) -> None:
    """Measure throughput at each position of each line, under each contention of `views`."""
    points = [(line.traffic(position), view) for line, position in spots for view in views]
    throughputs = iter(runs.measure(points, confirm=confirm))
    for line, position in spots:
        line.measured[position] = tuple(next(throughputs) / solo for _ in views)


def spread(runs: NfRuns, lines: Sequence[Line], rng: Generator, *, keep: int = 0) -> None:
    """Cover all combinations evenly, on scales stretched where throughput changes, until only `keep` runs are left."""
    positions = EvenPoints(len(lines), rng)
    left = None
    while left != runs.left and runs.left > keep:
        left = runs.left
        batch = spread_points(runs, lines, positions, RUN_BATCH)
        runs.measure(batch[: int(left - keep)] if keep else batch)


def spread_points(runs: NfRuns, lines: Sequence[Line], positions: EvenPoints, count: int) -> list[OperatingPoint]:
    """The next `count` points of an even coverage; `AT_DEFAULT` of them are at default traffic."""
    spots = zip(
        *(_stretch(line, column) for line, column in zip(lines, positions.take(count).T, strict=True)), strict=True
    )
    traffics = [
        traffic_with(runs.base, {line.attribute: at(line.bounds, p) for line, p in zip(lines, spot, strict=True)})
        for spot in spots
    ] or [runs.base] * count
    traffics[: int(count * AT_DEFAULT)] = [runs.base] * int(count * AT_DEFAULT)
    return list(zip(traffics, runs.memory.draw(count), strict=True))


def _stretch(line: Line, evenly: NDArray[np.float64]) -> list[float]:
    """Positions on a line, with a density half uniform and half proportional to the change of throughput."""
    changes = line.changes()
    total = sum(change for change, _, _ in changes)
    weights = [
        EVERYWHERE_SHARE * (end - start) + (1 - EVERYWHERE_SHARE) * (change / total if total else end - start)
        for change, start, end in changes
    ]
    knots = [0.0, *(end for _, _, end in changes)]
    reached = np.concatenate([[0.0], np.cumsum(weights)])
    return [float(position) for position in np.interp(evenly, reached / reached[-1], knots)]
