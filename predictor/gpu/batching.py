"""The bursts in which packets of an NF arrive, over its traffic, found from how long they waited for their batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.gpu.bursts import FULLEST, Bursts, mean_wait_us
from predictor.gpu.dispersion import dispersion_of
from predictor.regression.gaussian_process import GaussianProcess
from profiles import TrafficProfile
from profiles.traffic import ATTRIBUTES

Array = NDArray[np.float64]

INPUTS = ("batch", "rate_kpps", *ATTRIBUTES)
NOISE = 0.2
"""Typical variance of measurement noise as a share of what is fitted: waits of bursty packets vary from run to run."""
FEWEST_PACKETS = 16
"""Waits for smaller batches depend on the worker as much as on bursts."""
UNDISTURBED = (0.75, 1.25)
"""Mean wait over that of a stationary stream; outside, the worker was late."""
LINES_GBPS = (np.inf, *np.geomspace(400, 2, 48).tolist())
"""Speeds of the line that are tried; infinite: packets of a burst arrive at once."""
ENOUGH = 4


@dataclass(frozen=True)
class BatchingModel:
    """How packets arrive.

    Parameters
    ----------
    size
        Logarithm of the packets of a burst, over the logarithms of the traffic.
    us_per_byte
        Distance of the packets of a burst over their size.
    low, high
        Range of each of `INPUTS` as measured.
    """

    size: GaussianProcess
    us_per_byte: float
    low: Array
    high: Array

    @classmethod
    def fit(cls, inputs: Array, mean: Array, p99: Array) -> BatchingModel:
        """Fit to measured means and p99s (us); a p99 that is NaN was not measured.

        Without any, packets are taken to arrive at random (a Poisson stream).

        Parameters
        ----------
        inputs
            Shape (N, len(INPUTS)); batches of more than one packet.
        """
        batch, rate = inputs[:, 0], inputs[:, 1]
        late = mean / mean_wait_us(batch, rate)
        usable = np.isfinite(p99) & (batch >= FEWEST_PACKETS) & (UNDISTURBED[0] < late) & (late < UNDISTURBED[1])
        if usable.sum() < ENOUGH:
            usable = np.isfinite(p99)
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        if not usable.any():
            return cls(GaussianProcess.none(len(ATTRIBUTES)), 0.0, low, high)
        # longer waits than on average, as rates of short runs vary
        gaps = p99[usable] * rate[usable] / 1000.0 / late[usable]
        found = np.array([dispersion_of(int(one), gap) for one, gap in zip(batch[usable], gaps, strict=True)])
        at = _coordinates(inputs[usable, 2:])
        us_per_byte = _line(at, rate[usable], inputs[usable, 3], found)
        sizes = np.log(_sizes(found, rate[usable], inputs[usable, 3], us_per_byte))
        return cls(GaussianProcess.fit(at, sizes[:, None], noise=NOISE), us_per_byte, low, high)

    def bursts(self, traffic: TrafficProfile) -> Bursts:
        """How packets of this traffic arrive."""
        at = _coordinates(np.array([traffic.as_tuple()]))
        return Bursts(max(float(np.exp(self.size(at)[0, 0])), 1.0), self.us_per_byte * traffic.packet_size)

    def outside(self, inputs: Array) -> list[str]:
        """Which of one row of inputs are outside what was measured, in words; a batch of one packet never is."""
        return [
            f"{name} {value:g} is outside the measured {low:g} to {high:g}"
            for name, value, low, high in zip(INPUTS, inputs, self.low, self.high, strict=True)
            if not (low <= value or (name == "batch" and value == 1)) or value > high
        ]

    def as_arrays(self) -> dict[str, NDArray[np.generic]]:
        """What was learnt, as plain arrays."""
        own: dict[str, NDArray[np.generic]] = {
            "low": self.low,
            "high": self.high,
            "us_per_byte": np.array(self.us_per_byte),
        }
        return own | {f"size.{name}": value for name, value in self.size.as_arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> BatchingModel:
        """The model that `as_arrays` returned."""
        mine = {name.partition(".")[2]: one for name, one in arrays.items() if name.startswith("size.")}
        size = GaussianProcess.from_arrays({name: np.asarray(one, np.float64) for name, one in mine.items()})
        low, high = (np.asarray(arrays[name], np.float64) for name in ("low", "high"))
        return cls(size, float(arrays["us_per_byte"]), low, high)


def _coordinates(traffic: Array) -> Array:
    flows, size, mtbr = traffic.T
    return np.column_stack([np.log(flows), np.log(size), np.log1p(mtbr)])


def _sizes(dispersions: Array, rate: Array, packet_size: Array, us_per_byte: float) -> Array:
    """Packets of a burst that have these dispersions."""
    left = 1.0 - np.minimum(rate / 1000.0 * us_per_byte * packet_size, FULLEST)
    found: Array = np.maximum((dispersions / left**2 + 1.0) / 2.0, 1.0)
    return found


def _line(at: Array, rate: Array, packet_size: Array, dispersions: Array) -> float:
    """The us per byte with which the sizes of bursts depend least on anything but traffic."""
    columns = np.column_stack([np.ones(len(at)), at, at[:, 0] ** 2])
    columns = columns[:, np.ptp(columns, axis=0) > 0] if len(at) > 1 else columns[:, :1]
    columns = np.column_stack([np.ones(len(at)), columns])
    best, least = 0.0, np.inf
    for gbps in LINES_GBPS:
        us_per_byte = 8e-3 / gbps
        if (rate / 1000.0 * us_per_byte * packet_size).max() > FULLEST:
            break
        sizes = np.log(_sizes(dispersions, rate, packet_size, us_per_byte))
        rest = sizes - columns @ np.linalg.lstsq(columns, sizes, rcond=None)[0]
        spread = float(np.abs(rest).mean())
        if spread < least:
            best, least = us_per_byte, spread
    return best
