"""About how long each stage of an NF takes, so that runs are chosen that a server carries. No model learns from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiler.gpu.measuring import MeasuredGpuRun
from profiles import PacedWorkload, TrafficProfile

Array = NDArray[np.float64]

SERVERS = ("pre_post", "transfer", "kernel", "return")
"""Stages in which one batch after the other is served."""
LEAST_US = 1e-3
PRIOR = 1e-2


@dataclass(frozen=True)
class StageEstimate:
    """The time of each of `SERVERS` for an NF: log-quadratic in the packets, log-linear in the traffic.

    Parameters
    ----------
    coefficients
        Shape (terms, stages).
    centre
        Logarithms of packets and traffic about which it is.
    """

    coefficients: Array
    centre: Array

    @classmethod
    def of(cls, runs: Sequence[MeasuredGpuRun]) -> StageEstimate:
        """From runs of the NF alone."""
        inputs = np.array([_inputs(run.loads[0]) for run in runs])
        centre = inputs.mean(axis=0)
        times = np.log([[max(run.stage_us(0, stage), LEAST_US) for stage in SERVERS] for run in runs])
        columns = _terms(inputs - centre)
        ridge = PRIOR * np.eye(columns.shape[1])
        ridge[0, 0] = 0.0
        coefficients = np.linalg.solve(columns.T @ columns + ridge, columns.T @ times)
        return cls(np.asarray(coefficients, dtype=np.float64), centre)

    def times_us(self, batch: int, packets: int, traffic: TrafficProfile) -> dict[str, float]:
        """Each stage's time for a batch, with at most that many packets on one SM."""
        rows = np.array([[np.log(count), *_of_traffic(traffic)] for count in (batch, packets)])
        whole, kernel = np.exp(_terms(rows - self.centre) @ self.coefficients)
        found = dict(zip(SERVERS, whole.tolist(), strict=True))
        return found | {"kernel": float(kernel[SERVERS.index("kernel")])}

    def most_kpps(self, batch: int, packets: int, traffic: TrafficProfile) -> float:
        """About the highest rate at which each stage is done with a batch when the next one comes."""
        return 1000.0 * batch / max(self.times_us(batch, packets, traffic).values())


def _inputs(load: PacedWorkload) -> list[float]:
    assert load.gpu is not None
    most = max(one.packets for one in load.gpu.minibatches)
    return [float(np.log(most)), *_of_traffic(load.traffic)]


def _of_traffic(traffic: TrafficProfile) -> list[float]:
    return [float(np.log(traffic.flows)), float(np.log(traffic.packet_size)), float(np.log1p(traffic.mtbr))]


def _terms(inputs: Array) -> Array:
    return np.column_stack([np.ones(len(inputs)), inputs, inputs[:, 0] ** 2])
