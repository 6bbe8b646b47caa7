"""Random curves of four shapes that measurements often have, whose truth is known: what a fit finds, and how far it may
be continued.

Distributions: 7 to 60 different x, their logarithm evenly distributed, each measured once or three times; x from 1 to
100, evenly spaced or, for half of the curves, geometrically. The noise is normal and relative, 0.2 to 3 %, its
logarithm evenly distributed.

- saturating: a + b (1 - exp(-x / t)), the range 2 to 6 t, rising by 50 to 90 % of its end, or falling as far;
- staircase: 2 to 8 levels, as many as have four points or more each (two where they were measured three times); each 10
  to 40 % above the last;
- knee: proportional to x, or rising from a base, and constant from a third to two thirds of the points on;
- power: a x^b, b from 0.3 to 2.5 or from -2 to -0.3, but not 0.9 to 1.1, nor -1.1 to -0.9."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from predictor.fitting.fit import fit
from predictor.fitting.points import MeasuredCurve
from profiles.arrays import Floats

KINDS = ("saturating", "staircase", "knee", "power")
LAST_X = 100.0
RIGHT_WITHIN = 0.1  # of the truth, at twice the range


@dataclass(frozen=True)
class KnownShape:
    """A curve with noise. `x`, `y`: rows, repeats included. `families`: of the true segments."""

    x: Floats
    y: Floats
    noise: float
    families: tuple[str, ...]
    truth: Callable[[Floats], Floats]


def known_shape(kind: str, seed: int) -> KnownShape:
    """The curve of a kind and a seed."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    count = round(float(np.exp(rng.uniform(np.log(7), np.log(60)))))
    repeats = int(rng.choice([1, 3]))
    x = np.geomspace(1.0, LAST_X, count) if rng.random() < 0.5 else np.linspace(1.0, LAST_X, count)
    noise = float(np.exp(rng.uniform(np.log(0.002), np.log(0.03))))
    families, truth = _MAKERS[kind](rng, x, repeats)
    x = np.repeat(x, repeats)
    return KnownShape(x, truth(x) * (1 + noise * rng.normal(size=len(x))), noise, families, truth)


_Made = tuple[tuple[str, ...], Callable[[Floats], Floats]]


def _saturating(rng: np.random.Generator, x: Floats, repeats: int) -> _Made:
    time, rise = LAST_X / rng.uniform(2, 6), rng.uniform(0.5, 0.9)
    rising = bool(rng.random() < 0.5)

    def truth(at: Floats) -> Floats:
        left = np.exp(-at / time)
        return np.asarray(1000 * (1 - rise * left) if rising else 1000 * (1 - rise * (1 - left)))

    return ("exp",), truth


def _staircase(rng: np.random.Generator, x: Floats, repeats: int) -> _Made:
    shortest = 2 if repeats > 1 else 4
    levels = max(2, min(int(rng.integers(2, 9)), len(x) // shortest))
    room = max(len(x) - levels * shortest, 0)
    cuts = np.sort(rng.integers(0, room + 1, levels - 1))
    starts = cuts + shortest * np.arange(1, levels)
    starts = np.minimum(starts, len(x) - min(shortest, 3))
    edges = (x[starts - 1] + x[starts]) / 2
    heights = 100 * np.cumprod(np.r_[1.0, 1 + rng.uniform(0.1, 0.4, levels - 1)])
    return ("constant",) * levels, lambda at: np.asarray(heights[np.searchsorted(edges, at, side="right")])


def _knee(rng: np.random.Generator, x: Floats, repeats: int) -> _Made:
    at_knee = float(np.interp(rng.uniform(1 / 3, 2 / 3) * (len(x) - 1), np.arange(len(x)), x))
    base = float(rng.choice([0.0, rng.uniform(0.1, 0.4)]))
    return ("linear", "constant"), lambda at: 1000 * (base + (1 - base) * np.minimum(at / at_knee, 1.0))


def _power(rng: np.random.Generator, x: Floats, repeats: int) -> _Made:
    while True:
        power = float(rng.choice([rng.uniform(0.3, 2.5), rng.uniform(-2.0, -0.3)]))
        if abs(abs(power) - 1) > 0.1:
            break
    return ("power",), lambda at: 50 * at**power


_MAKERS = {"saturating": _saturating, "staircase": _staircase, "knee": _knee, "power": _power}


# What fits make of them.


@dataclass
class ShapeScore:
    """Of curves of a kind: how many have the true families; how many are continued to twice the range within 10 %, or
    not as far; and how many of them not as far."""

    right: int = 0
    reaches: int = 0
    refused: int = 0


def score_shape(kind: str, seeds: Iterable[int]) -> ShapeScore:
    """Of the curves of these seeds."""
    total = ShapeScore()
    for seed in seeds:
        curve = known_shape(kind, seed)
        model = fit(MeasuredCurve("x", "y", curve.x, curve.y))
        beyond = np.linspace(LAST_X, 2 * LAST_X, 11)
        predicted = model.predict(beyond)
        off = np.abs(predicted / curve.truth(beyond) - 1)
        total.right += tuple(segment.family for segment in model.segments) == curve.families
        total.reaches += bool(np.nanmax(np.r_[0.0, off]) <= RIGHT_WITHIN)
        total.refused += bool(np.isnan(predicted).any())
    return total
