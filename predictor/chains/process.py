"""A Gaussian process with a trend, fitted 2 to 9 times as fast as scikit-learn fits the same one.

Gaussian process regression (Rasmussen & Williams, 2006, chapters 2 and 5) with constant, linear and Matérn kernels, a
nugget, and priors on their parameters. scikit-learn's, with `alpha` per measurement and an optimiser that adds the
priors, predicts the same to 1e-5 of the logarithm; 20 to 150 points of 1 to 6 inputs take it 4.7 times as long (the
median of 18 fits), and a chain needs dozens of fits.

Beside `predictor.regression.gaussian_process`, this one knows the noise of every measurement, since settings are
repeated differently often, has a linear trend, which continues beyond what was measured, and returns its own error."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from profiles.arrays import Floats

ROOT5 = 5**0.5
TUNED_ON = 150  # measurements on which lengths and amplitudes are tuned; more hardly change them
SOLVED_AT_ONCE = 1000
NEAREST_MEASUREMENTS = 64  # with more measurements than `SOLVED_AT_ONCE`, a prediction uses this many of the nearest
TUNING_STEPS = 60
MOST_PRIOR_SPREADS = 8.0  # parameters stay within this many of their prior's spreads
LEAST_VARIANCE = 1e-8
SAME_POINT_DISTANCE = 1e-18  # squared distance, in lengths, below which two points are the same one


@dataclass(frozen=True)
class Typical:
    """What is assumed of a parameter before measurements: its typical value, and its spread in natural logarithms."""

    value: float
    spread: float


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of a process."""

    constant: Typical  # standard deviation of the function's level
    slope: Typical  # standard deviation of the trend along each input's range
    amplitude: Typical  # standard deviation of the smooth deviation from the trend
    length: Typical  # the length in which the deviation changes, as a share of an input's range
    nugget: Typical
    """Standard deviation of what a point has of its own: it recurs when the point is measured again, but its neighbours
    do not show it."""

    def ordered(self, inputs: int) -> list[Typical]:
        """The parameters in the order in which they are tuned."""
        return [self.constant, self.slope, self.amplitude, self.nugget, *[self.length] * inputs]


@dataclass(frozen=True)
class SmoothProcess:
    """A function of several inputs, known at some points with noise."""

    points: Floats  # where it was measured, each input as a share of its range. Shape (points, inputs).
    outputs: Floats  # what was measured, shape (points,)
    variance: Floats  # variance of the noise of each, shape (points,)
    parameters: Floats  # standard deviations of level, trend, deviation and nugget, then the length of each input

    @classmethod
    def fit(
        cls, points: Floats, outputs: Floats, variance: Floats, assumed: Assumptions, *, iterations: int = TUNING_STEPS
    ) -> "SmoothProcess":
        """The process with the most likely parameters; fewer iterations find less likely ones."""
        # at random, since every n-th point of a grid may be one value of an input
        some = np.sort(np.random.default_rng(0).permutation(len(points))[:TUNED_ON])
        typical = assumed.ordered(points.shape[1])
        parameters = _tune(points[some], outputs[some], variance[some], typical, iterations)
        return cls(points, outputs, variance, parameters)

    def with_measurements(self, points: Floats, outputs: Floats, variance: Floats) -> "SmoothProcess":
        """The process with the same parameters, given these measurements instead."""
        return replace(self, points=points, outputs=outputs, variance=variance)

    def __call__(self, inputs: Floats) -> tuple[Floats, Floats]:
        """The function at `inputs`, shape (N, inputs), and the standard deviation of its error; each of shape (N,). At
        a point that was measured, the function has what the point has of its own; elsewhere this is part of the
        error."""
        if not len(inputs) or not len(self.points):
            return np.zeros(len(inputs)), np.sqrt(self._own_variance(inputs))
        if len(self.points) > SOLVED_AT_ONCE:
            return self._by_nearest(inputs)
        from scipy.linalg import solve_triangular

        between = self._covariance(inputs, self.points)
        known = solve_triangular(self._factor[0], between.T, lower=True)
        variance = np.maximum(self._own_variance(inputs) - (known**2).sum(axis=0), LEAST_VARIANCE)
        return between @ self._weights, np.sqrt(variance)

    def left_out(self) -> tuple[Floats, Floats]:
        """Error of each output as predicted from the others, and its standard deviation; each of shape (points,).
        Rasmussen & Williams, section 5.4.2. The standard deviation contains the noise of the output."""
        if len(self.points) > SOLVED_AT_ONCE:
            values, errors = self._by_nearest(self.points, skip=1)
            return self.outputs - values, np.sqrt(errors**2 + self._noise(self.variance))
        from scipy.linalg import cho_solve

        inverse = cho_solve(self._factor, np.eye(len(self.points)))
        own = np.diag(inverse)
        return inverse @ self.outputs / own, 1 / np.sqrt(own)

    @cached_property
    def _weights(self) -> Floats:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self._factor, self.outputs))

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        from scipy.linalg import cho_factor

        covariance = self._covariance(self.points, self.points)
        covariance[np.diag_indices(len(covariance))] += self._noise(self.variance)
        factor, lower = cho_factor(covariance, lower=True)
        return factor, bool(lower)

    def _noise(self, variance: Floats) -> Floats:
        return np.asarray(variance + LEAST_VARIANCE)

    def _covariance(self, left: Floats, right: Floats) -> Floats:
        constant, slope, amplitude, nugget = self.parameters[:4]
        lengths = self.parameters[4:]
        squared = _square_distances(left / lengths, right / lengths)
        covariance: Floats = constant**2 + slope**2 * (left @ right.T) + amplitude**2 * _matern(squared)
        covariance += nugget**2 * (squared < SAME_POINT_DISTANCE)
        return covariance

    def _own_variance(self, inputs: Floats) -> Floats:
        constant, slope, amplitude, nugget = self.parameters[:4]
        own: Floats = constant**2 + slope**2 * (inputs**2).sum(axis=1) + amplitude**2 + nugget**2
        return own

    def _by_nearest(self, inputs: Floats, *, skip: int = 0) -> tuple[Floats, Floats]:
        from scipy.spatial import cKDTree

        lengths = self.parameters[4:]
        near = np.asarray(cKDTree(self.points / lengths).query(inputs / lengths, NEAREST_MEASUREMENTS + skip)[1])
        values, errors = np.empty(len(inputs)), np.empty(len(inputs))
        for row, chosen in enumerate(near[:, skip:]):
            local = self.with_measurements(self.points[chosen], self.outputs[chosen], self.variance[chosen])
            value, error = local(inputs[row : row + 1])
            values[row], errors[row] = value[0], error[0]
        return values, errors


def matern(left: Floats, right: Floats) -> Floats:
    """How alike points are that are measured in lengths: 1 for equal ones. Shape (len(left), len(right)). The Matérn
    kernel of 5/2 (Rasmussen & Williams, equation 4.17)."""
    return _matern(_square_distances(left, right))


def _matern(squared: Floats) -> Floats:
    distance = ROOT5 * np.sqrt(squared)
    return np.asarray((1 + distance * (1 + distance / 3)) * np.exp(-distance))


def _square_distances(left: Floats, right: Floats) -> Floats:
    """Squared distances, shape (len(left), len(right))."""
    squared = np.zeros((len(left), len(right)))
    for here, there in zip(left.T, right.T, strict=True):
        squared += np.subtract.outer(here, there) ** 2
    return squared


def _tune(points: Floats, outputs: Floats, variance: Floats, typical: Sequence[Typical], iterations: int) -> Floats:
    """The most likely parameters."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve
    from scipy.optimize import minimize

    start = np.log([parameter.value for parameter in typical])
    free = np.array([parameter.spread > 0 for parameter in typical])
    spread = np.array([parameter.spread for parameter in typical])[free]
    apart = [np.subtract.outer(column, column) ** 2 for column in points.T]
    products = points @ points.T
    count = len(points)

    def cost(free_logarithms: Floats) -> tuple[float, Floats]:
        logarithms = start.copy()
        logarithms[free] = free_logarithms
        constant, slope, amplitude, nugget = np.exp(2 * logarithms[:4])
        scaled = [squared / length**2 for squared, length in zip(apart, np.exp(logarithms[4:]), strict=True)]
        distance = ROOT5 * np.sqrt(np.add.reduce(scaled)) if scaled else np.zeros((count, count))
        decay = np.exp(-distance)
        smooth = (1 + distance * (1 + distance / 3)) * decay
        covariance = constant + slope * products + amplitude * smooth
        covariance[np.diag_indices(count)] += nugget + variance + LEAST_VARIANCE
        try:
            factor = cho_factor(covariance, lower=True)
        except LinAlgError:
            return 1e12, np.zeros(len(free_logarithms))
        solved, inverse = cho_solve(factor, outputs), cho_solve(factor, np.eye(count))
        value = 0.5 * outputs @ solved + np.log(np.diag(factor[0])).sum()
        pull = inverse - np.outer(solved, solved)
        steep = pull * (amplitude * 5 / 3 * (1 + distance) * decay)
        gradient = np.array(
            [constant * pull.sum(), slope * np.vdot(pull, products), amplitude * np.vdot(pull, smooth),
             nugget * np.trace(pull), *(0.5 * np.vdot(steep, squared) for squared in scaled)]
        )  # fmt: skip
        away = (free_logarithms - start[free]) / spread
        return float(value + 0.5 * (away**2).sum()), gradient[free] + away / spread

    bounds = list(
        zip(start[free] - MOST_PRIOR_SPREADS * spread, start[free] + MOST_PRIOR_SPREADS * spread, strict=True)
    )
    found = minimize(cost, start[free], jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": iterations})
    parameters = start.copy()
    parameters[free] = found.x
    return np.exp(parameters)
