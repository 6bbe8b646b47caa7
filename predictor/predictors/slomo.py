"""SLOMO: memory contention only, learnt at default traffic (Manousis et al., 2020, doi:10.1145/3387514.3405868).

Tomur's baseline (section 7.1). Other traffic is predicted by sensitivity extrapolation: throughput is scaled as the
NF's solo throughput over flows, as long as the flow count is within 20 % of the default.

As published, it is not monotone: a competitor more may raise the prediction, where trees fill gaps between few runs. To
bound it by the predictions for fewer competitors, as Tomur does for memory, made it 1 % worse at random traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from predictor.contention.nf_model import NfModel
from predictor.contention.workload_table import WorkloadTable
from predictor.model_folder import read_arrays, write_arrays
from predictor.registry import PREDICTORS, Prediction, Predictor, Warn
from predictor.regression.boosting import Trees, fit_stages
from predictor.regression.significant import significant
from predictor.tables import counters_of, model_of, refuse_unreadable, traffic_of
from profiles import Workload
from profiles.arrays import Floats
from profiles.profile import KPPS_COLUMN

if TYPE_CHECKING:
    import pandas as pd

    from profiles.profile import NfProfile, Profile


EXTRAPOLATION_REACH = 0.2  # relative change of the flow count over which the extrapolation holds
ENOUGH_RUNS = 40
BOOSTING_STAGES, BOOSTING_SEEDS = 100, 3


@PREDICTORS.register("slomo")
class SlomoPredictor(Predictor):
    """Gradient boosting on the competitors' counters at default traffic. `nfs`: the NF models, from which solo
    throughput is taken. `default`: the traffic of training, as an array of shape (3,). `memory`: per NF, the logarithm
    of throughput (kpps) at that traffic."""

    supports_risk: ClassVar[bool] = False

    def __init__(self, nfs: Mapping[str, NfModel], default: Floats, memory: Mapping[str, Trees]) -> None:
        self._nfs, self._default, self._memory = nfs, default, memory
        self._table = WorkloadTable(nfs)

    @classmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        """Learn from the runs next to mem-bench at default traffic."""
        default = np.array(profile.default_traffic().as_tuple())
        memory = {}
        for name, model in nfs.items():
            rows, exact = _near(profile.nfs[name], default)
            if exact < len(rows):
                warn(f"{name}: {exact} runs next to mem-bench at default traffic; SLOMO uses the nearest {len(rows)}")
            logarithm = np.log(rows[KPPS_COLUMN].to_numpy(dtype=np.float64))
            if model.solo:
                logarithm += np.log(model.base_kpps(default[None, :]) / model.base_kpps(traffic_of(rows)))
            memory[name] = _boost(counters_of(rows), significant(logarithm, of=1.0), seed)
        return cls(nfs, default, memory)

    def save(self, folder: Path) -> None:
        """One file per NF, and one for the traffic."""
        write_arrays(folder / "default_traffic.npz", {"default": self._default})
        for name, trees in self._memory.items():
            write_arrays(folder / f"{name}.npz", trees.as_arrays())

    @classmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        """The predictor that `save` wrote."""
        memory = {name: Trees.from_arrays(read_arrays(folder / f"{name}.npz")) for name in nfs}
        return cls(nfs, read_arrays(folder / "default_traffic.npz")["default"], memory)

    def solo(self, workloads: Sequence[Workload]) -> Floats:
        """Throughput (kpps) of each workload alone on the NIC."""
        return self._table.solo_of(workloads)

    def throughput(self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None) -> list[Floats]:
        """Throughput (kpps) of every workload; `risk` has no effect, since SLOMO does not estimate its errors."""
        table, batch = self._table, self._table.batch(co_locations)
        throughput = np.where(batch.occupied, table.solo[batch.member], 0.0)
        contended = batch.contended
        counters, rows = table.competitors(batch.member)[contended], batch.member[contended]
        predicted = np.zeros(len(rows))
        for name, of_nf in table.by_nf(rows):
            predicted[of_nf] = self._kpps(name, counters[of_nf], table.traffic[rows[of_nf]])
        throughput[contended] = np.minimum(predicted, throughput[contended])
        return batch.in_given_order(throughput)

    def predict(self, co_locations: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        """Throughput without an interval; all drops are attributed to memory."""
        return [
            [
                Prediction(
                    float(kpps),
                    float(solo),
                    {"memory": float(solo - kpps)},
                    "memory" if kpps < solo else "cpu",
                    extrapolated=self._nfs[workload.nf].is_extrapolated(workload.traffic),
                )
                for workload, kpps, solo in zip(co_location, row, self.solo(co_location), strict=True)
            ]
            for co_location, row in zip(co_locations, self.throughput(co_locations), strict=True)
        ]

    def predict_contention(self, nf: str, table: pd.DataFrame) -> Floats:
        """Throughput (kpps) of `nf` per row; accelerator contention has no effect."""
        refuse_unreadable(table, model_of(self._nfs, nf).accelerators)
        return self._kpps(nf, counters_of(table), traffic_of(table))

    def _kpps(self, nf: str, counters: Floats, traffic: Floats) -> Floats:
        """Throughput at default traffic, scaled by solo throughput within the reach of the extrapolation."""
        model, default = self._nfs[nf], np.tile(self._default, (len(traffic), 1))
        reached = default.copy()
        reached[:, 0] = np.clip(
            traffic[:, 0], default[:, 0] * (1 - EXTRAPOLATION_REACH), default[:, 0] * (1 + EXTRAPOLATION_REACH)
        )
        alone = model.solo_kpps(default)
        scaled: Floats = (
            np.minimum(np.exp(self._memory[nf].predict(counters)), alone) * model.solo_kpps(reached) / alone
        )
        return scaled


def _near(nf: NfProfile, default: Floats) -> tuple[pd.DataFrame, int]:
    """The runs at default flows and packet size, filled up with the nearest; and how many were exact."""
    wanted, rows = np.log(np.maximum(default[:2], 1.0)), np.log(np.maximum(traffic_of(nf.memory)[:, :2], 1.0))
    away = np.abs(rows - wanted).sum(axis=1)
    exact = int((away < 1e-6).sum())
    nearest = np.argsort(away, kind="stable")[: max(exact, ENOUGH_RUNS)]
    return nf.memory.iloc[nearest], exact


def _boost(counters: Floats, logarithm: Floats, seed: int) -> Trees:
    return Trees.of(
        [
            fit_stages(counters, logarithm, BOOSTING_STAGES, seed=seed * BOOSTING_SEEDS + offset)
            for offset in range(BOOSTING_SEEDS)
        ]
    )
