"""A Lasso per group of settings, interpolated between groups (van Rossem et al., section 3.3, "Multi Lasso")."""

from dataclasses import replace
from typing import Self

import numpy as np

from predictor.chains.regressor import REGRESSORS, Regressor
from predictor.chains.regressors.interpolation import Interpolation
from predictor.chains.regressors.lasso_2 import Lasso2
from predictor.chains.settings import Settings
from profiles.arrays import Floats

FEWEST_SETTINGS = 4  # settings of a group for a Lasso of its own


@REGRESSORS.register("multi-lasso")
class MultiLasso(Regressor):
    """Along the input with most values, a Lasso of degree 2 for each combination of the others. The paper varies the
    concurrent requests and keeps file size and vCPU share. Where groups are too small, it is the interpolation."""

    def fit(self, settings: Settings) -> Self:
        self.names_ = settings.names
        self.along_ = int(np.argmax([len(np.unique(column)) for column in settings.inputs.T]))
        others = np.delete(settings.inputs, self.along_, axis=1)
        groups, group_of = np.unique(others, axis=0, return_inverse=True)
        lines = [(group, np.flatnonzero(group_of.reshape(-1) == number)) for number, group in enumerate(groups)]
        self.lines_ = [
            (group, Lasso2().fit(_along(settings.at(rows), self.along_)))
            for group, rows in lines
            if len(np.unique(settings.inputs[rows, self.along_])) >= FEWEST_SETTINGS
        ]
        self.fallback_ = None if len(self.lines_) > len(lines) / 2 else Interpolation().fit(settings)
        return self

    def predict(self, inputs: Floats) -> Floats:
        if self.fallback_ is not None:
            return self.fallback_.predict(inputs)
        predicted = np.empty(len(inputs))
        values, at_value = np.unique(inputs[:, self.along_], return_inverse=True)
        groups = np.array([group for group, _ in self.lines_])
        along = np.zeros((len(values), inputs.shape[1]))
        along[:, self.along_] = values
        reached = np.array([line.predict(along) for _, line in self.lines_])
        for number, value in enumerate(values):
            rows = at_value.reshape(-1) == number
            at = np.insert(groups, self.along_, value, axis=1)
            between = Settings(self.names_, at, np.exp(reached[:, number]), np.ones(len(at)), 0.0)
            predicted[rows] = Interpolation().fit(between).predict(inputs[rows])
        return predicted


def _along(settings: Settings, along: int) -> Settings:
    """The settings with all inputs but one set to 0: a line knows only that one."""
    inputs = np.zeros_like(settings.inputs)
    inputs[:, along] = settings.inputs[:, along]
    return replace(settings, inputs=inputs)
