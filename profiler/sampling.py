"""Where to measure: even coverage of ranges, and the scale on which a range is even."""

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from profiles import ATTRIBUTES, TestbedDescription, TrafficProfile

WIDE_RANGE_FACTOR = 100.0  # a range whose ends differ by this factor is searched on a logarithmic scale

Range = tuple[float, float]


class EvenPoints:
    """An endless sequence of points that fills the unit cube evenly, however many are taken. The additive recurrence of
    Roberts, a generalisation of the golden ratio sequence, shifted at random. `dimensions`: of the cube; may be zero.
    `rng`: draws the shift."""

    def __init__(self, dimensions: int, rng: Generator) -> None:
        root = 2.0
        for _ in range(64):
            root = (1 + root) ** (1 / (dimensions + 1))
        self._steps = root ** -np.arange(1, dimensions + 1)
        self._at = rng.random(dimensions)

    def take(self, count: int) -> NDArray[np.float64]:
        """The next `count` points, shape (count, dimensions)."""
        points = (self._at + np.arange(1, count + 1)[:, None] * self._steps) % 1.0
        self._at = (self._at + count * self._steps) % 1.0
        return points


def at(bounds: Range, position: float) -> float:
    """The traffic attribute value at a position in [0, 1] of its range: a whole number wherever the range holds one."""
    low, high = bounds
    return whole(bounds, low * (high / low) ** position if _wide(bounds) else low + (high - low) * position)


def position_in(bounds: Range, value: float) -> float:
    """The position at which `at` finds a value of a range whose ends differ."""
    low, high = np.log(bounds) if _wide(bounds) else bounds
    return float(((np.log(value) if _wide(bounds) else value) - low) / (high - low))


def whole(bounds: Range, value: float) -> float:
    """The nearest whole number inside the range; `value` itself, kept inside, where there is none."""
    low, high = bounds
    rounded = float(round(value))
    return rounded if low <= rounded <= high else min(max(value, low), high)


def parameter_at(bounds: Range, position: float) -> float:
    """The bench parameter value at a position in [0, 1], even on a logarithmic scale where the ends differ tenfold. The
    memory contention that NFs cause spans decades, and most of it is small compared with what a bench can cause."""
    low, high = bounds
    decades = low > 0 and high >= 10 * low
    value = low * (high / low) ** position if decades else low + (high - low) * position
    return min(max(neat(value), low), high)


def neat(value: float) -> float:
    """The value with four significant digits."""
    return float(f"{value:.4g}")


def corners(names: tuple[str, ...]) -> list[dict[str, float]]:
    """Positions 0 and 1 in every combination; only all 0 and all 1 beyond three names."""
    if len(names) > 3:
        return [dict.fromkeys(names, 0.0), dict.fromkeys(names, 1.0)]
    return [{name: float(number >> bit & 1) for bit, name in enumerate(names)} for number in range(2 ** len(names))]


def traffic_with(base: TrafficProfile, values: Mapping[str, float]) -> TrafficProfile:
    """`base` with other values for some of its attributes."""
    return TrafficProfile.from_mapping({**base.as_dict(), **values})


def _wide(bounds: Range) -> bool:
    return bounds[0] > 0 and bounds[1] / bounds[0] >= WIDE_RANGE_FACTOR


def traffic_ranges(description: TestbedDescription) -> dict[str, Range]:
    """The traffic attributes that can vary on a testbed, with their ranges."""
    ranges = {name: description.range_of(name) for name in ATTRIBUTES}
    return {name: bounds for name, bounds in ranges.items() if bounds[0] < bounds[1]}
