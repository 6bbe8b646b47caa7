"""The bursts in which packets of an NF arrive, over its traffic, found from how long they waited for their batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictor.regression.gaussian_process import GaussianProcess
from profiles import TrafficProfile
from profiles.arrays import Floats
from profiles.traffic import ATTRIBUTES

if TYPE_CHECKING:
    from scipy.interpolate import RectBivariateSpline


BATCHING_INPUTS = ("batch", "rate_kpps", *ATTRIBUTES)
TYPICAL_NOISE = 0.2
"""Typical variance of measurement noise as a share of what is fitted: waits of bursty packets vary from run to run."""
FEWEST_PACKETS = 16  # waits for smaller batches depend on the worker as much as on bursts
STEADY_RATIOS = (0.75, 1.25)  # mean wait over that of a stationary stream; outside, the worker was late
LINES_GBPS = (np.inf, *np.geomspace(400, 2, 48).tolist())
"""Speeds of the line that are tried; infinite: packets of a burst arrive at once."""
ENOUGH_RUNS = 4


@dataclass(frozen=True)
class BatchingModel:
    """How packets arrive."""

    size: GaussianProcess  # logarithm of the packets of a burst, over the logarithms of the traffic
    us_per_byte: float  # distance of the packets of a burst over their size
    low: Floats
    high: Floats  # range of each of `BATCHING_INPUTS` as measured

    @classmethod
    def fit(cls, inputs: Floats, mean: Floats, p99: Floats) -> BatchingModel:
        """Fit to measured means and p99s (us); a p99 that is NaN was not measured. Without any, packets are taken to
        arrive at random (a Poisson stream). `inputs`: shape (N, len(INPUTS)); batches of more than one packet."""
        batch, rate = inputs[:, 0], inputs[:, 1]
        late = mean / mean_wait_us(batch, rate)
        usable = np.isfinite(p99) & (batch >= FEWEST_PACKETS) & (STEADY_RATIOS[0] < late) & (late < STEADY_RATIOS[1])
        if usable.sum() < ENOUGH_RUNS:
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
        return cls(GaussianProcess.fit(at, sizes[:, None], noise=TYPICAL_NOISE), us_per_byte, low, high)

    def bursts(self, traffic: TrafficProfile) -> Bursts:
        """How packets of this traffic arrive."""
        at = _coordinates(np.array([traffic.as_tuple()]))
        return Bursts(max(float(np.exp(self.size(at)[0, 0])), 1.0), self.us_per_byte * traffic.packet_size)

    def outside(self, inputs: Floats) -> list[str]:
        """Which of one row of inputs are outside what was measured, in words; a batch of one packet never is."""
        return [
            f"{name} {value:g} is outside the measured {low:g} to {high:g}"
            for name, value, low, high in zip(BATCHING_INPUTS, inputs, self.low, self.high, strict=True)
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


def _coordinates(traffic: Floats) -> Floats:
    flows, size, mtbr = traffic.T
    return np.column_stack([np.log(flows), np.log(size), np.log1p(mtbr)])


def _sizes(dispersions: Floats, rate: Floats, packet_size: Floats, us_per_byte: float) -> Floats:
    """Packets of a burst that have these dispersions."""
    left = 1.0 - np.minimum(rate / 1000.0 * us_per_byte * packet_size, FULLEST_LINE)
    found: Floats = np.maximum((dispersions / left**2 + 1.0) / 2.0, 1.0)
    return found


def _line(at: Floats, rate: Floats, packet_size: Floats, dispersions: Floats) -> float:
    """The us per byte with which the sizes of bursts depend least on anything but traffic."""
    columns = np.column_stack([np.ones(len(at)), at, at[:, 0] ** 2])
    columns = columns[:, np.ptp(columns, axis=0) > 0] if len(at) > 1 else columns[:, :1]
    columns = np.column_stack([np.ones(len(at)), columns])
    best, least = 0.0, np.inf
    for gbps in LINES_GBPS:
        us_per_byte = 8e-3 / gbps
        if (rate / 1000.0 * us_per_byte * packet_size).max() > FULLEST_LINE:
            break
        sizes = np.log(_sizes(dispersions, rate, packet_size, us_per_byte))
        rest = sizes - columns @ np.linalg.lstsq(columns, sizes, rcond=None)[0]
        spread = float(np.abs(rest).mean())
        if spread < least:
            best, least = us_per_byte, spread
    return best


# The dispersion of packets' distances, found from the p99 of their wait for a batch.
#
# The time of n gaps is taken as gamma distributed with mean n and variance J n, in mean gaps; the wait of a packet is a
# mixture over its positions in the batch.


TAIL_QUANTILE = 0.99
DISPERSION_RANGE = (1e-3, 1e3)
DISPERSION_COUNT = 31  # dispersions of the table of quantiles
TABLE_BATCHES = (2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536)
"""Batches of the table of quantiles."""
PACKET_POSITIONS = 64  # positions of packets in a batch that stand for all of a larger one
SOLVER_STEPS = 32


def p99_gaps(batch: Floats, dispersion: Floats) -> Floats:
    """The p99 of the wait for batches of these sizes, in mean gaps, interpolated; 0 for a batch of one packet."""
    bounded = np.clip(np.log(dispersion), *np.log(DISPERSION_RANGE))
    smooth = np.exp(_table()(np.log(np.clip(batch, TABLE_BATCHES[0], TABLE_BATCHES[-1])), bounded, grid=False))
    found: Floats = np.where(batch < 2, 0.0, smooth * (batch - 1))
    return found


def dispersion_of(batch: int, gaps: float) -> float:
    """The dispersion at which the p99 of the wait, in mean gaps, is as measured; the nearest where there is none."""
    grid = np.geomspace(*DISPERSION_RANGE, 4 * DISPERSION_COUNT)
    p99s = p99_gaps(np.full(len(grid), float(batch)), grid)
    highest = int(np.argmax(p99s))
    rising = np.maximum.accumulate(p99s[: highest + 1])
    return float(np.exp(np.interp(gaps, rising, np.log(grid[: highest + 1]))))


def exact_p99_gaps(batch: int, dispersion: float) -> float:
    """As `p99_gaps` for one batch, without the table: the quantile of a mixture of gamma distributions."""
    from scipy.special import gammainc

    gaps = np.arange(batch, dtype=np.float64)
    if batch > PACKET_POSITIONS:
        gaps = (np.arange(PACKET_POSITIONS) + 0.5) / PACKET_POSITIONS * (batch - 1)
    shapes = gaps[gaps > 0] / dispersion
    at_once = int((gaps == 0).sum())
    low, high = 0.0, (batch - 1) * (1.0 + 20.0 * np.sqrt(dispersion / (batch - 1))) + 40.0 * dispersion
    for _ in range(SOLVER_STEPS):
        middle = 0.5 * (low + high)
        below = (gammainc(shapes, middle / dispersion).sum() + at_once) / len(gaps)
        low, high = (middle, high) if below < TAIL_QUANTILE else (low, middle)
    return float(0.5 * (low + high))


@cache
def _table() -> RectBivariateSpline:
    """Logarithm of the p99 over the gaps of a whole batch, over the logarithms of batch and dispersion."""
    from scipy.interpolate import RectBivariateSpline

    dispersions = np.geomspace(*DISPERSION_RANGE, DISPERSION_COUNT)
    values = [
        [exact_p99_gaps(batch, dispersion) / (batch - 1) for dispersion in dispersions.tolist()]
        for batch in TABLE_BATCHES
    ]
    return RectBivariateSpline(np.log(TABLE_BATCHES), np.log(dispersions), np.log(np.maximum(values, 1e-6)), kx=3, ky=3)


# How packets arrive, and how long they wait until their batch is complete.
#
# The mean needs no model: in a stationary stream, the packets of a batch of b wait (b - 1) / 2 gaps on average, however
# they arrive. The rest does. Packets are taken to come in bursts of a geometric number of packets at a fixed distance,
# and bursts at random (exponential) distances. The gaps of such a stream are independent, with the index of dispersion
# J = (2 size - 1) (1 - rate distance)^2: 1 for a Poisson stream, more for bursts, less on a line that is nearly full
# (Sriram & Whitt, Characterizing superposition arrival processes, 1986).


FULLEST_LINE = 0.95  # the share of the line that a stream takes at most


def mean_wait_us(batch: Floats, rate_kpps: Floats) -> Floats:
    """Mean wait of the packets of a batch, us."""
    value: Floats = 500.0 * (batch - 1) / rate_kpps
    return value


@dataclass(frozen=True)
class Bursts:
    """A stream of packets."""

    size: float  # mean packets of a burst, at least 1
    distance_us: float = 0.0  # between the packets of a burst

    def batches(self, batch: int, rate_kpps: float, count: int, rng: Generator) -> BatchArrivals:
        """That many batches at a mean rate; the first begins at a random time."""
        gap = 1000.0 / rate_kpps
        distance = min(self.distance_us, FULLEST_LINE * gap)
        pause = self.size * (gap - distance)
        pauses = rng.binomial(batch, 1.0 / self.size, count)
        paused = np.where(pauses > 0, rng.gamma(np.maximum(pauses, 1), pause), 0.0)
        # a sample of the mean rate: only its variation is random
        if paused.sum() > 0:
            paused *= count * batch * (gap - distance) / paused.sum()
        return BatchArrivals(batch, distance, pauses, paused)


@dataclass(frozen=True)
class BatchArrivals:
    """Batches as they become complete."""

    batch: int  # packets of each
    distance_us: float  # between packets of a burst
    pauses: NDArray[np.int64]  # pauses between bursts in each batch, shape (batches,)
    paused_us: Floats  # how long they are together, shape (batches,)

    @property
    def periods_us(self) -> Floats:
        """From each batch to the next, shape (batches,)."""
        value: Floats = self.batch * self.distance_us + self.paused_us
        return value

    def waits_us(self, skip: int, packets: int, rng: Generator) -> Floats:
        """How long some packets of each batch after the first `skip` wait for the last, shape (batches, packets)."""
        pauses, paused = self.pauses[skip:, None], self.paused_us[skip:, None]
        shape = (len(pauses), packets)
        # positions evenly over the batch; a packet with n after it waits for n gaps
        after = np.floor((np.arange(packets) + rng.random(shape)) / packets * self.batch).astype(np.int64)
        theirs = rng.hypergeometric(np.broadcast_to(pauses, shape), self.batch - pauses, after)
        share = np.where(theirs > 0, rng.beta(np.maximum(theirs, 1), np.maximum(pauses - theirs, 1e-9)), 0.0)
        value: Floats = after * self.distance_us + np.where(theirs == pauses, np.sign(theirs), share) * paused
        return value
