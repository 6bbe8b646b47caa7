"""Versions of toy models, some of them off by a factor, and where they come from in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from placer.fleet.learning.actions import ModelAction, RetrainedModel
from predictor.registry import Prediction
from profiles import Workload
from tests.placer.fleet.learning.toy_predictor import ToyPredictor

MODEL = "toy-0"


class BiasedPredictor(ToyPredictor):
    """Beside others it predicts so many times the toy throughput."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def throughput(
        self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None
    ) -> list[NDArray[np.float64]]:
        found = super().throughput(co_locations, risk=risk)
        return [one * (self.factor if len(one) > 1 else 1.0) for one in found]

    def predict(self, co_locations: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        kpps = self.throughput(co_locations)
        return [
            [Prediction(one, one, {}, "memory", low_kpps=0.95 * one, high_kpps=1.05 * one) for one in each.tolist()]
            for each in kpps
        ]


class Planned:
    """Actions at events that a test has chosen; the version that comes is off by a factor."""

    def __init__(self, planned: Mapping[int, Sequence[ModelAction]], factor: float = 1.0) -> None:
        self.planned = planned
        self.factor = factor

    def due(self, event: int) -> Sequence[ModelAction]:
        return self.planned.get(event, ())

    def models(self, version: int) -> Mapping[str, RetrainedModel]:
        return {MODEL: RetrainedModel(BiasedPredictor(self.factor))}
