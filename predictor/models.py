"""Models of one testbed: trained from a profile, saved, loaded, and asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

from predictor import store
from predictor.contention.nf_model import NfModel
from predictor.contention.workload_table import Facts
from predictor.prediction import Demand
from predictor.registry import PREDICTORS, Predictor, Progress, Warn
from predictor.training.benches import bench_services, most_accesses
from predictor.training.calibrate import choose, judge
from predictor.training.co_runs import recorded
from predictor.training.nf import plausible_models
from profiles import ATTRIBUTES, InputError, TestbedDescription, TrafficProfile, Workload
from profiles.profile import Profile

Known = TypeVar("Known")


@dataclass(frozen=True)
class Models:
    """Everything that was learnt of one testbed.

    Parameters
    ----------
    predictors
        By name.
    testbed
        As it described itself; None when the profile was written without.
    default_traffic
        The traffic that is meant when none is told.
    models
        What training found per NF.
    seed
        The seed of training.
    """

    predictors: Mapping[str, Predictor]
    testbed: TestbedDescription | None
    default_traffic: TrafficProfile
    models: Mapping[str, NfModel]
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "_facts", Facts(self.models))

    @property
    def nfs(self) -> tuple[str, ...]:
        """The NFs, sorted."""
        return tuple(self.models)

    def save(self, directory: Path) -> None:
        """Write to `directory`, which then holds nothing else; the same models are the same bytes."""
        store.save(directory, self.predictors, self.testbed, self.default_traffic, self.models, self.seed)

    def check(self, workload: Workload) -> list[tuple[str, str]]:
        """What is wrong with a workload, as (column, message): an unknown NF, traffic outside the profiled range."""
        if workload.nf not in self.models:
            return [("nf", f"'{workload.nf}' is not profiled, one of {', '.join(self.nfs)}")]
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
            When the NF is not modelled, or its profile does not say.
        """
        if nf not in self.models:
            raise InputError.of("models", f"no model of {nf}", hint=f"modelled: {', '.join(self.nfs)}")
        cores = self.models[nf].cores
        if cores is None:
            raise InputError.of(
                f"{nf}/nf.json", "is missing, so its cores are not known", hint="write it and train again"
            )
        return cores

    def demand(self, workloads: Sequence[Workload]) -> list[Demand]:
        """What each workload takes of a NIC alone."""
        places = self._facts.places(workloads)
        return [
            Demand(
                self.cores(workload.nf),
                float(self._facts.counters[place, -1]),
                {
                    name: float(min(self._facts.solo[place] * self._facts.service[place, at], 1.0))
                    for at, name in enumerate(self._facts.accelerators)
                    if self._facts.queues[place, at] > 0
                },
            )
            for workload, place in zip(workloads, places.tolist(), strict=True)
        ]

    @property
    def completed_nf_json(self) -> dict[str, dict[str, object]]:
        """Per NF, its description completed with what training found."""
        return {name: store.completed(model) for name, model in self.models.items()}

    _facts: Facts = None  # type: ignore[assignment]


def train(
    profile: Profile,
    names: Sequence[str] | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    warn: Warn = lambda _: None,
) -> Models:
    """Models of every NF of `profile` for every predictor in `names`, all registered ones unless told.

    Raises
    ------
    InputError
        When a predictor is unknown, or an NF was measured too little.
    """
    chosen = {name: PREDICTORS.find(name) for name in (names or PREDICTORS)}
    # matrices are small: more threads wait for each other, and round differently
    with threadpool_limits(1):
        return _train(profile, chosen, seed, progress, warn)


def _train(
    profile: Profile,
    chosen: Mapping[str, type[Predictor]],
    seed: int,
    progress: Progress | None,
    warn: Warn,
) -> Models:
    benches = bench_services(profile)
    steps = len(profile.nfs) + len(chosen)
    plausible: dict[str, list[NfModel]] = {}
    for done, (name, nf) in enumerate(sorted(profile.nfs.items())):
        if progress:
            progress(name, done, steps)
        plausible[name] = plausible_models(
            nf,
            benches,
            cores=_cores(profile, name),
            most_accesses=most_accesses(profile, name, seed),
            seed=seed,
            warn=warn,
        )
    co_locations = recorded(profile, warn)
    models = judge(profile, choose(plausible, co_locations), co_locations)
    predictors: dict[str, Predictor] = {}
    for done, (name, predictor) in enumerate(chosen.items(), start=len(plausible)):
        if progress:
            progress(name, done, steps)
        predictors[name] = predictor.train(profile, models, seed=seed, warn=warn)
    if progress:
        progress("trained", steps, steps)
    return Models(predictors, profile.testbed, profile.default_traffic(), models, seed)


def load_models(path: Path) -> Models:
    """The models that `Models.save` wrote.

    Raises
    ------
    InputError
        When they were written in another format, are damaged, or are not models at all.
    """
    return Models(*store.load(path))


def _cores(profile: Profile, name: str) -> int | None:
    description = profile.nfs[name].description
    if description:
        return description.cores
    if profile.testbed and name in {nf.name for nf in profile.testbed.nfs}:
        return profile.testbed.nf(name).cores
    return None
