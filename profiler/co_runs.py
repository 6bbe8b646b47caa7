"""Co-locations of NFs at random traffic: what benches cannot represent, and how large prediction errors are.

The models learn from benches, and benches only resemble NFs. A few runs of co-located NFs let training correct the
difference, and measure the error of predictions where they will be used. One run measures every NF in it, so few
suffice. Tomur does without them: appendix F uses benches only.

Each co-location is run twice: the difference gives the noise of a measurement, and reveals an outlier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from profiler.sampling import at, traffic_ranges, traffic_with, whole
from profiler.testbed import Run
from profiles import CoLocation, NfDescription, TestbedDescription, TrafficProfile, Workload

TIMES = 2
AGREE = 0.1
"""Relative difference of two runs of a co-location from which a third is made."""


def draw_co_locations(
    description: TestbedDescription, nf: NfDescription, count: int, rng: Generator
) -> list[CoLocation]:
    """`count` co-locations of `nf`, which comes first, with a random number of random NFs that fit.

    Traffic differs for each NF: half of the co-locations are even in the logarithm of the flows, half in their number,
    because either may be what users have. Those at default traffic are chosen by `deciding`.
    """
    fitting = [one for one in description.fitting_nfs if one.cores + nf.cores <= description.nic.cores]
    if not fitting:
        return []
    return [_co_location(description, nf, fitting, index % 2 == 0, rng) for index in range(count)]


def _co_location(
    description: TestbedDescription,
    nf: NfDescription,
    partners: Sequence[NfDescription],
    by_magnitude: bool,
    rng: Generator,
) -> CoLocation:
    free = description.nic.cores - nf.cores
    most = free // min(one.cores for one in partners)
    members = [nf]
    for _ in range(int(rng.integers(1, most + 1))):
        one = partners[int(rng.integers(len(partners)))]
        if one.cores <= free:
            members.append(one)
            free -= one.cores
    return tuple(Workload(one.name, _traffic(description, by_magnitude, rng)) for one in members)


def _traffic(description: TestbedDescription, by_magnitude: bool, rng: Generator) -> TrafficProfile:
    ranges = traffic_ranges(description)
    values = {}
    for name, position in zip(ranges, rng.random(len(ranges)).tolist(), strict=True):
        bounds = ranges[name]
        values[name] = (
            at(bounds, position) if by_magnitude else whole(bounds, float(np.interp(position, (0, 1), bounds)))
        )
    return traffic_with(description.traffic, values)


def agree(one: Run, other: Run) -> bool:
    """Whether two runs of a co-location agree on every NF."""
    return disagreement(one, other) <= AGREE


def disagreement(one: Run, other: Run) -> float:
    """The largest relative difference between two runs of a co-location."""
    pairs = zip(one.measurements, other.measurements, strict=True)
    return max(abs(a.throughput_kpps - b.throughput_kpps) / max(a.throughput_kpps, b.throughput_kpps) for a, b in pairs)
