"""An NF alone on the NIC: throughput and own counters as smooth functions of its traffic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.regression.gaussian_process import GaussianProcess
from profiles import COUNTERS

TINY = 1e-6


@dataclass(frozen=True)
class SoloModel:
    """Throughput and counters of an NF alone, as functions of its traffic.

    Parameters
    ----------
    attributes
        Positions of the traffic attributes on which throughput depends.
    throughput
        Logarithm of throughput (kpps) with the least accelerator work.
    counters
        Logarithm of the seven counters; over all traffic attributes.
    """

    attributes: tuple[int, ...]
    throughput: GaussianProcess
    counters: GaussianProcess

    @classmethod
    def fit(
        cls,
        attributes: tuple[int, ...],
        traffic: NDArray[np.float64],
        throughput: NDArray[np.float64],
        counters_at: NDArray[np.float64],
        counters: NDArray[np.float64],
    ) -> SoloModel:
        """Learn throughput (N,) at traffic (N, 3), and counters (M, 7) at traffic (M, 3)."""
        at_throughput, at_counters = _axes(traffic)[:, list(attributes)], _axes(counters_at)
        return cls(
            attributes,
            GaussianProcess.fit(at_throughput, np.log(throughput)[:, None]),
            GaussianProcess.fit(at_counters, np.log(np.maximum(counters, TINY))),
        )

    def kpps(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Throughput (kpps) with the least accelerator work at each row of `traffic`, shape (N, 3)."""
        rates: NDArray[np.float64] = np.exp(self.throughput(_axes(traffic)[:, list(self.attributes)])[:, 0])
        return rates

    def own_counters(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Its seven counters at each row of `traffic`, shape (N, 7)."""
        readings: NDArray[np.float64] = np.exp(self.counters(_axes(traffic)))
        return np.where(readings <= 2 * TINY, 0.0, readings)

    def working_set(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Its working set (MB) at each row of `traffic`, shape (N,)."""
        return self.own_counters(traffic)[:, COUNTERS.index("wss")]

    def as_arrays(self) -> dict[str, NDArray[np.float64]]:
        """What was learnt, as plain arrays."""
        return {
            "attributes": np.array(self.attributes, dtype=np.float64),
            **{f"throughput_{name}": array for name, array in self.throughput.as_arrays().items()},
            **{f"counters_{name}": array for name, array in self.counters.as_arrays().items()},
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.float64]]) -> SoloModel:
        """The model that `as_arrays` returned."""
        throughput, counters = (
            GaussianProcess.from_arrays({name.removeprefix(part): array for name, array in arrays.items()})
            for part in ("throughput_", "counters_")
        )
        return cls(tuple(int(at) for at in arrays["attributes"]), throughput, counters)


def _axes(traffic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inputs: flows and packet size on a logarithmic scale, matches on a linear one."""
    return np.column_stack([np.log(np.maximum(traffic[:, :2], TINY)), traffic[:, 2]])
