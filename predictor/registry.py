"""The interface of a predictor, and the registry in which every predictor is found by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from predictor.contention.nf_model import NfModel
from predictor.prediction import Prediction
from predictor.tables import traffic_of
from profiles import TrafficProfile, Workload
from profiles.registry import Registry

if TYPE_CHECKING:
    import pandas as pd

    from profiles.profile import Profile

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many are done, and of how many."""

Warn = Callable[[str], None]
"""Called with one sentence that the user should read."""


class Predictor(ABC):
    """Answers how fast NFs run in company. A new one is one file that calls `register`."""

    heeds_risk: ClassVar[bool] = True
    """Whether `throughput` takes notice of `risk`; not so where a predictor knows no errors of its own."""

    @classmethod
    @abstractmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        """A predictor for every NF of `nfs`, which holds what training already found of each."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write into `folder`, which exists, what `load` needs; nothing that executes."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        """The predictor that `save` wrote."""

    @abstractmethod
    def solo(self, workloads: Sequence[Workload]) -> NDArray[np.float64]:
        """Throughput (kpps) of each workload alone on the NIC, shape (len(workloads),)."""

    @abstractmethod
    def throughput(
        self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None
    ) -> list[NDArray[np.float64]]:
        """Throughput (kpps) of every workload of every company, each company one NIC.

        Parameters
        ----------
        companies
            The companies.
        risk
            When given, the throughput that at most this share of workloads is expected to fall short of.
        """

    @abstractmethod
    def predict(self, co_locations: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        """What `throughput` answers, taken apart, with intervals that hold for a share `coverage` of workloads."""

    @abstractmethod
    def predict_contention(self, nf: str, table: pd.DataFrame) -> NDArray[np.float64]:
        """Throughput (kpps) of `nf` per row of `table`: its traffic, and the contention it meets.

        Parameters
        ----------
        nf
            The NF.
        table
            Columns flows, packet_size, mtbr, the competitors' summed seven counters, and per accelerator what
            docs/formats.md names: `competitor_service_ms` and `competitor_kpps` for the first, and
            `ACCELERATOR_service_ms` and `ACCELERATOR_kpps` for any. A missing service column means no competitor there,
            a missing or empty rate one that saturates.

        Raises
        ------
        InputError
            When the NF is not modelled, or a value is missing, negative or no number.
        """

    def contention_details(self, nf: str, table: pd.DataFrame, *, coverage: float = 0.9) -> list[Prediction]:
        """What `predict_contention` answers, taken apart as `predict` does, one per row.

        A predictor that knows of memory only need not override this.
        """
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
            for kpps, (alone,) in zip(predicted, self.predict([[one] for one in workloads]), strict=True)
        ]


PREDICTORS: Registry[type[Predictor]] = Registry(
    "predictor", "predictor.predictors", "placer.predictors", "--predictor", first=("tomur",)
)
"""Every predictor by name: the files of `predictor/predictors/`, then the entry points `placer.predictors`."""
