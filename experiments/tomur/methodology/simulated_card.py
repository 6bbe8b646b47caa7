"""The simulated BlueField-2, and the models trained on its recorded profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from experiments.registry import Setting
from placer.inputs.models import open_models
from predictor import Models, TomurPredictor
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Run
from profiles import Load, TrafficProfile

Array = NDArray[np.float64]

TESTBED = "simulated"
CARD = SimulatedTestbed()
DEFAULT: TrafficProfile = CARD.describe().traffic


_cached: list[Models] = []


def trained(setting: Setting) -> Models:
    """Models trained on the recorded profile of the simulated BlueField-2; cached."""
    if not _cached:
        _cached.append(open_models(None, setting.say))
    return _cached[0]


def tomur(setting: Setting) -> TomurPredictor:
    """Tomur as the paper trains it, on runs with benches only: without the calibration on runs with co-located NFs."""
    return TomurPredictor({name: replace(model, calibration=None) for name, model in trained(setting).models.items()})


def truth(co_locations: Sequence[Sequence[Load]], card: SimulatedTestbed = CARD) -> Array:
    """Noise-free throughput (kpps) of the first load of each co-location."""
    return _first(card.run_many(co_locations, noise=False))


def measured_kpps(co_locations: Sequence[Sequence[Load]], seed: int) -> Array:
    """Measured throughput (kpps) of the first load of each co-location, with noise."""
    return _first(CARD.run_many(co_locations, seed=seed))


def _first(runs: Sequence[Run]) -> Array:
    return np.array([run.measurements[0].throughput_kpps for run in runs])
