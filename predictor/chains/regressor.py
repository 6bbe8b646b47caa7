"""The interface of a regressor, which turns a profile into a function, and the registry of all of them."""

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from predictor.chains.settings import Settings
from profiles.arrays import Floats
from profiles.registry import Registry


class Regressor(ABC):
    """Predicts what an NF reaches at a setting. A new one is one file in `regressors/` that registers it."""

    @abstractmethod
    def fit(self, settings: Settings) -> Self:
        """Learn from measured settings, of which there is at least one."""

    @abstractmethod
    def predict(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Natural logarithm of the measure at `inputs`, shape (N, inputs): shape (N,)."""


REGRESSORS: Registry[type[Regressor]] = Registry(
    "regressor", "predictor.chains.regressors", "placer.chain_regressors", "--regressor", first=("smooth", "monotone")
)
"""Every regressor by name: the files of `predictor/chains/regressors/`, then the entry points of other packages."""


# Polynomials with few terms: the expansion of the inputs, of which a regularised fit keeps what matters.


LEAST_SHARE = 0.1
"""A polynomial may fall below zero; a prediction is at least this share of the smallest measured value."""


class Polynomial(Regressor):
    """A polynomial of the inputs, fitted to the measure itself (van Rossem et al., section 3.3)."""

    degree: ClassVar[int]

    def linear_model(self, noise_variance: float) -> Any:
        """The regularised linear model of the expanded inputs. `noise_variance`: of the measured values, in the unit in
        which they are fitted."""
        from sklearn.linear_model import LassoLarsIC

        return LassoLarsIC(criterion="bic", noise_variance=noise_variance)

    def fit(self, settings: Settings) -> Self:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import PolynomialFeatures, StandardScaler

        self.least_ = float(settings.value.min()) * LEAST_SHARE
        self.unit_ = float(np.median(settings.value))
        values = settings.value / self.unit_
        self.model_ = None
        if len(settings) > 1:
            noise = float(np.mean(settings.variance * values**2))
            expansion = PolynomialFeatures(self.degree, include_bias=False)
            self.model_ = make_pipeline(StandardScaler(), expansion, StandardScaler(), self.linear_model(noise))
            order = np.random.default_rng(0).permutation(len(settings))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                self.model_.fit(settings.inputs[order], values[order])
        return self

    def predict(self, inputs: Floats) -> Floats:
        if self.model_ is None:
            return np.full(len(inputs), np.log(self.unit_))
        return np.asarray(np.log(np.maximum(self.model_.predict(inputs) * self.unit_, self.least_)))
