"""The law of latency: a queue whose waiting grows as 1 / (1 - u) towards full utilisation u.

Kingman's law says that packets wait for V u / (1 - u) service times, where V is how irregular arrivals and service are.
A core that polls takes packets in batches, and bursts wait for themselves even when the core is idle, so here the
latency as a whole is

    latency = 1000 / capacity_kpps * V / (1 - u),    u = rate_kpps / capacity_kpps,

and V, in packets, is measured: a smooth function of utilisation, flows and packet size that all NFs of a testbed share,
since irregularity comes from traffic mostly, times a factor of the NF. It is learned for the mean and for the p99. The
capacity is the throughput that the NF would have in the same co-location, so neighbours slow down the whole queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.regression.gaussian_process import GaussianProcess
from profiles import TrafficProfile

Array = NDArray[np.float64]

NEAREST = 3
"""Measured settings of similar traffic, of which each must have carried a utilisation for it to be predicted."""


def law_inputs(utilisation: Array, flows: Array, packet_size: Array) -> Array:
    """What irregularity depends on, shape (N, 3)."""
    return np.stack([utilisation, np.log(flows), np.log(packet_size)], axis=1)


def irregularity(latency_us: Array, capacity_kpps: Array, utilisation: Array) -> Array:
    """V of measured latencies (us), in packets."""
    value: Array = latency_us * capacity_kpps / 1e3 * (1.0 - utilisation)
    return value


@dataclass(frozen=True)
class LatencyLaw:
    """What the NFs of a testbed share.

    Parameters
    ----------
    process
        Logarithms of V of the mean and of the p99, over `law_inputs`.
    settings
        Of each co-location that was measured, logarithms of the flows and of the packet size; shape (settings, 2).
    carried
        The largest utilisation of each at which latency was measured; shape (settings,).
    least
        The smallest utilisation that was measured; below, V is taken as there.
    """

    process: GaussianProcess
    settings: Array
    carried: Array
    least: float

    def packets(self, traffic: TrafficProfile, utilisation: Array) -> Array:
        """Mean and p99 of the latency in service times (1000 / capacity_kpps us), shape (N, 2)."""
        used = np.maximum(utilisation, self.least)
        flows, size = (np.full(len(used), value) for value in (traffic.flows, traffic.packet_size))
        value: Array = np.exp(self.process(law_inputs(used, flows, size))) / (1.0 - utilisation)[:, None]
        return value

    def most(self, traffic: TrafficProfile) -> float:
        """The largest utilisation that is predicted: all of the settings of the most similar traffic carried it.

        The longer bursts are, the sooner packets are lost, and then there is no latency to predict.
        """
        low, high = self.settings.min(axis=0), self.settings.max(axis=0)
        here = np.log([traffic.flows, traffic.packet_size])
        distance = np.abs((self.settings - here) / np.where(high > low, high - low, 1.0)).sum(axis=1)
        nearest = np.sort(distance)[:NEAREST][-1]
        return float(self.carried[distance <= nearest].min())

    def as_arrays(self) -> dict[str, Array]:
        """What was learnt, as plain arrays."""
        own = {"settings": self.settings, "carried": self.carried, "least": np.array(self.least)}
        return {f"process_{name}": values for name, values in self.process.as_arrays().items()} | own

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> LatencyLaw:
        """The law that `as_arrays` returned."""
        process = {name.removeprefix("process_"): values for name, values in arrays.items()}
        return cls(GaussianProcess.from_arrays(process), arrays["settings"], arrays["carried"], float(arrays["least"]))
