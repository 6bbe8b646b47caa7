"""Models of one testbed: trained from a profile, saved, loaded, and queried."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from predictor import store
from predictor.contention.nf_model import NfModel
from predictor.contention.workload_table import WorkloadTable
from predictor.latency import NfLatency
from predictor.model_folder import MANIFEST
from predictor.registry import PREDICTORS, Predictor, Progress, ResourceDemand, Warn
from profiles import ATTRIBUTES, InputError, TestbedDescription, TrafficProfile, Workload
from profiles.faults import suggestion
from profiles.shown import Shown

if TYPE_CHECKING:
    from predictor.training.solo_fits import SoloCurve
    from profiles.profile import Profile


@dataclass(frozen=True)
class SoloBehaviour:
    """The contention of workloads, one row each.

    Parameters
    ----------
    kpps
        Throughput alone, shape (workloads,).
    counters
        The seven counters alone, shape (workloads, 7).
    accelerators
        Names of the columns of what follows, which is 0 where an accelerator is not used.
    turn_ms
        Time that all its queues take in one turn of an accelerator, ms.
    service_ms
        Time that a packet takes, ms.
    """

    kpps: NDArray[np.float64]
    counters: NDArray[np.float64]
    accelerators: tuple[str, ...]
    turn_ms: NDArray[np.float64]
    service_ms: NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Models(Shown):
    """Everything that was learnt of one testbed.

    Parameters
    ----------
    predictors
        By name.
    testbed
        Its description; None when the profile was written without one.
    default_traffic
        The traffic of a workload that does not state its own.
    models
        The model of each NF.
    seed
        The seed of training.
    latencies
        Of the NFs whose latency was measured, the model of it.
    """

    predictors: Mapping[str, Predictor]
    testbed: TestbedDescription | None
    default_traffic: TrafficProfile
    models: Mapping[str, NfModel]
    seed: int = 0
    latencies: Mapping[str, NfLatency] = field(default_factory=dict)
    digest: str = field(default="", init=False)
    """Of the folder that they were loaded from; empty for models that were trained or changed since."""

    @property
    def nfs(self) -> tuple[str, ...]:
        """The NFs, sorted."""
        return tuple(self.models)

    def save(self, directory: Path) -> None:
        """Write to `directory`, in place of the models there; the same models are the same bytes. Other files stay."""
        store.save(
            directory, self.predictors, self.testbed, self.default_traffic, self.models, self.seed, self.latencies
        )

    def check(self, workload: Workload) -> list[tuple[str, str]]:
        """What is wrong with a workload, as (column, message): an unknown NF, traffic outside the profiled range."""
        if workload.nf not in self.models:
            return [("nf", f"'{workload.nf}' is not profiled ({suggestion(workload.nf, self.nfs)})")]
        if not self.testbed:
            return []
        values = workload.traffic.as_dict()
        ranges = {name: self.testbed.range_of(name) for name in ATTRIBUTES if name in self.testbed.attributes}
        return [
            (name, f"{values[name]:g} is outside the profiled range {low:g} to {high:g}")
            for name, (low, high) in ranges.items()
            if not low <= values[name] <= high
        ]

    def cores(self, nf: str) -> int:
        """Cores that the NF takes.

        Raises
        ------
        InputError
            When the NF is not modelled, or its profile does not state its cores.
        """
        if nf not in self.models:
            raise InputError.of("models", f"no model of {nf}", hint=suggestion(nf, self.nfs))
        cores = self.models[nf].cores
        if cores is None:
            raise InputError.of(
                f"{nf}/nf.json", "is missing, so its cores are not known", hint="write it and train again"
            )
        return cores

    def excess_cores(self, workloads: Sequence[Workload]) -> str | None:
        """By how many cores the co-location exceeds the NIC, in words; None where it fits, or cores are not known."""
        cores = [self.models[workload.nf].cores for workload in workloads]
        known = [one for one in cores if one is not None]
        if self.testbed is None or len(known) < len(cores) or sum(known) <= self.testbed.nic.cores:
            return None
        return f"{len(cores)} NFs take {sum(known)} cores, a {self.testbed.nic.model} has {self.testbed.nic.cores}"

    def demand(self, workloads: Sequence[Workload]) -> list[ResourceDemand]:
        """The resources that each workload takes of a NIC alone."""
        table = self._workload_table
        return [
            ResourceDemand(
                self.cores(workload.nf),
                float(table.counters[row, -1]),
                {
                    name: float(min(table.solo[row] * table.service[row, at], 1.0))
                    for at, name in enumerate(table.accelerators)
                    if table.queues[row, at] > 0
                },
            )
            for workload, row in zip(workloads, table.rows(workloads).tolist(), strict=True)
        ]

    def solo_behaviour(self, workloads: Sequence[Workload]) -> SoloBehaviour:
        """What each workload alone adds to the contention that its neighbours feel."""
        table = self._workload_table
        rows = table.rows(workloads)
        return SoloBehaviour(
            table.solo_of(workloads),
            table.counters[rows],
            table.accelerators,
            table.queues[rows] * table.service[rows],
            table.service[rows],
        )

    @property
    def completed_nf_json(self) -> dict[str, dict[str, object]]:
        """Per NF, its description completed with what training found."""
        return {name: store.completed(model) for name, model in self.models.items()}

    @cached_property
    def _workload_table(self) -> WorkloadTable:
        return WorkloadTable(self.models)


def train(
    profile: Profile,
    names: Sequence[str] | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    warn: Warn = lambda _: None,
    solo_fits: Mapping[str, SoloCurve] | None = None,
) -> Models:
    """Models of every NF of `profile` for every predictor in `names`, by default all registered ones.

    `solo_fits` are curves of throughput alone by NF, measured elsewhere, or `OWN_RUNS`: fitted to the NF's runs. Each
    serves where that surely reduces the error of the NF's solo model; `warn` reports both errors.

    Raises
    ------
    InputError
        When a predictor is unknown, or an NF was measured too little.
    """
    from threadpoolctl import threadpool_limits

    from predictor.training import measurements_of, train_nf_models
    from predictor.training.latency import train_latencies
    from predictor.training.solo_fits import OWN_RUNS

    chosen = {name: PREDICTORS.find(name) for name in (names or PREDICTORS)}
    steps = iter(range(len(profile.nfs) + len(chosen)))

    def begin(name: str) -> None:
        if progress:
            progress(name, next(steps), len(profile.nfs) + len(chosen))

    # matrices are small: more threads would wait for each other, and round differently
    with threadpool_limits(1):
        measured = measurements_of(profile, warn)
        given = solo_fits or {}
        models = train_nf_models(measured, seed=seed, progress=begin, solo_fits=given)
        for name, model in models.items():
            if name in given:
                warn(_fitted_or_not(name, model, given[name] == OWN_RUNS))
        predictors: dict[str, Predictor] = {}
        for name, predictor in chosen.items():
            begin(name)
            predictors[name] = predictor.train(profile, models, seed=seed, warn=warn)
        latencies = train_latencies(profile.nfs, warn)
    if progress:
        progress("trained", len(profile.nfs) + len(chosen), len(profile.nfs) + len(chosen))
    return Models(predictors, profile.testbed, measured.default_traffic, models, seed, latencies)


def _fitted_or_not(name: str, model: NfModel, own: bool) -> str:
    """Whether a fitted curve serves in the solo model, in words."""
    found = model.solo.fit_of_runs if model.solo else None
    if found is None:
        return f"{name}: its runs along one attribute are too few for a curve" if own else f"{name}: no curve is used"
    errors = f"solo error at left-out traffic {found.error_pct:.2f} % with it, {found.error_without_pct:.2f} % without"
    source = "a curve fitted to its runs" if own else "the given curve"
    verdict = "serves in its solo model" if found.serves else "does not surely help its solo model, and is not used"
    return f"{name}: {source} over {found.curve.x} {verdict}: {errors} ({found.settings} settings)"


def load_models(path: Path) -> Models:
    """The models that `Models.save` wrote.

    Raises
    ------
    InputError
        When they were written in another format, are damaged, or are no models at all.
    """
    models = Models(*store.load(path))
    object.__setattr__(models, "digest", hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest())
    return models
