"""The interface of a predictor, and the registry in which every predictor is found by name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from predictor.contention.checks import CoLocationChecks
from predictor.contention.left_out import LeftOutCoLocation
from predictor.contention.nf_model import NfModel
from predictor.tables import traffic_of
from profiles import CoLocation, TrafficProfile, Workload
from profiles.registry import Registry

if TYPE_CHECKING:
    import pandas as pd

    from profiles.profile import Profile


Progress = Callable[[str, int, int], None]
"""Called with the current step, how many steps are done, and of how many."""

Warn = Callable[[str], None]
"""Called with one sentence for the user."""

SOLO_ERROR = 0.005
"""How far throughput alone errs where a predictor does not know: the standard deviation of its logarithm."""


class Predictor(ABC):
    """Predicts the throughput of NFs in co-locations. A new one is one file that registers it in `PREDICTORS`."""

    supports_loads: ClassVar[bool] = False
    """Whether it knows workloads at an offered rate, and on other numbers of cores than the default."""
    supports_risk: ClassVar[bool] = True
    """Whether `risk` has an effect on `throughput`: whether the predictor estimates its own errors."""

    @classmethod
    @abstractmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        """A predictor for every NF of `nfs`, which holds the model of each."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write into `folder`, which exists, what `load` needs; nothing that executes."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        """The predictor that `save` wrote."""

    @property
    def least_risk(self) -> float:
        """The smallest `risk` for which the measured errors suffice; below, their distribution is extrapolated."""
        return 0.0

    def risk_warning(self, risk: float) -> str | None:
        """A sentence for users where `risk` is below `least_risk`, else None."""
        if not self.supports_risk or risk >= self.least_risk:
            return None
        return (
            f"risk {risk:g} is below {self.least_risk:.2g}, the smallest for which errors were measured: "
            "larger errors are extrapolated"
        )

    @abstractmethod
    def solo(self, workloads: Sequence[Workload]) -> NDArray[np.float64]:
        """Throughput (kpps) of each workload alone on the NIC, shape (len(workloads),)."""

    @abstractmethod
    def throughput(
        self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None
    ) -> list[NDArray[np.float64]]:
        """Throughput (kpps) of every workload of every co-location, each co-location on one NIC. It is what the
        workload can carry, its capacity, beside others that carry what is offered to them: of what is offered to it, it
        carries at most that. `co_locations`: the workloads on each NIC. `risk`: when given, the throughput that at most
        this share of workloads is expected to fall short of."""

    def checks(self, risk: float | None) -> CoLocationChecks | None:
        """What answers as `throughput` does whether one co-location meets its SLAs, faster; None where nothing does."""
        return None

    def shortfall(
        self, co_locations: Sequence[Sequence[Workload]], required_kpps: Sequence[Sequence[float]]
    ) -> list[NDArray[np.float64]]:
        """The probability that the throughput of each workload is below what it requires (kpps), by co-location. 0 or 1
        for a predictor that does not estimate its errors."""
        predicted = self.throughput(co_locations)
        return [(kpps < np.asarray(need)).astype(float) for kpps, need in zip(predicted, required_kpps, strict=True)]

    def shortfalls(
        self, co_locations: Sequence[Sequence[Workload]], required_kpps: Sequence[Sequence[NDArray[np.float64]]]
    ) -> list[list[NDArray[np.float64]]]:
        """As `shortfall` for several throughputs that each workload might require, of the shape of those."""
        answers = []
        for co_location, requirements in zip(co_locations, required_kpps, strict=True):
            most = max(map(len, requirements), default=0)
            padded = [[need[min(at, len(need) - 1)] for need in requirements] for at in range(most)]
            columns = self.shortfall([co_location] * most, padded)
            answers.append(
                [
                    np.array([column[place] for column in columns[: len(need)]])
                    for place, need in enumerate(requirements)
                ]
            )
        return answers

    def alone_spread(self, workloads: Sequence[Workload]) -> NDArray[np.float64]:
        """The standard deviation of the logarithm of throughput alone around `solo`, shape (len(workloads),)."""
        return np.full(len(workloads), SOLO_ERROR)

    def left_out(self, default: TrafficProfile) -> Mapping[CoLocation, LeftOutCoLocation]:
        """Measured co-locations at default traffic, each as predicted from the others; empty where none is known."""
        return {}

    @abstractmethod
    def predict(self, co_locations: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        """As `throughput`, with the parts of each prediction, and intervals that hold for a share `coverage`."""

    @abstractmethod
    def predict_contention(self, nf: str, table: pd.DataFrame) -> NDArray[np.float64]:
        """Throughput (kpps) of `nf` per row of `table`: its traffic, and the sums of the contention.

        `nf`: the NF. `table`: columns flows, packet_size, mtbr, the competitors' summed seven counters, and per
        accelerator as in docs/formats/profile.md: `competitor_service_ms` and `competitor_kpps` for the first, and
        `ACCELERATOR_service_ms` and `ACCELERATOR_kpps` for any. A missing service column means no competitor there, a
        missing or empty rate a competitor that saturates. Raises `InputError` when the NF is not modelled, or a value
        is missing, negative or not a number."""

    def contention_details(self, nf: str, table: pd.DataFrame, *, coverage: float = 0.9) -> list[Prediction]:
        """As `predict_contention`, with the parts of each prediction, one per row. A predictor of memory contention
        only need not override this."""
        predicted = self.predict_contention(nf, table).tolist()
        workloads = [Workload(nf, TrafficProfile(*values)) for values in traffic_of(table).tolist()]
        return [
            replace(
                alone,
                throughput_kpps=kpps,
                drops={"memory": max(alone.solo_kpps - kpps, 0.0)},
                bottleneck="memory" if kpps < alone.solo_kpps else alone.bottleneck,
                low_kpps=None,
                high_kpps=None,
            )
            for kpps, (alone,) in zip(predicted, self.predict([[workload] for workload in workloads]), strict=True)
        ]


PREDICTORS: Registry[type[Predictor]] = Registry(
    "predictor", "predictor.predictors", "placer.predictors", "--predictor", first=("tomur",)
)
"""Every predictor by name: the files of `predictor/predictors/`, then the entry points `placer.predictors`."""


# What a predictor returns.


@dataclass(frozen=True, slots=True)
class Prediction:
    """The throughput of one workload in its co-location, with its parts."""

    throughput_kpps: float
    """What it carries in this co-location."""
    solo_kpps: float
    """Alone on the NIC, where more is offered to it than it can carry."""
    drops: Mapping[str, float]
    """Per resource, the drop of throughput (kpps) that contention for it alone would cause."""
    bottleneck: str
    """The resource that limits throughput: `cpu`, `memory` or the accelerator's name."""
    low_kpps: float | None = None
    high_kpps: float | None = None
    """Ends of the prediction interval; None when the models hold none."""
    extrapolated: bool = False
    """Whether the traffic lies outside what was measured."""
    calibrated: bool = False
    """Whether measured co-runs corrected the prediction."""
    capacity_kpps: float = math.nan
    """What it would carry in this co-location if more were offered to it than it can carry."""

    def __post_init__(self) -> None:
        if math.isnan(self.capacity_kpps):
            object.__setattr__(self, "capacity_kpps", self.throughput_kpps)


@dataclass(frozen=True, slots=True)
class ResourceDemand:
    """The resources that a workload takes of a NIC when it runs alone."""

    cores: int
    """Dedicated cores."""
    wss_mb: float
    """Working set, MB."""
    accelerators: Mapping[str, float]
    """Per accelerator, the share of its time, between 0 and 1."""
