"""Models whose predictions can be worked out by hand, of the simulated server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor import Models
from predictor.contention.nf_model import NfModel
from predictor.registry import Prediction, Predictor
from profiler.simulated import SimulatedServer
from profiles import COUNTERS

SOLO_KPPS = 1000.0
READS, WORKING_SET = COUNTERS.index("l2crd"), COUNTERS.index("wss")


class FakePredictor:
    """Time per packet grows by what the others read, 1 % for each 1e6 reads/s, and by 0.1 % for each of their MB.

    The low end of an interval is 2 % below at a coverage of 0.9, none at 0.
    """

    supports_risk = True

    def risk_warning(self, risk: float) -> str | None:
        return "risk 0.001 is below 0.01" if risk < 0.01 else None

    def contention_details(self, nf: str, table: pd.DataFrame, *, coverage: float = 0.9) -> list[Prediction]:
        grown = 1 + 0.01 * table["l2crd"] / 1e6 + 0.001 * table["wss"]
        low = 1 - 0.02 * coverage / 0.9
        return [Prediction(SOLO_KPPS / one, SOLO_KPPS, {}, "memory", low_kpps=SOLO_KPPS / one * low) for one in grown]


@dataclass
class FakeSolo:
    """Reads and a working set (MB) that do not depend on traffic."""

    reads: float
    mb: float

    def own_counters(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        counters = np.zeros((len(traffic), len(COUNTERS)))
        counters[:, READS], counters[:, WORKING_SET] = self.reads, self.mb
        return counters


@dataclass
class FakeNf:
    solo: FakeSolo | None


def fake_models(nfs: dict[str, FakeSolo | None], kind: str = "server") -> Models:
    """Models of these NFs."""
    described = SimulatedServer().describe()
    testbed = described.model_copy(update={"nic": described.nic.model_copy(update={"kind": kind})})
    known: dict[str, Any] = {name: FakeNf(solo) for name, solo in nfs.items()}
    predictors = {"tomur": cast(Predictor, FakePredictor())}
    return Models(predictors, testbed, testbed.traffic, cast("dict[str, NfModel]", known))


SIX: dict[str, FakeSolo | None] = {
    "ACL": FakeSolo(10e6, 1.0),
    "NAT": FakeSolo(2e6, 5.0),
    "Encrypt": FakeSolo(1e6, 0.0),
    "Match": FakeSolo(0.0, 0.0),
    "Limiter": FakeSolo(0.0, 0.0),
    "UrlFilter": FakeSolo(20e6, 2.0),
}
