"""Gaussian process on logarithms with a trend and the noise of each setting: follows repeats as far as they agree."""

from typing import Self

import numpy as np

from predictor.chains.process import Assumptions, SmoothProcess, Typical
from predictor.chains.regressor import REGRESSORS, Regressor
from predictor.chains.settings import InputScale, Settings
from profiles.arrays import Floats

SMOOTH_PRIOR = Assumptions(
    constant=Typical(10.0, 0.0),
    slope=Typical(2.0, 0.0),
    amplitude=Typical(0.5, 1.5),
    length=Typical(0.7, 1.0),
    nugget=Typical(0.01, 1.5),
)


@REGRESSORS.register("smooth")
class Smooth(Regressor):
    """A linear trend of logarithms and a smooth deviation from it."""

    def fit(self, settings: Settings) -> Self:
        self.scale_ = InputScale.of(settings.inputs)
        logarithm = np.log(settings.value)
        self.level_ = float(np.median(logarithm))
        self.process_ = SmoothProcess.fit(
            self.scale_(settings.inputs), logarithm - self.level_, settings.variance, SMOOTH_PRIOR
        )
        return self

    def predict(self, inputs: Floats) -> Floats:
        return self.level_ + self.process_(self.scale_(inputs))[0]
