"""Tomur: a model per resource, composed by execution pattern (Tomur, appendix F).

A company is predicted in the paper's steps: what memory contention leaves of each NF's cores (section 4.1.2), what each
shared accelerator allows (4.1.1), and both composed (4.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor.accelerators import limits
from predictor.calibration import interval_factors, lower_factor
from predictor.company import Companies
from predictor.composition import (
    COMPOSITIONS,
    PIPELINE,
    RUN_TO_COMPLETION,
    drops_on_accelerators,
    pipeline,
    run_to_completion,
)
from predictor.facts import Facts
from predictor.memory import WORKING_SET
from predictor.nf_model import NfModel
from predictor.prediction import Prediction
from predictor.registry import Predictor, Warn, register
from predictor.tables import contention_of, counters_of, model_of, refuse_unreadable, traffic_of
from profiles import TrafficProfile, Workload
from profiles.profile import Profile

Array = NDArray[np.float64]

SETTLED = 1e-6
MOST_ROUNDS = 20
FELT = 0.005
"""Share of throughput from which contention is said to be felt."""


@dataclass(frozen=True)
class Answer:
    """Per company and member, in kpps.

    Parameters
    ----------
    seats
        Who sits where.
    throughput, solo, calibrated
        The last tells whether measured co-runs are near. Shape (companies, members).
    drops
        On memory, then on each accelerator, each as if it alone were contended. Shape (companies, members, resources).
    bound
        What the cores reach, then what each accelerator allows; inf where it is not used. Shape as `drops`.
    """

    seats: Companies
    throughput: Array
    solo: Array
    calibrated: NDArray[np.bool_]
    drops: Array
    bound: Array


@register
class TomurPredictor(Predictor):
    """Multi-resource prediction from the NF models alone.

    Parameters
    ----------
    nfs
        The NF models.
    composition
        A name in `COMPOSITIONS` for all NFs, such as the strawmen `sum` and `min`; each NF's own pattern when None.
    """

    name: ClassVar[str] = "tomur"

    def __init__(self, nfs: Mapping[str, NfModel], *, composition: str | None = None) -> None:
        self._nfs = nfs
        self._facts = Facts(nfs)
        self._composition = COMPOSITIONS[composition] if composition else None

    @classmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        """The NF models are all it needs."""
        return cls(nfs)

    def save(self, folder: Path) -> None:
        """Nothing beyond the NF models."""

    @classmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        """The predictor over the NF models."""
        return cls(nfs)

    def solo(self, workloads: Sequence[Workload]) -> Array:
        """Throughput (kpps) of each workload alone on the NIC."""
        return self._facts.solo_of(workloads)

    def throughput(self, companies: Sequence[Sequence[Workload]], *, risk: float | None = None) -> list[Array]:
        """Throughput (kpps) of every workload of every company; with `risk`, what that share falls short of at most."""
        answer = self._answer(companies)
        if risk is None:
            return answer.seats.in_given_order(answer.throughput)
        factors = np.array([min(lower_factor(self._nfs[name].errors, risk), 1.0) for name in self._facts.names])
        beside = answer.seats.seated & (answer.seats.sizes[:, None] > 1)
        lowered = answer.throughput.copy()
        lowered[beside] *= factors[self._facts.nf[answer.seats.member[beside]]]
        return answer.seats.in_given_order(lowered)

    def predict(self, companies: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        """Throughput, the drop on each resource, the bottleneck, and an interval of that coverage."""
        answer = self._answer(companies)
        parts = (answer.throughput, answer.solo, answer.calibrated)
        columns = [*(part[:, :, None] for part in parts), answer.drops, answer.bound]
        rows = answer.seats.in_given_order(np.concatenate(columns, axis=2))
        factors = {name: interval_factors(model.errors, coverage) for name, model in self._nfs.items()}
        return [
            [
                self._prediction(workload, factors[workload.nf] if len(company) > 1 else (1.0, 1.0), *values)
                for workload, values in zip(company, of_company.tolist(), strict=True)
            ]
            for company, of_company in zip(companies, rows, strict=True)
        ]

    def predict_contention(self, nf: str, table: pd.DataFrame) -> Array:
        """Throughput (kpps) of `nf` per row, beside contention known by its sums."""
        return self._beside(nf, table)[0]

    def contention_details(self, nf: str, table: pd.DataFrame, *, coverage: float = 0.9) -> list[Prediction]:
        """Throughput, the drop on each resource, the bottleneck, an interval, and whether co-runs corrected it."""
        kpps, near = self._beside(nf, table)
        model, traffic = self._nfs[nf], traffic_of(table)
        solo, contention = model.solo_kpps(traffic), contention_of(table, model.accelerators)
        drops, names = model.drops_beside(counters_of(table), traffic, *contention), ("memory", *model.accelerators)
        low, high = interval_factors(model.errors, coverage) or (None, None)
        return [
            Prediction(
                throughput,
                alone,
                (lost := dict(zip(names, row, strict=True))),
                max(lost, key=lambda name: lost[name]) if max(row) > FELT * alone else "cpu",
                low_kpps=None if low is None else throughput * low,
                high_kpps=None if high is None else throughput * high,
                extrapolated=model.is_extrapolated(TrafficProfile(*attributes)),
                calibrated=applied,
            )
            for throughput, alone, row, attributes, applied in zip(
                kpps.tolist(), solo.tolist(), drops.tolist(), traffic.tolist(), near.tolist(), strict=True
            )
        ]

    def _beside(self, nf: str, table: pd.DataFrame) -> tuple[Array, NDArray[np.bool_]]:
        """Throughput per row, and where measured co-runs are near enough to say that they corrected it."""
        model = model_of(self._nfs, nf)
        refuse_unreadable(table, model.accelerators)
        traffic, (service, rate) = traffic_of(table), contention_of(table, model.accelerators)
        predicted = model.beside(counters_of(table), traffic, service, rate, self._composition)
        if not model.calibration:
            return predicted, np.zeros(len(table), dtype=bool)
        seen = model.seen(traffic, predicted, service)
        corrected = np.minimum(predicted * model.calibration(seen), model.solo_kpps(traffic))
        return corrected, model.calibration.applies(seen)

    def _answer(self, companies: Sequence[Sequence[Workload]]) -> Answer:
        facts, seats = self._facts, self._facts.companies(companies)
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
        throughput, calibrated = self._corrected(seats, np.minimum(throughput, solo), sharing)
        return Answer(seats, np.minimum(throughput, solo), solo, calibrated, drops, bound)

    def _corrected(
        self, seats: Companies, throughput: Array, sharing: NDArray[np.bool_]
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Throughput corrected by measured co-runs, and where they are near enough to say so."""
        facts, corrected, near = self._facts, throughput.copy(), np.zeros(throughput.shape, dtype=bool)
        if not any(model.calibration for model in self._nfs.values()):
            return corrected, near
        turns = np.where(seats.seated[:, :, None], (facts.queues * facts.service)[seats.member], 0.0)
        others = turns.sum(axis=1, keepdims=True) - turns
        beside = seats.seated & sharing[:, None]
        for name, rows in facts.by_nf(seats.member[beside]):
            model, where = self._nfs[name], tuple(axis[rows] for axis in np.nonzero(beside))
            if model.calibration:
                columns = [facts.accelerators.index(accelerator) for accelerator in model.accelerators]
                traffic = facts.traffic[seats.member[where]]
                seen = model.seen(traffic, throughput[where], others[where][:, columns])
                corrected[where] *= model.calibration(seen)
                near[where] = model.calibration.applies(seen)
        return corrected, near

    def _cores(self, seats: Companies) -> Array:
        """What the cores of everybody seated reach beside the others' memory accesses, before any queueing."""
        facts, places = self._facts, seats.member[seats.seated]
        counters = facts.competitors(seats.member)[seats.seated]
        crowded = np.broadcast_to(seats.sizes[:, None] > 1, seats.member.shape)[seats.seated]
        share = np.ones(len(places))
        for name, rows in facts.by_nf(places):
            rows = rows & crowded
            model, which = self._nfs[name], places[rows]
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

    def _prediction(
        self,
        workload: Workload,
        factors: tuple[float, float] | None,
        kpps: float,
        solo: float,
        calibrated: float,
        *resources: float,
    ) -> Prediction:
        model, names = self._nfs[workload.nf], ("memory", *self._facts.accelerators)
        drops = dict(zip(names, resources[: len(names)], strict=True))
        bound = dict(zip(names, resources[len(names) :], strict=True))
        uses = ("memory", *model.accelerators)
        return Prediction(
            kpps,
            solo,
            {name: drops[name] for name in uses},
            _bottleneck(solo, {name: drops[name] for name in uses}, {name: bound[name] for name in uses}),
            low_kpps=kpps * factors[0] if factors else None,
            high_kpps=kpps * factors[1] if factors else None,
            extrapolated=model.is_extrapolated(workload.traffic),
            calibrated=bool(calibrated),
        )


def _asked(staged: NDArray[np.bool_], cores: Array, bound: Array, throughput: Array) -> Array:
    """What each member asks of each accelerator, shape (companies, members, accelerators).

    A pipeline sends what its other stages carry; run to completion sends a packet when the last has come back.
    """
    asked = np.empty(bound.shape)
    for at in range(bound.shape[2]):
        others = np.delete(bound, at, axis=2).min(axis=2, initial=np.inf)
        asked[:, :, at] = np.where(staged, np.minimum(cores, others), throughput)
    return asked


def _bottleneck(solo: float, drops: Mapping[str, float], bound: Mapping[str, float]) -> str:
    """The resource that costs most; where none is felt, the stage that is slowest alone."""
    worst = max(drops, key=lambda name: drops[name])
    if drops[worst] > FELT * solo:
        return worst
    slowest = min(bound, key=lambda name: bound[name])
    return "cpu" if slowest == "memory" else slowest
