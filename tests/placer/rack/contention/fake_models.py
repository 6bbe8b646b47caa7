"""Models whose predictions can be worked out by hand, of the simulated server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from placer.rack.contention.co_location import CycleGrowth, Member
from placer.rack.rack import Device
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
    core_counts: tuple[int, ...] = ()


def fake_models(nfs: dict[str, FakeSolo | None], kind: str = "server") -> Models:
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


MOST = 2.0


def nil(device: Device, members: Sequence[Member]) -> list[list[float]]:
    """Nobody slows anybody down."""
    return [[1.0] * len(one.nfs) for one in members]


def beside_another(factor: float) -> CycleGrowth:
    """Cycles grow by a factor where two chains or more share a device."""

    def growth(device: Device, members: Sequence[Member]) -> list[list[float]]:
        several = len({one.chain.name for one in members}) > 1
        return [[factor if several else 1.0] * len(one.nfs) for one in members]

    return growth


def by_kind(sensitivity: Mapping[str, float], pressure: Mapping[str, float]) -> CycleGrowth:
    """Monotone, between 1 and 2: what an NF suffers grows with each core of the others by the kinds that run there."""

    def growth(device: Device, members: Sequence[Member]) -> list[list[float]]:
        own = [max(pressure[nf.nf] for nf in one.kinds) for one in members]
        everything = sum(each * one.cores for each, one in zip(own, members, strict=True))
        return [
            [min(1 + sensitivity[nf.nf] * (everything - each), MOST) for nf in one.kinds]
            for each, one in zip(own, members, strict=True)
        ]

    return growth
