"""Neural network with one hidden layer of ten nodes (van Rossem et al., section 3.3, "Artificial Neural Network")."""

import warnings
from typing import Self

import numpy as np

from predictor.chains.regressor import REGRESSORS, Regressor
from predictor.chains.settings import InputScale, Settings
from profiles.arrays import Floats

HIDDEN_NODES = 10
TRAINING_ITERATIONS = 500
LEAST_SHARE = 0.1  # a prediction is at least this share of the smallest measured value


@REGRESSORS.register("neural-network")
class NeuralNetwork(Regressor):
    """A small network, trained on the measure itself from fixed random weights."""

    def fit(self, settings: Settings) -> Self:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        self.scale_ = InputScale.of(settings.inputs)
        self.least_ = float(settings.value.min()) * LEAST_SHARE
        self.unit_ = float(np.median(settings.value))
        self.model_ = MLPRegressor(
            hidden_layer_sizes=(HIDDEN_NODES,),
            activation="tanh",
            solver="lbfgs",
            max_iter=TRAINING_ITERATIONS,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model_.fit(self.scale_(settings.inputs), settings.value / self.unit_)
        return self

    def predict(self, inputs: Floats) -> Floats:
        predicted = self.model_.predict(self.scale_(inputs)) * self.unit_
        return np.asarray(np.log(np.maximum(predicted, self.least_)))
