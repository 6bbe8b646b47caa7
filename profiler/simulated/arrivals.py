"""Arrival of packets: bursts of random length at a mean rate. A burst has a geometrically distributed number of
packets, which follow each other at the speed of the port; the gaps between bursts are Weibull distributed (shape 1 is
exponential, less has a heavier tail), and their mean is such that packets come at the rate. The fewer flows, the longer
bursts are: 60 packets of one flow, 3.6 of 16,000, 1.5 of 500,000. A rate above that of the port is cut to it."""

from math import gamma

import numpy as np
from numpy.random import Generator

from profiles.arrays import Floats

LONGEST_BURST = 64.0
HALVING_FLOWS = 30.0  # flows at which bursts are about half as long as of one
FRAME_BYTES = 20  # on the wire, between packets: preamble and gap


def mean_burst(flows: float) -> float:
    """Packets per burst, of this many flows."""
    return 1.0 + (LONGEST_BURST - 1.0) / (1.0 + float(np.sqrt(flows / HALVING_FLOWS)))


def wire_us(packet_size: float, port_gbps: float) -> float:
    """Time between packets of a burst."""
    return (packet_size + FRAME_BYTES) * 8e-3 / port_gbps


def arrivals(rate_kpps: float, burst: float, wire: float, shape: float, until_us: float, rng: Generator) -> Floats:
    """Times (us) of the packets that arrive before `until_us`, in order. `rate_kpps`: mean rate. `burst`: mean packets
    per burst. `wire`: time between packets of a burst (us). `shape`: of the Weibull distribution of gaps."""
    gap_us = burst * (1e3 / rate_kpps - wire)
    if gap_us <= 0:
        return np.asarray(np.arange(0.0, until_us, wire) + rng.uniform(0, wire))
    found = []
    start = -rng.uniform() * 1e3 * burst / rate_kpps
    while start < until_us:
        number = max(16, int(1.05 * (until_us - start) * rate_kpps / 1e3 / burst) + 64)
        sizes = rng.geometric(1 / burst, number)
        gaps = rng.weibull(shape, number) * (gap_us / gamma(1 + 1 / shape))
        starts = start + np.concatenate([[0.0], np.cumsum(sizes * wire + gaps)])
        firsts = np.cumsum(sizes) - sizes
        times = np.repeat(starts[:-1] - firsts * wire, sizes) + np.arange(sizes.sum()) * wire
        found.append(times)
        start = float(starts[-1])
    every = np.concatenate(found)
    return every[np.searchsorted(every, 0.0) : np.searchsorted(every, until_us)]
