"""Random piecewise curves whose truth is known.

Distributions: 1 to 5 segments, equally likely as far as each can have at least 20 points and a tenth of the span; 40 to
200 points, evenly spaced on the axis and shifted by up to a third of a gap; half of the axes are linear, from 1 to 100,
1,000 or 100,000, and half logarithmic, from 1 to 10^3, 10^4, 10^5 or 10^6. Families are equally likely: constant,
linear, quadratic, log, inverse, exp; across a segment the value changes by 10 to 60 %, up or down (constant: not at
all). Half of the breakpoints are jumps, by 10 to 35 % of the value and at least five times the noise; the others are
bends: there either curve, continued to the middle of the other, is off by at least 20 % and ten times the noise. The
noise is normal and relative, 0.5 to 3 %, its logarithm a little denser towards 0.5 (median 1.1 %); in a quarter of the
curves each segment has its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiles.arrays import Floats

FAMILIES = ("constant", "linear", "quadratic", "log", "inverse", "exp")
LEAST_POINTS, LEAST_SHARE = 20, 0.1
TRIES = 1000


@dataclass(frozen=True)
class Piece:
    """y = level * (1 + change * shape(x)), with shape 0 at start and 1 at end."""

    family: str
    start: float
    end: float
    level: float
    change: float
    form: float

    def __call__(self, x: Floats) -> Floats:
        return np.asarray(self.level * (1.0 + self.change * self._shape(x)))

    def _shape(self, x: Floats) -> Floats:
        share = (x - self.start) / (self.end - self.start)
        if self.family == "quadratic":
            return np.asarray((1.0 - self.form) * share + self.form * share**2)
        if self.family == "log":
            return np.asarray(np.log(x / self.start) / np.log(self.end / self.start))
        if self.family == "inverse":
            return np.asarray((1 / self.start - 1 / x) / (1 / self.start - 1 / self.end))
        if self.family == "exp":
            return np.asarray(np.expm1(self.form * share) / np.expm1(self.form))
        return np.asarray(share)


@dataclass(frozen=True)
class RandomCurve:
    """Points with noise, and the truth behind them."""

    x: Floats
    y: Floats
    x_log: bool
    pieces: tuple[Piece, ...]
    jumps: tuple[bool, ...]

    @property
    def breakpoints(self) -> list[float]:
        """True places."""
        return [piece.start for piece in self.pieces[1:]]

    @property
    def families(self) -> list[str]:
        """True families, by segment."""
        return [piece.family for piece in self.pieces]

    def truth(self, x: Floats) -> Floats:
        """y without noise."""
        which = np.searchsorted(self.breakpoints, x, side="right")
        y = np.empty_like(x)
        for number, piece in enumerate(self.pieces):
            y[which == number] = piece(x[which == number])
        return y

    def axis(self, x: Floats | Sequence[float]) -> Floats:
        """Places on the axis from 0 to 1."""
        low, high = self.x.min(), self.x.max()
        if self.x_log:
            return np.asarray(np.log(np.asarray(x) / low) / np.log(high / low))
        return np.asarray((np.asarray(x) - low) / (high - low))

    def fresh(self, count: int = 500) -> Floats:
        """x evenly spaced on the axis."""
        low, high = float(self.x.min()), float(self.x.max())
        return np.geomspace(low, high, count) if self.x_log else np.linspace(low, high, count)

    def matched(self, found: Sequence[float]) -> list[tuple[int, int]]:
        """Pairs (number of a true breakpoint, number of a found one) within 2 % of the span or 1.5 sample gaps."""
        near = max(0.02, 1.5 * (1.0 / (len(np.unique(self.x)) - 1)))
        true, places = self.axis(self.breakpoints), self.axis(found)
        pairs = sorted((abs(t - f), i, j) for i, t in enumerate(true) for j, f in enumerate(places))
        matches: list[tuple[int, int]] = []
        for distance, i, j in pairs:
            if distance <= near and all(i != a and j != b for a, b in matches):
                matches.append((i, j))
        return matches


def random_curve(seed: int) -> RandomCurve:
    """The curve of that seed."""
    rng = np.random.default_rng(seed)
    points = int(rng.integers(40, 201))
    x_log = bool(rng.random() < 0.5)
    high = float(10 ** rng.integers(3, 7)) if x_log else float(rng.choice([100.0, 1_000.0, 100_000.0]))
    steps = (np.arange(points) + np.r_[0.0, rng.uniform(-1 / 3, 1 / 3, points - 2), 0.0]) / (points - 1)
    x = high**steps if x_log else 1.0 + (high - 1.0) * steps
    least = max(LEAST_SHARE, LEAST_POINTS / points)
    count = int(rng.integers(1, min(5, int(1 / least)) + 1))
    noise = _noise(rng, count) if rng.random() < 0.25 else np.full(count, _noise(rng, 1)[0])
    shares = np.r_[0.0, np.cumsum(least + (1.0 - count * least) * rng.dirichlet(np.full(count, 2.0)))[:-1], 1.0]
    places = high**shares if x_log else 1.0 + (high - 1.0) * shares
    pieces = [_piece(rng, places[0], places[1], 10 ** rng.uniform(1, 4))]
    jumps: list[bool] = []
    for number in range(1, len(places) - 1):
        start, end = places[number], places[number + 1]
        jump, last = bool(rng.random() < 0.5), pieces[-1]
        there = float(last(np.array([start]))[0])
        around = max(noise[number - 1], noise[number])
        for _ in range(TRIES):
            size = rng.choice([-1, 1]) * rng.uniform(max(0.1, 5 * around), 0.35) if jump else 0.0
            piece = _piece(rng, start, end, there * (1 + size))
            if jump or min(_difference(last, piece, places[number - 1 : number + 2], x_log)) >= max(0.2, 10 * around):
                break
        pieces.append(piece)
        jumps.append(jump)
    curve = RandomCurve(x, x, x_log, tuple(pieces), tuple(jumps))
    of_point = noise[np.searchsorted(places[1:-1], x, side="right")]
    return RandomCurve(x, curve.truth(x) * (1 + of_point * rng.normal(size=points)), x_log, curve.pieces, curve.jumps)


def _noise(rng: np.random.Generator, count: int) -> Floats:
    return np.asarray(0.005 * 6 ** (rng.random(count) ** 1.25))


def _difference(last: Piece, piece: Piece, places: Floats, x_log: bool) -> Floats:
    """By which share the two differ, each continued to the middle of the other."""
    middle = np.sqrt(places[:-1] * places[1:]) if x_log else (places[:-1] + places[1:]) / 2
    with np.errstate(all="ignore"):
        return np.asarray(
            np.nan_to_num(np.abs(np.log(np.maximum(last(middle), 1e-9) / np.maximum(piece(middle), 1e-9))))
        )


def _piece(rng: np.random.Generator, start: float, end: float, level: float) -> Piece:
    family = str(rng.choice(FAMILIES))
    change = 0.0 if family == "constant" else float(rng.choice([-1, 1]) * rng.uniform(0.1, 0.6))
    form = {
        "quadratic": float(rng.choice([-1, 1]) * rng.uniform(0.5, 1.0)),
        "exp": float(rng.choice([-1, 1]) * rng.uniform(1.0, 4.0)),
    }
    return Piece(family, float(start), float(end), level, change, form.get(family, 0.0))
