"""Where latency is measured: the traffic of an NF, and the NFs beside it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from profiler.sampling import EvenPoints, at, traffic_ranges, traffic_with
from profiles import ChainLoad, CoLocation, Load, NfDescription, PacedWorkload, TestbedDescription, Workload
from profiles.description import NULL_NF

ALONE, BESIDE = 4, 4
"""Settings of each NF alone, and beside others: the first at default traffic, the others evenly over all traffic."""
DEFAULT_BESIDE = 2
"""Of those beside others, how many have default traffic."""


@dataclass(frozen=True, slots=True)
class LatencySetting:
    """An NF with its traffic, and the NFs beside it, which are as fast as they go, at default traffic."""

    workload: Workload
    others: CoLocation = ()

    def loads(self, description: TestbedDescription, rate_kpps: float = 0.0) -> tuple[Load, ...]:
        """What runs: the NF first, at this rate; at 0 it is as fast as it goes."""
        return at_rate(description, self.workload, rate_kpps), *self.others


def offers_rates(description: TestbedDescription) -> bool:
    """Whether a testbed offers packets to NFs at a rate, or at least to chains, of which an NF is one of one stage."""
    return description.paced or description.chains


def at_rate(description: TestbedDescription, workload: Workload, rate_kpps: float) -> Load:
    """The NF at this rate (kpps), or for 0 as fast as it goes, such that the testbed measures latency at a rate.

    Where only chains have rates, it is a chain of one stage on one core, in a closed loop, too: that is not the same
    program.
    """
    if not description.paced:
        return ChainLoad.of([workload.nf], [[0]], workload.traffic, rate_kpps=rate_kpps)
    return PacedWorkload(workload, rate_kpps) if rate_kpps else workload


def draw_settings(description: TestbedDescription, nf: NfDescription, seed: int) -> list[LatencySetting]:
    """The settings of one NF: alone at several traffic profiles, then beside random NFs that fit the NIC with it."""
    rng = np.random.default_rng([seed, zlib.crc32(nf.name.encode()), 2])
    ranges = traffic_ranges(description)
    spots = EvenPoints(len(ranges), rng).take(ALONE + BESIDE - 1 - DEFAULT_BESIDE).tolist()
    traffics = [
        traffic_with(
            description.traffic, {name: at(ranges[name], where) for name, where in zip(ranges, spot, strict=True)}
        )
        for spot in spots
    ]
    alone = [description.traffic, *traffics[: ALONE - 1]]
    beside = [*[description.traffic] * DEFAULT_BESIDE, *traffics[ALONE - 1 :]]
    settings = [LatencySetting(Workload(nf.name, traffic)) for traffic in alone]
    settings += [
        LatencySetting(Workload(nf.name, traffic), _others(description, nf, (at_all + 1) / BESIDE, rng))
        for at_all, traffic in enumerate(beside)
    ]
    return list(dict.fromkeys(settings))


def _others(description: TestbedDescription, nf: NfDescription, share: float, rng: Generator) -> CoLocation:
    """Random NFs on this share of the cores that are left."""
    left = description.nic.cores - nf.cores
    free = max(round(share * left), min(left, 1))
    others = []
    while fitting := [one for one in description.fitting_nfs if one.cores <= free and one.name != NULL_NF]:
        others.append(fitting[int(rng.integers(len(fitting)))])
        free -= others[-1].cores
    return tuple(sorted(Workload(one.name, description.traffic) for one in others))
