"""Tomur: a model per resource, composed by execution pattern (Tomur, appendix F).

A company is predicted in the paper's steps: what memory contention leaves of each NF's cores (4.1.2), what each shared
accelerator allows (4.1.1), and both composed (4.2).
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
from predictor.company import Companies
from predictor.facts import Facts
from predictor.nf_model import NfModel
from predictor.prediction import Prediction
from predictor.registry import Predictor, Warn, register
from predictor.tables import contention_of, traffic_of
from profiles import ATTRIBUTES, InputError, Workload
from profiles.profile import COUNTER_COLUMNS, Profile

Array = NDArray[np.float64]
SETTLED = 1e-6
MOST_ROUNDS = 12
FELT = 0.005


@dataclass(frozen=True)
class Answer:
    """Per company and member: throughput, and what each single resource would leave of it (kpps).

    Parameters
    ----------
    companies
        The companies.
    throughput, memory
        Shape (companies, members).
    accelerators
        Shape (companies, members, accelerators); inf where one is not used.
    """

    companies: Companies
    throughput: Array
    memory: Array
    accelerators: Array


@register
class TomurPredictor(Predictor):
    """Multi-resource prediction from the NF models alone."""

    name: ClassVar[str] = "tomur"

    def __init__(self, nfs: Mapping[str, NfModel]) -> None:
        self._nfs = nfs
        self._facts = Facts(nfs)

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
        places = self._facts.places(workloads)
        return self._facts.solo[places]

    def throughput(self, companies: Sequence[Sequence[Workload]]) -> list[Array]:
        """Throughput (kpps) of every workload of every company."""
        answer = self._answer(companies)
        return answer.companies.in_given_order(answer.throughput)

    def predict(self, companies: Sequence[Sequence[Workload]]) -> list[list[Prediction]]:
        """Throughput, the drop on each resource, and the bottleneck."""
        answer = self._answer(companies)
        solo = np.where(answer.companies.member >= 0, self._facts.solo[answer.companies.member], np.nan)
        rows = zip(
            companies,
            answer.companies.in_given_order(answer.throughput),
            answer.companies.in_given_order(solo),
            answer.companies.in_given_order(answer.memory),
            zip(
                *(
                    answer.companies.in_given_order(answer.accelerators[:, :, at])
                    for at in range(len(self._facts.accelerators))
                ),
                strict=True,
            )
            if self._facts.accelerators
            else [()] * len(companies),
            strict=True,
        )
        return [
            [
                self._prediction(
                    workload, *(float(part[at]) for part in (kpps, alone, memory)), [float(a[at]) for a in allowed]
                )
                for at, workload in enumerate(company)
            ]
            for company, kpps, alone, memory, allowed in rows
        ]

    def predict_contention(self, nf: str, table: pd.DataFrame) -> Array:
        """Throughput (kpps) of `nf` per row, beside contention known by its sum."""
        if nf not in self._nfs:
            raise InputError.of("--nf", f"no model of {nf}", hint=f"modelled: {', '.join(self._nfs)}")
        model = self._nfs[nf]
        traffic = traffic_of(table)
        base = model.base_kpps(traffic)
        left = base * model.memory_share(table[COUNTER_COLUMNS].to_numpy(dtype=np.float64), traffic, base)
        predicted = model.execution.throughput(left, traffic, *contention_of(table, model.accelerators))
        return np.minimum(predicted, model.solo_kpps(traffic))

    def _answer(self, companies: Sequence[Sequence[Workload]]) -> Answer:
        facts = self._facts
        seats = facts.companies(companies)
        member = seats.member
        here = member >= 0
        contended = np.where(here, facts.base[member], 1.0) * self._memory_share(member)
        match_ms = np.where(here, 1.0 / facts.reached[member] - 1.0 / facts.base[member], 0.0)
        reached = 1.0 / (1.0 / contended + match_ms)
        solo = np.where(here, facts.solo[member], 0.0)
        throughput, allowed = self._share_accelerators(member, reached)
        alone = seats.sizes[:, None] < 2
        throughput = np.where(alone, solo, np.minimum(throughput, solo))
        return Answer(seats, throughput, np.where(alone, solo, np.minimum(reached, solo)), allowed)

    def _memory_share(self, member: NDArray[np.intp]) -> Array:
        """What memory contention leaves of each member, between 0 and 1."""
        facts = self._facts
        share = np.ones(member.shape)
        crowded = (member >= 0) & ((member >= 0).sum(axis=1, keepdims=True) > 1)
        if not crowded.any():
            return share
        counters = facts.competitors(member)[crowded]
        if np.isnan(counters).any():
            missing = [name for name, model in self._nfs.items() if not model.solo]
            raise InputError.of(
                f"{missing[0]}/solo.csv",
                "is missing, so what the NF does to others is not known",
                hint="profile it alone",
            )
        places = member[crowded]
        left = np.empty(len(places))
        for at in np.unique(facts.nf[places]):
            rows = facts.nf[places] == at
            model, which = self._nfs[facts.names[at]], places[rows]
            left[rows] = model.memory_share(counters[rows], facts.traffic[which], facts.base[which])
        share[crowded] = left
        return share

    def _share_accelerators(self, member: NDArray[np.intp], reached: Array) -> tuple[Array, Array]:
        """Throughput of every member, and what each accelerator alone would allow it.

        What one NF asks of an accelerator depends on what the other resources leave it; a few rounds settle it.
        """
        facts = self._facts
        here = member >= 0
        queues = np.where(here[:, :, None], facts.queues[member], 0.0)
        service = np.where(here[:, :, None], facts.service[member], 0.0)
        staged = here & facts.pipeline[member]
        allowed = np.full(queues.shape, np.inf)
        throughput = np.where(here, np.minimum(reached, facts.solo[member]), 0.0)
        if not len(facts.accelerators):
            return throughput, allowed
        own = np.where(staged[:, :, None], service, 1.0 / reached[:, :, None])
        rows = ((queues > 0).sum(axis=1) > 0).any(axis=1)
        queues, service, own, staged = queues[rows], service[rows], own[rows], staged[rows]
        settled = throughput[rows]
        free = reached[rows]
        bound = np.full(queues.shape, np.inf)
        for _ in range(MOST_ROUNDS):
            before = settled
            bound = np.stack(
                [
                    limits(own[:, :, at], service[:, :, at], queues[:, :, at], _asked(at, staged, free, bound, settled))
                    for at in range(len(facts.accelerators))
                ],
                axis=2,
            )
            waits = np.where(np.isinf(bound), 0.0, 1.0 / bound - 1.0 / free[:, :, None]).sum(axis=2)
            composed = np.where(staged, np.minimum(free, bound.min(axis=2)), 1.0 / (1.0 / free + waits))
            settled = np.where(staged, composed, (composed + before) / 2)
            if np.all(np.abs(settled - before) <= SETTLED * np.maximum(before, SETTLED)):
                break
        throughput[rows] = np.where(member[rows] >= 0, composed, 0.0)
        allowed[rows] = bound
        return throughput, allowed

    def _prediction(
        self, workload: Workload, kpps: float, solo: float, memory: float, allowed: list[float]
    ) -> Prediction:
        model = self._nfs[workload.nf]
        drops = {"memory": max(solo - memory, 0.0)}
        for name, limit in zip(self._facts.accelerators, allowed, strict=True):
            if name in model.accelerators:
                drops[name] = max(solo - limit, 0.0)
        return Prediction(
            kpps,
            solo,
            drops,
            _bottleneck(model, workload, kpps, solo, memory, dict(zip(self._facts.accelerators, allowed, strict=True))),
            extrapolated=is_extrapolated(model, workload),
        )


def _asked(at: int, staged: NDArray[np.bool_], free: Array, bound: Array, settled: Array) -> Array:
    """What each member asks of accelerator `at`: what its other stages would carry, or how often it comes back."""
    others = np.delete(bound, at, axis=2)
    elsewhere = np.minimum(free, others.min(axis=2)) if others.shape[2] else free
    return np.where(staged, elsewhere, settled)


def _bottleneck(
    model: NfModel, workload: Workload, kpps: float, solo: float, memory: float, allowed: Mapping[str, float]
) -> str:
    """The accelerator that binds; else memory when its contention is felt, else the cores."""
    limits_here = {name: allowed[name] for name in model.accelerators}
    slowest = min(limits_here, key=lambda name: limits_here[name], default=None)
    if (
        slowest is not None
        and model.execution.pattern == "pipeline"
        and limits_here[slowest] <= min(memory, solo) * (1 + 1e-9)
    ):
        return slowest
    if slowest is not None and model.execution.pattern != "pipeline" and limits_here[slowest] < memory * (1 - FELT):
        return slowest
    return "memory" if memory < solo * (1 - FELT) else "cpu"


def is_extrapolated(model: NfModel, workload: Workload) -> bool:
    """Whether the traffic lies outside what was measured of the NF."""
    values = workload.traffic.as_dict()
    return any(not low <= values[name] <= high for name in ATTRIBUTES for low, high in [model.measured[name]])
