"""The equilibrium of a co-location by the resource models, without any correction (Tomur, appendix F).

A co-location is predicted in the paper's steps: what memory contention leaves of each NF's cores (section 4.1.2), what
each shared accelerator allows (4.1.1), and both composed (4.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from predictor.contention.batch import CoLocationBatch
from predictor.contention.calibration import Conditions
from predictor.contention.composition import Composition
from predictor.contention.conditions_of_members import write_all_pressures
from predictor.contention.memory import memory_models
from predictor.contention.memory_logarithm import MemoryModels
from predictor.contention.neighbours import NeighbourInputs
from predictor.contention.settling import BY_PATTERN, settle
from predictor.contention.workload_table import WorkloadTable
from profiles import Workload

Array = NDArray[np.float64]
Positions = tuple[NDArray[np.intp], ...]
"""Positions of members in a batch: co-location, member."""


@dataclass(frozen=True)
class Equilibrium:
    """Per co-location and member, in kpps.

    Parameters
    ----------
    batch
        The co-locations.
    throughput, solo
        Shape (co-locations, members).
    drops
        On memory, then on each accelerator, each as if it alone were contended. Shape (co-locations, members,
        resources).
    bound
        What the cores reach, then what each accelerator allows; inf where it is not used. Shape as `drops`.
    """

    batch: CoLocationBatch
    throughput: Array
    solo: Array
    drops: Array
    bound: Array


class EquilibriumModel:
    """Finds the equilibrium of co-locations.

    Parameters
    ----------
    table
        The workloads' solo behaviour.
    composition
        For all NFs; each NF's own pattern when None.
    """

    def __init__(self, table: WorkloadTable, composition: Composition | None = None) -> None:
        self._table = table
        self._composition = composition

    def solve(self, co_locations: Sequence[Sequence[Workload]]) -> Equilibrium:
        """Throughput of every workload of every co-location, with its parts."""
        table, batch = self._table, self._table.batch(co_locations)
        table.refuse_unknown_contention(batch.member[batch.contended])
        throughput, solo = np.ones(batch.member.shape), np.ones(batch.member.shape)
        drops = np.zeros((*batch.member.shape, 1 + len(table.accelerators)))
        bound = np.full(drops.shape, np.inf)
        number = self._composition.number if self._composition else BY_PATTERN
        settle(table.columns, self._memory, number, batch.member, batch.sizes, throughput, solo, drops, bound)
        return Equilibrium(batch, throughput, solo, drops, bound)

    def conditions(self, equilibrium: Equilibrium) -> Iterator[tuple[str, Positions, Conditions]]:
        """Per NF, its positions among members that have competitors, and their conditions."""
        table, batch = self._table, equilibrium.batch
        neighbours = NeighbourInputs(table.nf, table.deviation, len(table.names))
        positions = np.nonzero(batch.contended)
        for name, rows in table.by_nf(batch.member[positions]):
            model, where = table.models[name], tuple(axis[rows] for axis in positions)
            columns = np.array([table.accelerators.index(one) for one in model.accelerators], dtype=np.int64)
            pressure = np.empty((len(where[0]), len(columns)))
            write_all_pressures(table.columns, batch.member, np.column_stack(where), columns, pressure)
            kept = equilibrium.throughput[where] / equilibrium.solo[where]
            traffic = table.traffic[batch.member[where]]
            yield name, where, Conditions(traffic, kept, pressure, neighbours.of(batch.member, where))

    @cached_property
    def _memory(self) -> MemoryModels:
        return memory_models([model.memory for model in self._table.models.values()])
