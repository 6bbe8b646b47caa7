"""The simulated card, and the models that its recorded profile gives."""

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


_kept: list[Models] = []


def trained(setting: Setting) -> Models:
    """Models of the recorded profile of the simulated BlueField-2; trained once, then kept."""
    if not _kept:
        _kept.append(open_models(None, setting.say))
    return _kept[0]


def tomur(setting: Setting) -> TomurPredictor:
    """Tomur as the paper trains it, by benches alone: what the profile tells of real company is not made use of."""
    return TomurPredictor({name: replace(model, calibration=None) for name, model in trained(setting).models.items()})


def truth(co_locations: Sequence[Sequence[Load]], card: SimulatedTestbed = CARD) -> Array:
    """Noise-free throughput (kpps) of the first load of each company."""
    return _first(card.run_many(co_locations, noise=False))


def measured_kpps(co_locations: Sequence[Sequence[Load]], seed: int) -> Array:
    """The same as a measurement tells it, with noise."""
    return _first(CARD.run_many(co_locations, seed=seed))


def _first(runs: Sequence[Run]) -> Array:
    return np.array([run.measurements[0].throughput_kpps for run in runs])
