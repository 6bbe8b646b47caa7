"""What is measured of each placed chain: traffic and offered loads, several times each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from statistics import fmean

import numpy as np

from profiler.chains.plan import ChainOnCores
from profiler.sampling import EvenPoints, at, neat, traffic_ranges, traffic_with
from profiler.solo_repeats import SoloRepeats
from profiler.testbed import Measurement
from profiles import ChainLoad, TestbedDescription, TrafficProfile
from profiles.chain_table import CHAIN_KPPS, LATENCY_COLUMNS, dropped_column, key_of, leaving_column

TRAFFICS = 4
"""Traffic profiles of each chain: the default, and others evenly over all attributes."""
LOADS = (0.5, 0.9)
"""Offered loads of an open loop at default traffic, as shares of what the chain reached in a closed loop."""
REPEATS = 2

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class MeasuredChain:
    """A chain that ran, with its repeats."""

    load: ChainLoad
    runs: Sequence[Measurement]

    def rows(self) -> list[Row]:
        """The rows of `chains.csv`."""
        return [self._row(repeat, one) for repeat, one in enumerate(self.runs)]

    def _row(self, repeat: int, one: Measurement) -> Row:
        row: Row = {**key_of(self.load, repeat), CHAIN_KPPS: one.throughput_kpps}
        for at_stage, stage in enumerate(one.stages):
            row |= {leaving_column(at_stage): stage.throughput_kpps, dropped_column(at_stage): stage.dropped_pct}
        if one.latency_us:
            row |= dict(zip(LATENCY_COLUMNS, astuple(one.latency_us), strict=True))
        return row


def point_runs(chains: Sequence[ChainOnCores], repeats: int) -> int:
    """How many runs `measure_points` takes."""
    return len(chains) * (TRAFFICS + len(LOADS)) * repeats


def measure_points(
    runs: SoloRepeats,
    chains: Sequence[ChainOnCores],
    description: TestbedDescription,
    *,
    repeats: int = REPEATS,
    seed: int = 0,
) -> list[MeasuredChain]:
    """Each chain in a closed loop at every traffic, then in an open loop at default traffic.

    Raises
    ------
    TestbedError
        When the testbed fails.
    """
    traffics = chain_traffics(description, seed)
    closed = [
        ChainLoad(chain.stages, chain.cores, traffic, 0.0, chain.shares) for chain in chains for traffic in traffics
    ]
    reached = runs.measure(closed, repeats)
    opened = [
        replace(load, rate_kpps=neat(share * fmean(one.throughput_kpps for one in found)))
        for load, found in reached.items()
        if load.traffic == description.traffic
        for share in LOADS
    ]
    measured = reached | runs.measure(opened, repeats)
    order = {chain: place for place, chain in enumerate(chains)}
    in_order = sorted(measured, key=lambda load: order[ChainOnCores(load.stages, load.cores, load.shares)])
    return [MeasuredChain(load, measured[load]) for load in in_order]


def chain_traffics(description: TestbedDescription, seed: int) -> list[TrafficProfile]:
    """The traffic of every chain, so that chains can be compared with their NFs alone."""
    ranges = traffic_ranges(description)
    others = EvenPoints(len(ranges), np.random.default_rng([seed, TRAFFICS])).take(TRAFFICS - 1).tolist()
    spots = [dict(zip(ranges, spot, strict=True)) for spot in others]
    traffics = [
        traffic_with(description.traffic, {name: at(ranges[name], position) for name, position in spot.items()})
        for spot in spots
    ]
    return list(dict.fromkeys([description.traffic, *traffics]))
