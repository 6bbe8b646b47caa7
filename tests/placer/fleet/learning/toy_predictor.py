"""A predictor of the toy world: right, but for a usual error of 3 %. Versions of toy models, some of them off by a
factor, and where they come from in tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from placer.fleet.learning.actions import ModelAction, RetrainedModel
from placer.testing.strategies import ToyOracle
from predictor import Predictor
from predictor.contention.nf_model import NfModel
from predictor.registry import Prediction, Warn
from profiles import Workload
from profiles.profile import Profile

SPREAD = 0.03
SIGMAS = 2.0


class ToyPredictor(Predictor):
    """Predicts what a toy oracle says; at risk, two usual errors less beside others."""

    def __init__(self) -> None:
        self._oracle = ToyOracle()

    @classmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        raise NotImplementedError

    @classmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        raise NotImplementedError

    def solo(self, workloads: Sequence[Workload]) -> NDArray[np.float64]:
        return np.array([self._oracle.solo(one) for one in workloads])

    def throughput(
        self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None
    ) -> list[NDArray[np.float64]]:
        found = self._oracle.throughput([tuple(one) for one in co_locations])
        less = [np.exp(-SIGMAS * SPREAD) if risk is not None and len(one) > 1 else 1.0 for one in found]
        return [np.array(one) * factor for one, factor in zip(found, less, strict=True)]

    def predict(self, co_locations: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        return [
            [
                Prediction(kpps, self._oracle.solo(one), {}, "memory", low_kpps=0.95 * kpps, high_kpps=1.05 * kpps)
                for one, kpps in zip(co_location, found.tolist(), strict=True)
            ]
            for co_location, found in zip(co_locations, self.throughput(co_locations), strict=True)
        ]

    def predict_contention(self, nf: str, table: pd.DataFrame) -> NDArray[np.float64]:
        raise NotImplementedError


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
