"""The simulated cards, and the models trained on their recorded profiles."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from experiments.registry import Setting
from placer.inputs.models import find_recorded, open_models
from predictor import Models, TomurPredictor
from predictor.contention.nf_model import NfModel
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Run, Testbed
from profiler.testbeds import open_testbed
from profiles import Load, TrafficProfile
from profiles.arrays import Floats

CARD_SPEC = "simulated"  # the simulated BlueField-2: the SPEC of the card of most experiments
CARD_SPECS = (CARD_SPEC, "simulated:contended")
"""The SPECs of both cards. On the second, NFs contend as much as in the upper half of the paper's figure 1."""
CARD = SimulatedTestbed()
DEFAULT_TRAFFIC: TrafficProfile = CARD.describe().traffic

_cached: dict[str, Models] = {}


@cache
def card_of(testbed: str) -> Testbed:
    """The card of that SPEC, opened once."""
    return CARD if testbed == CARD_SPEC else open_testbed(testbed)


def train(setting: Setting, testbed: str = CARD_SPEC) -> Models:
    """Models trained on the recorded profile of a simulated card; cached."""
    if testbed not in _cached:
        _cached[testbed] = open_models(None, setting.say, find_recorded(testbed))
    return _cached[testbed]


def tomur(setting: Setting, testbed: str = CARD_SPEC) -> TomurPredictor:
    """Tomur as the paper trains it, on runs with benches only."""
    return TomurPredictor(drop_corrections(train(setting, testbed)))


def drop_corrections(models: Models) -> dict[str, NfModel]:
    """The NF models without their corrections by measured co-locations, which hold among the NFs of one profile."""
    return {name: replace(model, calibration=None, neighbours=None) for name, model in models.models.items()}


def truth(co_locations: Sequence[Sequence[Load]], card: Testbed = CARD) -> Floats:
    """Noise-free throughput (kpps) of the first load of each co-location."""
    return _first(card.run_many(co_locations, noise=False))


def measure_kpps(co_locations: Sequence[Sequence[Load]], seed: int, card: Testbed = CARD) -> Floats:
    """Measured throughput (kpps) of the first load of each co-location, with noise."""
    return _first(card.run_many(co_locations, seed=seed))


def _first(runs: Sequence[Run]) -> Floats:
    return np.array([run.measurements[0].throughput_kpps for run in runs])
