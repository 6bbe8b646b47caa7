"""Throughput prediction from profiles. Reads profiles, runs nothing.

`train` makes `Models` of a profile; every `Predictor` in them answers how fast each NF of a company runs.
"""

from predictor.models import Models, load_models, train
from predictor.prediction import Demand, Prediction
from predictor.registry import Predictor, predictor_names
from predictor.slomo import SlomoPredictor
from predictor.tomur import TomurPredictor

__all__ = [
    "Demand",
    "Models",
    "Prediction",
    "Predictor",
    "SlomoPredictor",
    "TomurPredictor",
    "load_models",
    "predictor_names",
    "train",
]
