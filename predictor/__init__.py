"""Throughput prediction from profiles. Reads profiles, runs nothing.

`train` makes `Models` of a profile; every `Predictor` in them answers how fast each NF of a company runs.
"""

from predictor.models import Models, load_models, train
from predictor.prediction import Demand, Prediction
from predictor.predictors.slomo import SlomoPredictor
from predictor.predictors.tomur import TomurPredictor
from predictor.registry import PREDICTORS, Predictor

__all__ = [
    "PREDICTORS",
    "Demand",
    "Models",
    "Prediction",
    "Predictor",
    "SlomoPredictor",
    "TomurPredictor",
    "load_models",
    "train",
]
