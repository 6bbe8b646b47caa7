"""Throughput prediction from profiles. Reads profiles, runs nothing. `train` makes `Models` of a profile; every
`Predictor` in them predicts the throughput of each NF of a co-location."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from predictor.models import Models, load_models, train
    from predictor.predictors.slomo import SlomoPredictor
    from predictor.predictors.tomur import TomurPredictor
    from predictor.registry import PREDICTORS, Prediction, Predictor, ResourceDemand

_PLACES = {
    "PREDICTORS": "predictor.registry", "Models": "predictor.models", "Prediction": "predictor.registry",
    "Predictor": "predictor.registry", "ResourceDemand": "predictor.registry",
    "SlomoPredictor": "predictor.predictors.slomo", "TomurPredictor": "predictor.predictors.tomur",
    "load_models": "predictor.models", "train": "predictor.models",
}  # fmt: skip

__all__ = [
    "PREDICTORS", "Models", "Prediction", "Predictor", "ResourceDemand", "SlomoPredictor", "TomurPredictor",
    "load_models", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The models of co-locations take a while to load: they are loaded when one is used, and not by `chains`."""
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'predictor' has no attribute '{name}'")
