"""Gaussian process with the paper's kernel, Constant * (DotProduct + RBF) + White (van Rossem et al., section 3.3)."""

import warnings
from typing import Self

import numpy as np

from predictor.chains.regressor import REGRESSORS, Regressor
from predictor.chains.settings import InputScale, Settings
from profiles.arrays import Floats

LEAST_SHARE = 0.1  # a prediction is at least this share of the smallest measured value
MOST_SETTINGS = 400  # settings it learns from; time grows with their third power


@REGRESSORS.register("gaussian-process")
class GaussianProcessOfThePaper(Regressor):
    """A smooth function of the measure itself, not of its logarithm."""

    def fit(self, settings: Settings) -> Self:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

        every = -(-len(settings) // MOST_SETTINGS)
        self.scale_ = InputScale.of(settings.inputs)
        self.least_ = float(settings.value.min()) * LEAST_SHARE
        kernel = ConstantKernel() * (DotProduct() + RBF()) + WhiteKernel(0.1)
        self.model_ = GaussianProcessRegressor(kernel, normalize_y=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model_.fit(self.scale_(settings.inputs)[::every], settings.value[::every])
        return self

    def predict(self, inputs: Floats) -> Floats:
        return np.asarray(np.log(np.maximum(self.model_.predict(self.scale_(inputs)), self.least_)))
