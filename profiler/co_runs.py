"""Companies of NFs to run side by side: what benches cannot stand in for, and how far predictions err.

The models are taught by benches, and benches only resemble NFs. A few runs in real company let training correct what
that leaves, and tell how far predictions may be trusted where they will be used. One run of a company tells of each NF
in it, so few suffice. Tomur does without them; appendix F has benches only.

Each company is run twice: the difference tells the noise of a measurement, and betrays an outlier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from profiler.sampling import at, traffic_ranges, traffic_with, whole
from profiler.testbed import Run
from profiles import NfDescription, TestbedDescription, TrafficProfile, Workload

CoLocation = tuple[Workload, ...]

SHARE = 0.15
"""Of an NF's quota, for runs in real company."""
TIMES = 2
AGREE = 0.1
"""Relative difference of two runs of a company from which a third is made."""


def draw_co_locations(
    description: TestbedDescription, nf: NfDescription, count: int, rng: Generator
) -> list[CoLocation]:
    """`count` companies of `nf`, which comes first, with random NFs of the testbed, as many as happen to fit.

    A third runs at default traffic, where most NFs will run. The others run at random traffic, each NF at its own;
    whether flows are even in number or in magnitude is not for us to say, so half is drawn each way.
    """
    fitting = [one for one in description.nfs if one.cores + nf.cores <= description.nic.cores]
    if not fitting:
        return []
    return [_co_location(description, nf, fitting, index % 3, rng) for index in range(count)]


def _co_location(
    description: TestbedDescription, nf: NfDescription, partners: Sequence[NfDescription], kind: int, rng: Generator
) -> CoLocation:
    free = description.nic.cores - nf.cores
    most = free // min(one.cores for one in partners)
    members = [nf]
    for _ in range(int(rng.integers(1, most + 1))):
        one = partners[int(rng.integers(len(partners)))]
        if one.cores <= free:
            members.append(one)
            free -= one.cores
    return tuple(Workload(one.name, _traffic(description, kind, rng)) for one in members)


def _traffic(description: TestbedDescription, kind: int, rng: Generator) -> TrafficProfile:
    if kind == 0:
        return description.traffic
    ranges = traffic_ranges(description)
    spots = {name: float(spot) for name, spot in zip(ranges, rng.random(len(ranges)), strict=True)}
    by_magnitude = {name: at(ranges[name], spot) for name, spot in spots.items()}
    evenly = {name: whole(ranges[name], float(np.interp(spot, (0, 1), ranges[name]))) for name, spot in spots.items()}
    return traffic_with(description.traffic, by_magnitude if kind == 1 else evenly)


def agree(one: Run, other: Run) -> bool:
    """Whether two runs of a company tell the same of every NF."""
    return disagreement(one, other) <= AGREE


def disagreement(one: Run, other: Run) -> float:
    """The largest relative difference between two runs of a company."""
    pairs = zip(one.measurements, other.measurements, strict=True)
    return max(abs(a.throughput_kpps - b.throughput_kpps) / max(a.throughput_kpps, b.throughput_kpps) for a, b in pairs)
