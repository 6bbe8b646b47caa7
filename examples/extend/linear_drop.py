"""A predictor in one file: throughput falls linearly with the memory accesses of the co-located NFs.

Copy it into `predictor/predictors/`; then `placer train profile --out models --predictor linear-drop` knows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from predictor.contention.nf_model import NfModel
from predictor.contention.workload_table import WorkloadTable
from predictor.model_folder import read_arrays, write_arrays
from predictor.registry import PREDICTORS, Prediction, Predictor, Warn
from predictor.tables import counters_of, model_of, refuse_unreadable, traffic_of
from profiles import COUNTERS, Workload
from profiles.profile import KPPS_COLUMN

if TYPE_CHECKING:
    import pandas as pd

    from profiles.profile import Profile

Array = NDArray[np.float64]

ACCESSES = [COUNTERS.index("memrd"), COUNTERS.index("memwr")]
LEAST_SHARE = 0.05
"""Throughput never falls below this share of solo throughput."""


@PREDICTORS.register("linear-drop")
class LinearDrop(Predictor):
    """One slope per NF: the share of its solo throughput that one memory access per second of the others costs."""

    supports_risk: ClassVar[bool] = False

    def __init__(self, nfs: Mapping[str, NfModel], slopes: Mapping[str, float]) -> None:
        self._nfs, self._slopes = nfs, slopes
        self._table = WorkloadTable(nfs)

    @classmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        """Least squares through the origin of drop over accesses, on the runs next to mem-bench."""
        slopes = {}
        for name, model in nfs.items():
            runs = profile.nfs[name].memory
            accesses = counters_of(runs)[:, ACCESSES].sum(axis=1)
            drop = 1.0 - runs[KPPS_COLUMN].to_numpy(dtype=np.float64) / model.solo_kpps(traffic_of(runs))
            slopes[name] = max(float(accesses @ drop / max(accesses @ accesses, 1e-300)), 0.0)
        return cls(nfs, slopes)

    def save(self, folder: Path) -> None:
        """One array of slopes, in the order of the NFs."""
        write_arrays(folder / "slopes.npz", {"slopes": np.array([self._slopes[name] for name in self._nfs])})

    @classmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        """The predictor that `save` wrote."""
        return cls(nfs, dict(zip(nfs, read_arrays(folder / "slopes.npz")["slopes"].tolist(), strict=True)))

    def solo(self, workloads: Sequence[Workload]) -> Array:
        """Throughput (kpps) of each workload alone on the NIC."""
        return self._table.solo_of(workloads)

    def throughput(self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None) -> list[Array]:
        """Throughput (kpps) of every workload of every co-location; `risk` has no effect."""
        table, batch = self._table, self._table.batch(co_locations)
        throughput = np.where(batch.occupied, table.solo[batch.member], 0.0)
        contended = batch.contended
        counters = table.competitors(batch.member)[contended]
        share = np.ones(len(counters))
        for name, of_nf in table.by_nf(batch.member[contended]):
            share[of_nf] = self._share(name, counters[of_nf])
        throughput[contended] *= share
        return batch.in_given_order(throughput)

    def predict(self, co_locations: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        """Throughput without an interval; every drop is memory contention."""
        return [
            [
                Prediction(float(kpps), float(solo), {"memory": float(solo - kpps)}, "memory" if kpps < solo else "cpu")
                for kpps, solo in zip(row, self.solo(co_location), strict=True)
            ]
            for co_location, row in zip(co_locations, self.throughput(co_locations), strict=True)
        ]

    def predict_contention(self, nf: str, table: pd.DataFrame) -> Array:
        """Throughput (kpps) of `nf` per row of measured contention."""
        model = model_of(self._nfs, nf)
        refuse_unreadable(table, model.accelerators)
        predicted: Array = model.solo_kpps(traffic_of(table)) * self._share(nf, counters_of(table))
        return predicted

    def _share(self, nf: str, counters: Array) -> Array:
        """The share of solo throughput that is left at these summed counters of the competitors."""
        share: Array = np.maximum(1.0 - self._slopes[nf] * counters[:, ACCESSES].sum(axis=1), LEAST_SHARE)
        return share
