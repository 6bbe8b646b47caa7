"""Linear interpolation on the triangulation of the settings (van Rossem et al., section 3.3, "Interpolation")."""

from typing import Self

import numpy as np

from predictor.chains.regressor import REGRESSORS, Regressor
from predictor.chains.settings import InputScale, Settings
from profiles.arrays import Floats


@REGRESSORS.register("interpolation")
class Interpolation(Regressor):
    """Linear between the settings around a point; the nearest setting outside of all of them."""

    def fit(self, settings: Settings) -> Self:
        from scipy.interpolate import LinearNDInterpolator
        from scipy.spatial import QhullError, cKDTree

        self.scale_ = InputScale.of(settings.inputs)
        points = self.scale_(settings.inputs)
        varying = np.ptp(points, axis=0) > 0
        self.varying_ = varying
        self.values_ = settings.value
        self.points_ = points[:, varying]
        self.inside_ = None
        if self.points_.shape[1] == 1:
            order = np.argsort(self.points_[:, 0])
            line, values = self.points_[order, 0], self.values_[order]
            self.inside_ = lambda at: np.interp(at[:, 0], line, values)
        elif self.points_.shape[1] > 1 and len(points) > self.points_.shape[1] + 1:
            try:
                self.inside_ = LinearNDInterpolator(self.points_, self.values_)
            except QhullError:  # all settings lie on a line or a plane
                self.inside_ = None
        self.nearest_ = cKDTree(self.points_) if varying.any() else None
        return self

    def predict(self, inputs: Floats) -> Floats:
        points = self.scale_(inputs)[:, self.varying_]
        if self.nearest_ is None:
            return np.full(len(inputs), float(np.log(self.values_).mean()))
        predicted = self.values_[self.nearest_.query(points)[1]]
        if self.inside_ is not None:
            inside = np.asarray(self.inside_(points), dtype=np.float64)
            predicted = np.where(np.isnan(inside), predicted, inside)
        return np.asarray(np.log(predicted))
