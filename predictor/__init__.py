"""Throughput prediction from profiles. Reads profiles, runs nothing.

`train` makes `Models` of a profile; every `Predictor` in them predicts the throughput of each NF of a co-location.
"""

from predictor.models import Models, load_models, train
from predictor.prediction import Prediction, ResourceDemand
from predictor.predictors.slomo import SlomoPredictor
from predictor.predictors.tomur import TomurPredictor
from predictor.registry import PREDICTORS, Predictor

__all__ = [
    "PREDICTORS",
    "Models",
    "Prediction",
    "Predictor",
    "ResourceDemand",
    "SlomoPredictor",
    "TomurPredictor",
    "load_models",
    "train",
]
