"""Companies of NFs by physics alone: a model per resource, composed by execution pattern (Tomur, appendix F).

A company is predicted in the paper's steps: what memory contention leaves of each NF's cores (section 4.1.2), what each
shared accelerator allows (4.1.1), and both composed (4.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.contention.accelerators import limits
from predictor.contention.batch import CoLocations
from predictor.contention.calibration import Seen
from predictor.contention.composition import (
    PIPELINE,
    RUN_TO_COMPLETION,
    Composition,
    drops_on_accelerators,
    pipeline,
    run_to_completion,
)
from predictor.contention.memory import WORKING_SET
from predictor.contention.workload_table import Facts
from profiles import Workload

Array = NDArray[np.float64]
Where = tuple[NDArray[np.intp], ...]

SETTLED = 1e-6
MOST_ROUNDS = 20


@dataclass(frozen=True)
class Answer:
    """Per company and member, in kpps.

    Parameters
    ----------
    seats
        Who sits where.
    throughput, solo
        Shape (companies, members).
    drops
        On memory, then on each accelerator, each as if it alone were contended. Shape (companies, members, resources).
    bound
        What the cores reach, then what each accelerator allows; inf where it is not used. Shape as `drops`.
    """

    seats: CoLocations
    throughput: Array
    solo: Array
    drops: Array
    bound: Array

    @property
    def beside(self) -> NDArray[np.bool_]:
        """Where there is a member in company, shape (companies, members)."""
        there: NDArray[np.bool_] = self.seats.seated & (self.seats.sizes[:, None] > 1)
        return there


class Contended:
    """What contention makes of companies.

    Parameters
    ----------
    facts
        Of the NFs.
    composition
        For all NFs; each NF's own pattern when None.
    """

    def __init__(self, facts: Facts, composition: Composition | None = None) -> None:
        self._facts = facts
        self._composition = composition

    def answer(self, co_locations: Sequence[Sequence[Workload]]) -> Answer:
        """Throughput of every workload of every company, and what it is made of."""
        facts, seats = self._facts, self._facts.co_locations(co_locations)
        shape = (*seats.member.shape, 1 + len(facts.accelerators))
        solo, cores = np.ones(shape[:2]), np.ones(shape[:2])
        solo[seats.seated] = facts.solo[seats.member[seats.seated]]
        cores[seats.seated] = self._cores(seats)
        drops, bound = np.zeros(shape), np.full(shape, np.inf)
        drops[:, :, 0], bound[:, :, 0] = np.maximum(solo - cores, 0.0), cores
        throughput = self._composed(seats.member, solo, drops)
        sharing = seats.sizes > 1
        if facts.accelerators and sharing.any():
            part = self._share_accelerators(seats.member[sharing], solo[sharing], cores[sharing], throughput[sharing])
            throughput[sharing], drops[sharing, :, 1:], bound[sharing, :, 1:] = part
        throughput[~sharing], drops[~sharing] = solo[~sharing], 0.0
        for values in (throughput, drops, bound):
            _level_twins(seats.member, values)
        return Answer(seats, np.minimum(throughput, solo), solo, drops, bound)

    def seen(self, answer: Answer, among: NDArray[np.bool_] | None = None) -> Iterator[tuple[str, Where, Seen]]:
        """Per NF: where it sits among these members (all in company by default), and what is predicted from."""
        facts, member = self._facts, answer.seats.member
        turns = np.where(answer.seats.seated[:, :, None], (facts.queues * facts.service)[member], 0.0)
        others = turns.sum(axis=1, keepdims=True) - turns
        places = np.nonzero(answer.beside if among is None else among)
        for name, rows in facts.by_nf(member[places]):
            model, where = facts.models[name], tuple(axis[rows] for axis in places)
            which = member[where]
            columns = [facts.accelerators.index(accelerator) for accelerator in model.accelerators]
            own, competitors = facts.service[which][:, columns], others[where][:, columns]
            yield (
                name,
                where,
                Seen.of(facts.traffic[which], answer.throughput[where], answer.solo[where], competitors, own),
            )

    def _cores(self, seats: CoLocations) -> Array:
        """What the cores of everybody seated reach beside the others' memory accesses, before any queueing."""
        facts, places = self._facts, seats.member[seats.seated]
        counters = facts.competitors(seats.member)[seats.seated]
        crowded = np.broadcast_to(seats.sizes[:, None] > 1, seats.member.shape)[seats.seated]
        share = np.ones(len(places))
        for name, rows in facts.by_nf(places):
            rows = rows & crowded
            model, which = facts.models[name], places[rows]
            runs = model.memory_runs(counters[rows], facts.traffic[which], facts.counters[which, WORKING_SET])
            share[rows] = model.memory_share(runs, facts.base[which])
        reached: Array = 1.0 / (1.0 / (facts.base[places] * share) + facts.match_ms[places])
        return reached

    def _share_accelerators(
        self, member: NDArray[np.intp], solo: Array, cores: Array, throughput: Array
    ) -> tuple[Array, Array, Array]:
        """Throughput of every member, its drop on each accelerator, and what each allows.

        What an NF asks of an accelerator depends on what its other resources leave it; a few rounds settle that.
        """
        facts, seated = self._facts, (member >= 0)[:, :, None]
        queues = np.where(seated, facts.queues[member], 0.0)
        service = np.where(queues > 0, facts.service[member], 0.0)
        memory = np.maximum(solo - cores, 0.0)[:, :, None]
        bound, drops, throughput = np.full(queues.shape, np.inf), np.zeros(queues.shape), throughput.copy()
        moving = np.flatnonzero((queues > 0).any(axis=(1, 2)))
        for turn in range(MOST_ROUNDS):
            if not len(moving):
                break
            alone, before, staged = solo[moving], throughput[moving], facts.pipeline[member[moving]]
            asked = _asked(staged, cores[moving], bound[moving], before)
            limited = np.empty(asked.shape)
            for at in range(asked.shape[2]):
                limited[:, :, at] = limits(service[moving, :, at], queues[moving, :, at], asked[:, :, at])
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
        staged = self._facts.pipeline[member]
        return np.where(staged, pipeline(solo, drops), run_to_completion(solo, drops))


def _level_twins(member: NDArray[np.intp], values: Array) -> None:
    """Let equal members of a company, who are neighbours, have the same values to the last bit: sums round by seat."""
    for seat in range(1, member.shape[1]):
        twins = member[:, seat] == member[:, seat - 1]
        values[twins, seat] = values[twins, seat - 1]


def _asked(staged: NDArray[np.bool_], cores: Array, bound: Array, throughput: Array) -> Array:
    """What each member asks of each accelerator, shape (companies, members, accelerators).

    A pipeline sends what its other stages carry; run to completion sends a packet when the last has come back.
    """
    asked = np.empty(bound.shape)
    for at in range(bound.shape[2]):
        others = np.delete(bound, at, axis=2).min(axis=2, initial=np.inf)
        asked[:, :, at] = np.where(staged, np.minimum(cores, others), throughput)
    return asked
