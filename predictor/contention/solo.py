"""An NF alone on the NIC: throughput and own counters as smooth functions of its traffic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.regression.gaussian_process import Smooth

TINY = 1e-6


@dataclass(frozen=True)
class SoloModel:
    """What an NF does alone, over the traffic attributes at `attributes`.

    Parameters
    ----------
    attributes
        Positions of the traffic attributes on which throughput depends.
    throughput
        Logarithm of throughput (kpps) when accelerators cost nothing beyond their least.
    counters
        Logarithm of the seven counters; over all traffic attributes.
    """

    attributes: tuple[int, ...]
    throughput: Smooth
    counters: Smooth

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
        return cls(
            attributes,
            Smooth.fit(_axes(traffic)[:, list(attributes)], np.log(throughput)[:, None]),
            Smooth.fit(_axes(counters_at), np.log(np.maximum(counters, TINY))),
        )

    def kpps(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Throughput (kpps) at each row of `traffic`, shape (N, 3), were accelerators free."""
        rates: NDArray[np.float64] = np.exp(self.throughput(_axes(traffic)[:, list(self.attributes)])[:, 0])
        return rates

    def own_counters(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Its seven counters at each row of `traffic`, shape (N, 7)."""
        readings: NDArray[np.float64] = np.exp(self.counters(_axes(traffic)))
        return np.where(readings <= 2 * TINY, 0.0, readings)

    def as_arrays(self) -> dict[str, NDArray[np.float64]]:
        """What was learnt, as plain arrays."""
        return {
            "attributes": np.array(self.attributes, dtype=np.float64),
            **{f"throughput_{name}": array for name, array in self.throughput.as_arrays().items()},
            **{f"counters_{name}": array for name, array in self.counters.as_arrays().items()},
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.float64]]) -> SoloModel:
        """The model that `as_arrays` gave."""
        throughput, counters = (
            Smooth.from_arrays({name.removeprefix(part): array for name, array in arrays.items()})
            for part in ("throughput_", "counters_")
        )
        return cls(tuple(int(at) for at in arrays["attributes"]), throughput, counters)


def _axes(traffic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Flows and packet size count by their ratios, matches by their number."""
    return np.column_stack([np.log(np.maximum(traffic[:, :2], TINY)), traffic[:, 2]])
