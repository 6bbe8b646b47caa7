"""What is known of workloads alone, as arrays with one row per distinct workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from predictor.company import Companies, Roster
from predictor.composition import PIPELINE
from predictor.nf_model import NfModel
from profiles import InputError, Workload

Array = NDArray[np.float64]


class Facts:
    """Solo behaviour of workloads, computed once per distinct workload and remembered.

    Attributes
    ----------
    nf
        Place of the NF in `names`, shape (workloads,).
    traffic, counters
        Shapes (workloads, 3) and (workloads, 7).
    base, reached, solo
        `NfModel.base_kpps`, `Execution.without_contention` and `NfModel.solo_kpps`, shape (workloads,).
    queues, service
        Per accelerator in `accelerators`, 0 where it is not used, shape (workloads, accelerators).
    """

    def __init__(self, nfs: Mapping[str, NfModel]) -> None:
        self.models = nfs
        self.names = tuple(nfs)
        self.accelerators = tuple(sorted({name for model in nfs.values() for name in model.accelerators}))
        self._index = {name: at for at, name in enumerate(self.names)}
        self._roster = Roster(self._add)
        self.nf: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.traffic = np.zeros((0, 3))
        self.counters = np.zeros((0, 7))
        self.base, self.reached, self.solo = np.zeros(0), np.zeros(0), np.zeros(0)
        self.queues = np.zeros((0, len(self.accelerators)))
        self.service = np.zeros((0, len(self.accelerators)))
        self.pipeline = np.zeros(0, dtype=bool)

    def places(self, workloads: Sequence[Workload]) -> NDArray[np.intp]:
        """The row of each workload."""
        return self._roster.places(workloads)

    def companies(self, companies: Sequence[Sequence[Workload]]) -> Companies:
        """The companies as rows of places."""
        return self._roster.companies(companies)

    def competitors(self, member: NDArray[np.intp]) -> Array:
        """The summed counters of each member's competitors, shape (companies, members, 7)."""
        own = np.where((member >= 0)[:, :, None], self.counters[member], 0.0)
        total: Array = own.sum(axis=1, keepdims=True) - own
        total[(member >= 0).sum(axis=1) < 2] = 0.0
        return np.maximum(total, 0.0)

    def _add(self, workloads: Sequence[Workload]) -> None:
        unknown = sorted({workload.nf for workload in workloads} - set(self.names))
        if unknown:
            raise InputError.of(
                "workloads", f"no model of {', '.join(unknown)}", column="nf", hint=f"modelled: {', '.join(self.names)}"
            )
        nf = np.array([self._index[workload.nf] for workload in workloads], dtype=np.intp)
        traffic = np.array([workload.traffic.as_tuple() for workload in workloads])
        size = len(workloads)
        counters, base, reached, solo = np.zeros((size, 7)), np.zeros(size), np.zeros(size), np.zeros(size)
        queues, service = np.zeros((size, len(self.accelerators))), np.zeros((size, len(self.accelerators)))
        pipeline = np.zeros(size, dtype=bool)
        for at in np.unique(nf):
            model, rows = self.models[self.names[at]], nf == at
            here = traffic[rows]
            counters[rows] = model.solo.own_counters(here) if model.solo else np.nan
            base[rows] = model.base_kpps(here)
            reached[rows] = model.execution.without_contention(base[rows], here)
            solo[rows] = model.solo_kpps(here)
            pipeline[rows] = model.execution.pattern == PIPELINE
            for use, time in zip(model.execution.uses, model.execution.service_ms(here).T, strict=True):
                column = self.accelerators.index(use.name)
                queues[rows, column], service[rows, column] = use.queues, time
        self.nf = np.concatenate([self.nf, nf])
        self.traffic = np.concatenate([self.traffic, traffic])
        self.counters = np.concatenate([self.counters, counters])
        self.base = np.concatenate([self.base, base])
        self.reached = np.concatenate([self.reached, reached])
        self.solo = np.concatenate([self.solo, solo])
        self.queues = np.concatenate([self.queues, queues])
        self.service = np.concatenate([self.service, service])
        self.pipeline = np.concatenate([self.pipeline, pipeline])
