"""SLOMO: memory contention only, learnt at the default traffic (Manousis et al., SIGCOMM 2020, doi:10.1145/3387514.3405868).

Tomur's baseline (section 7.1). Other traffic is answered by sensitivity extrapolation, which holds while the flow count
is within 20 % of the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor.facts import Facts
from predictor.memory import MemoryModel
from predictor.nf_model import NfModel
from predictor.prediction import Prediction
from predictor.registry import Predictor, Warn, register
from predictor.tables import traffic_of
from profiles import InputError, TrafficProfile, Workload
from profiles.profile import COUNTER_COLUMNS, THROUGHPUT, NfProfile, Profile

Array = NDArray[np.float64]
REACH = 0.2
LEAST_ROWS = 10


@register
class SlomoPredictor(Predictor):
    """Gradient boosting on the competitors' counters at default traffic."""

    name: ClassVar[str] = "slomo"

    def __init__(
        self, nfs: Mapping[str, NfModel], memory: Mapping[str, MemoryModel], default: Mapping[str, TrafficProfile]
    ) -> None:
        self._nfs, self._memory, self._default = nfs, memory, default
        self._facts = Facts(nfs)

    @classmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        """Learn from the runs beside mem-bench at default flows and packet size, or nearest to it where they are few."""
        wanted = profile.default_traffic()
        memory, default = {}, {}
        for name in nfs:
            rows = _at_default(profile.nfs[name], wanted)
            if len(rows) < LEAST_ROWS:
                warn(
                    f"{name}: {len(rows)} runs beside mem-bench at default traffic, SLOMO takes the nearest {LEAST_ROWS}"
                )
                rows = _nearest(profile.nfs[name], wanted)
            fixed = np.zeros((len(rows), 3))
            memory[name] = MemoryModel.fit(
                rows[COUNTER_COLUMNS].to_numpy(dtype=np.float64), fixed, np.log(rows[THROUGHPUT].to_numpy()), seed
            )
            default[name] = wanted
        return cls(nfs, memory, default)

    def save(self, folder: Path) -> None:
        """One file per NF."""
        for name, model in self._memory.items():
            traffic = np.array(self._default[name].as_tuple())
            np.savez(folder / f"{name}.npz", **model.as_arrays(), default_traffic=traffic)

    @classmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        """The predictor that `save` wrote."""
        memory, default = {}, {}
        for name in nfs:
            with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
                arrays = dict(file)
            memory[name] = MemoryModel.from_arrays(arrays)
            default[name] = TrafficProfile(*arrays["default_traffic"].tolist())
        return cls(nfs, memory, default)

    def solo(self, workloads: Sequence[Workload]) -> Array:
        """Throughput (kpps) of each workload alone on the NIC."""
        places = self._facts.places(workloads)
        return self._facts.solo[places]

    def throughput(self, companies: Sequence[Sequence[Workload]]) -> list[Array]:
        """Throughput (kpps) of every workload of every company."""
        seats = self._facts.companies(companies)
        member = seats.member
        throughput = np.where(member >= 0, self._facts.solo[member], 0.0)
        crowded = (member >= 0) & (seats.sizes[:, None] > 1)
        if crowded.any():
            counters, places = self._facts.competitors(member)[crowded], member[crowded]
            predicted = np.empty(len(places))
            for at in np.unique(self._facts.nf[places]):
                rows = self._facts.nf[places] == at
                predicted[rows] = self._rates(self._facts.names[at], counters[rows], self._facts.traffic[places[rows]])
            throughput[crowded] = np.minimum(predicted, throughput[crowded])
        return seats.in_given_order(throughput)

    def predict(self, companies: Sequence[Sequence[Workload]]) -> list[list[Prediction]]:
        """Throughput; every drop is memory's."""
        return [
            [
                Prediction(float(kpps), float(solo), {"memory": float(solo - kpps)}, "memory" if kpps < solo else "cpu")
                for kpps, solo in zip(row, self.solo(company), strict=True)
            ]
            for company, row in zip(companies, self.throughput(companies), strict=True)
        ]

    def predict_contention(self, nf: str, table: pd.DataFrame) -> Array:
        """Throughput (kpps) of `nf` per row; accelerator contention is not seen."""
        if nf not in self._nfs:
            raise InputError.of("--nf", f"no model of {nf}", hint=f"modelled: {', '.join(self._nfs)}")
        return self._rates(nf, table[COUNTER_COLUMNS].to_numpy(dtype=np.float64), traffic_of(table))

    def _rates(self, nf: str, counters: Array, traffic: Array) -> Array:
        """Throughput at default traffic, scaled by solo throughput within the reach of the extrapolation."""
        default = np.array(self._default[nf].as_tuple())
        rates = np.exp(self._memory[nf](counters, np.zeros_like(traffic)))
        reached = np.tile(default, (len(traffic), 1))
        reached[:, 0] = np.clip(traffic[:, 0], default[0] * (1 - REACH), default[0] * (1 + REACH))
        model = self._nfs[nf]
        at_default = model.solo_kpps(default[None, :])
        scaled: Array = np.minimum(rates, at_default) * model.solo_kpps(reached) / at_default
        return scaled


def _at_default(nf: NfProfile, wanted: TrafficProfile) -> pd.DataFrame:
    same = np.isclose(nf.memory["flows"], wanted.flows) & np.isclose(nf.memory["packet_size"], wanted.packet_size)
    return nf.memory[same]


def _nearest(nf: NfProfile, wanted: TrafficProfile) -> pd.DataFrame:
    flows = np.abs(np.log(np.maximum(nf.memory["flows"], 1.0) / max(wanted.flows, 1.0)))
    sizes = np.abs(np.log(np.maximum(nf.memory["packet_size"], 1.0) / max(wanted.packet_size, 1.0)))
    return nf.memory.iloc[np.argsort((flows + sizes).to_numpy(), kind="stable")[:LEAST_ROWS]]
