"""The equilibrium of a co-location by the resource models, without any correction (Tomur, appendix F).

A co-location is predicted in the paper's steps: what memory contention leaves of each NF's cores (section 4.1.2), what
each shared accelerator allows (4.1.1), and both composed (4.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.contention.accelerators import limits
from predictor.contention.batch import CoLocationBatch
from predictor.contention.calibration import Conditions
from predictor.contention.composition import (
    PIPELINE,
    RUN_TO_COMPLETION,
    Composition,
    drops_on_accelerators,
    pipeline,
    run_to_completion,
)
from predictor.contention.memory_logarithm import WORKING_SET
from predictor.contention.neighbours import NeighbourInputs
from predictor.contention.subsets import lowest_over_subsets
from predictor.contention.workload_table import WorkloadTable
from profiles import Workload

Array = NDArray[np.float64]
Positions = tuple[NDArray[np.intp], ...]
"""Positions of members in a batch: co-location, member."""

SETTLED = 1e-6
MOST_ROUNDS = 20


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
        shape = (*batch.member.shape, 1 + len(table.accelerators))
        solo, cores = np.ones(shape[:2]), np.ones(shape[:2])
        solo[batch.occupied] = table.modelled_solo[batch.member[batch.occupied]]
        cores[batch.occupied] = self._cores(batch)
        drops, bound = np.zeros(shape), np.full(shape, np.inf)
        drops[:, :, 0], bound[:, :, 0] = np.maximum(solo - cores, 0.0), cores
        throughput = self._composed(batch.member, solo, drops)
        sharing = batch.sizes > 1
        if table.accelerators and sharing.any():
            part = self._share_accelerators(batch.member[sharing], solo[sharing], cores[sharing], throughput[sharing])
            throughput[sharing], drops[sharing, :, 1:], bound[sharing, :, 1:] = part
        throughput[~sharing], drops[~sharing] = solo[~sharing], 0.0
        for values in (throughput, drops, bound):
            _equalise_twins(batch.member, values)
        factor = np.where(batch.occupied, table.factor[batch.member], 1.0)
        each = factor[:, :, None]
        return Equilibrium(batch, np.minimum(throughput, solo) * factor, solo * factor, drops * each, bound * each)

    def conditions(
        self, equilibrium: Equilibrium, among: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[str, Positions, Conditions]]:
        """Per NF, its positions among these members (those with competitors by default), and their conditions."""
        table, batch = self._table, equilibrium.batch
        turns = np.where(batch.occupied[:, :, None], (table.queues * table.service)[batch.member], 0.0)
        others = turns.sum(axis=1, keepdims=True) - turns
        neighbours = NeighbourInputs(table.nf, table.deviation, len(table.names))
        positions = np.nonzero(batch.contended if among is None else among)
        for name, rows in table.by_nf(batch.member[positions]):
            model, where = table.models[name], tuple(axis[rows] for axis in positions)
            which = batch.member[where]
            columns = [table.accelerators.index(accelerator) for accelerator in model.accelerators]
            own, competitors = table.service[which][:, columns], others[where][:, columns]
            throughput, solo = equilibrium.throughput[where], equilibrium.solo[where]
            near = neighbours.of(batch.member, where)
            yield name, where, Conditions.of(table.traffic[which], throughput, solo, competitors, own, near)

    def _cores(self, batch: CoLocationBatch) -> Array:
        """What each member's cores reach under the others' memory contention, before any queueing."""
        table, rows = self._table, batch.member[batch.occupied]
        share = np.minimum(lowest_over_subsets(table, batch, self._memory_share)[batch.occupied], 1.0)
        reached: Array = 1.0 / (1.0 / (table.base[rows] * share) + table.match_ms[rows])
        return reached

    def _memory_share(self, nf: str, rows: NDArray[np.intp], counters: Array) -> Array:
        table, model = self._table, self._table.models[nf]
        runs = model.memory_runs(counters, table.traffic[rows], table.counters[rows, WORKING_SET])
        return model.memory_share(runs, table.base[rows])

    def _share_accelerators(
        self, member: NDArray[np.intp], solo: Array, cores: Array, throughput: Array
    ) -> tuple[Array, Array, Array]:
        """Throughput of every member, its drop on each accelerator, and what each allows.

        An NF's demand for an accelerator depends on what its other resources leave it; a few rounds settle that.
        """
        table, occupied = self._table, (member >= 0)[:, :, None]
        queues = np.where(occupied, table.queues[member], 0.0)
        service = np.where(queues > 0, table.service[member], 0.0)
        memory = np.maximum(solo - cores, 0.0)[:, :, None]
        bound, drops, throughput = np.full(queues.shape, np.inf), np.zeros(queues.shape), throughput.copy()
        moving = np.flatnonzero((queues > 0).any(axis=(1, 2)))
        for turn in range(MOST_ROUNDS):
            if not len(moving):
                break
            alone, before, staged = solo[moving], throughput[moving], table.pipeline[member[moving]]
            demand = _demand(staged, cores[moving], bound[moving], before)
            limited = np.empty(demand.shape)
            for at in range(demand.shape[2]):
                limited[:, :, at] = limits(service[moving, :, at], queues[moving, :, at], demand[:, :, at])
            lost = np.where(
                staged[:, :, None],
                drops_on_accelerators(PIPELINE, alone, service[moving], limited),
                drops_on_accelerators(RUN_TO_COMPLETION, alone, service[moving], limited),
            )
            after = self._composed(member[moving], alone, np.concatenate([memory[moving], lost], axis=2))
            change = np.abs(after - before).max(axis=1)
            # half steps: of two NFs that wait for each other, neither jumps ahead
            throughput[moving] = after if turn == 0 else (after + before) / 2
            bound[moving], drops[moving] = limited, lost
            moving = moving[change > SETTLED * after.max(axis=1)]
        return throughput, drops, bound

    def _composed(self, member: NDArray[np.intp], solo: Array, drops: Array) -> Array:
        """End-to-end throughput by each NF's execution pattern (Tomur, equation 7)."""
        if self._composition:
            return self._composition(solo, drops)
        staged = self._table.pipeline[member]
        return np.where(staged, pipeline(solo, drops), run_to_completion(solo, drops))


def _equalise_twins(member: NDArray[np.intp], values: Array) -> None:
    """Give equal members of a co-location, which are adjacent, equal values to the last bit: sums round by position."""
    for at in range(1, member.shape[1]):
        twins = member[:, at] == member[:, at - 1]
        values[twins, at] = values[twins, at - 1]


def _demand(staged: NDArray[np.bool_], cores: Array, bound: Array, throughput: Array) -> Array:
    """The demand of each member for each accelerator (kpps), shape (co-locations, members, accelerators).

    A pipeline sends what its other stages carry; run to completion sends a packet when the last has come back.
    """
    demand = np.empty(bound.shape)
    for at in range(bound.shape[2]):
        others = np.delete(bound, at, axis=2).min(axis=2, initial=np.inf)
        demand[:, :, at] = np.where(staged, np.minimum(cores, others), throughput)
    return demand
