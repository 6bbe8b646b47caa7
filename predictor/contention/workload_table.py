"""What is known of workloads alone, as arrays with one row per distinct workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from predictor.contention.batch import CoLocations, Roster
from predictor.contention.composition import PIPELINE
from predictor.contention.nf_model import NfModel
from profiles import InputError, Workload

Array = NDArray[np.float64]

ARRAYS = ("nf", "pipeline", "traffic", "counters", "base", "match_ms", "solo", "queues", "service")


class Facts:
    """Solo behaviour of workloads, computed once per distinct workload and remembered.

    Arrays have a row per workload, and some more.

    Attributes
    ----------
    nf
        Place of the NF in `names`, shape (workloads,).
    pipeline
        Whether its execution pattern is pipeline, shape (workloads,).
    traffic, counters
        Shapes (workloads, 3) and (workloads, 7); counters are NaN where the NF was not measured alone.
    base, match_ms, solo
        `NfModel.base_kpps`, time that matches add to run-to-completion, and `NfModel.solo_kpps`, shape (workloads,).
    queues, service
        Per accelerator in `accelerators`, 0 where it is not used, shape (workloads, accelerators).
    """

    def __init__(self, nfs: Mapping[str, NfModel]) -> None:
        self.models = nfs
        self.names = tuple(nfs)
        self.accelerators = tuple(sorted({name for model in nfs.values() for name in model.accelerators}))
        self._roster = Roster(self._add)
        self._known = 0
        self.nf: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.pipeline: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self.traffic, self.counters = np.zeros((0, 3)), np.zeros((0, 7))
        self.base, self.match_ms, self.solo = np.zeros(0), np.zeros(0), np.zeros(0)
        self.queues = np.zeros((0, len(self.accelerators)))
        self.service = np.zeros((0, len(self.accelerators)))

    def places(self, workloads: Sequence[Workload]) -> NDArray[np.intp]:
        """The row of each workload.

        Raises
        ------
        InputError
            When an NF is not modelled.
        """
        return self._roster.places(workloads)

    def solo_of(self, workloads: Sequence[Workload]) -> Array:
        """Throughput (kpps) of each workload alone."""
        places = self.places(workloads)
        return self.solo[places]

    def co_locations(self, co_locations: Sequence[Sequence[Workload]]) -> CoLocations:
        """The companies as rows of places."""
        return self._roster.co_locations(co_locations)

    def by_nf(self, places: NDArray[np.intp]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Each NF that occurs, and where."""
        for at in np.unique(self.nf[places]):
            yield self.names[at], self.nf[places] == at

    def competitors(self, member: NDArray[np.intp]) -> Array:
        """The summed counters of each member's competitors, shape (companies, members, 7).

        Raises
        ------
        InputError
            When a competitor was not measured alone, so that its counters are not known.
        """
        seated = member >= 0
        own = np.where(seated[:, :, None], self.counters[member], 0.0) if member.size else np.zeros((*member.shape, 7))
        crowded = seated.sum(axis=1) > 1
        if np.isnan(own[crowded]).any():
            missing = next(name for name, model in self.models.items() if not model.solo)
            raise InputError.of(
                f"{missing}/solo.csv",
                "is missing, or holds fewer than 3 runs, so what the NF does to others is not known",
                hint="measure it alone",
            )
        total: Array = np.maximum(own.sum(axis=1, keepdims=True) - own, 0.0)
        total[~crowded] = 0.0
        return total

    def _add(self, workloads: Sequence[Workload]) -> None:
        unknown = sorted({workload.nf for workload in workloads} - set(self.names))
        if unknown:
            raise InputError.of(
                "workloads", f"no model of {', '.join(unknown)}", column="nf", hint=f"one of {', '.join(self.names)}"
            )
        nf = np.array([self.names.index(workload.nf) for workload in workloads], dtype=np.intp)
        traffic = np.array([workload.traffic.as_tuple() for workload in workloads])
        new = np.arange(self._known, self._known + len(workloads))
        self._make_room(len(workloads))
        self.nf[new], self.traffic[new] = nf, traffic
        for at in np.unique(nf):
            self._describe(self.models[self.names[at]], new[nf == at])
        self._known += len(workloads)

    def _make_room(self, count: int) -> None:
        """Let every array hold that many workloads more; twice as many as before, so that growing costs little."""
        if self._known + count <= len(self.nf):
            return
        spare = max(self._known + count, 2 * len(self.nf)) - len(self.nf)
        for name in ARRAYS:
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((spare, *old.shape[1:]), dtype=old.dtype)]))

    def _describe(self, model: NfModel, rows: NDArray[np.intp]) -> None:
        traffic, execution = self.traffic[rows], model.execution
        self.pipeline[rows] = execution.pattern == PIPELINE
        self.counters[rows] = model.solo.own_counters(traffic) if model.solo else np.nan
        self.base[rows] = model.base_kpps(traffic)
        self.match_ms[rows] = 0.0 if execution.pattern == PIPELINE else execution.match_ms(traffic)
        self.solo[rows] = model.solo_kpps(traffic)
        for use, time in zip(execution.uses, execution.service_ms(traffic).T, strict=True):
            column = self.accelerators.index(use.name)
            self.queues[rows, column], self.service[rows, column] = use.queues, time
