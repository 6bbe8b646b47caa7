"""Models of one testbed: trained from a profile, saved, loaded, and queried."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from predictor import model_folder
from predictor.contention.accelerators import AcceleratorUse, ServiceTime
from predictor.contention.calibration import Calibration
from predictor.contention.core_counts import stack_scales, unstack_scales
from predictor.contention.execution import Execution
from predictor.contention.intervals import ErrorModel
from predictor.contention.memory import MemoryModel
from predictor.contention.neighbours import NeighbourCorrection
from predictor.contention.nf_model import NfModel
from predictor.contention.solo import MeasuredAlone, SoloFit, SoloModel
from predictor.contention.workload_table import WorkloadTable
from predictor.latency import LATENCY_FOLDER, NfLatency, load_latencies, save_latencies
from predictor.registry import PREDICTORS, Predictor, Progress, ResourceDemand, Warn
from profiles import ATTRIBUTES, InputError, TestbedDescription, TrafficProfile, Workload
from profiles.faults import suggestion
from profiles.profile import write_json
from profiles.shown import Shown

if TYPE_CHECKING:
    from predictor.training.solo_fits import SoloCurve
    from profiles.profile import Profile


@dataclass(frozen=True)
class SoloBehaviour:
    """The contention of workloads, one row each."""

    kpps: NDArray[np.float64]
    """Throughput alone, shape (workloads,)."""
    counters: NDArray[np.float64]
    """The seven counters alone, shape (workloads, 7)."""
    accelerators: tuple[str, ...]
    """Names of the columns of what follows, which is 0 where an accelerator is not used."""
    turn_ms: NDArray[np.float64]
    """Time that all its queues take in one turn of an accelerator, ms."""
    service_ms: NDArray[np.float64]
    """Time that a packet takes, ms."""


@dataclass(frozen=True, repr=False)
class Models(Shown):
    """Everything that was learnt of one testbed."""

    predictors: Mapping[str, Predictor]
    """By name."""
    testbed: TestbedDescription | None
    """Its description; None when the profile was written without one."""
    default_traffic: TrafficProfile
    """The traffic of a workload that does not state its own."""
    models: Mapping[str, NfModel]
    seed: int = 0
    """The seed of training."""
    latencies: Mapping[str, NfLatency] = field(default_factory=dict)
    """Of the NFs whose latency was measured, the model of it."""
    digest: str = field(default="", init=False)
    """Of the folder that they were loaded from; empty for models that were trained or changed since."""

    @property
    def nfs(self) -> tuple[str, ...]:
        """The NFs, sorted."""
        return tuple(self.models)

    def save(self, directory: Path) -> None:
        """Write to `directory`, in place of the models there; the same models are the same bytes. Other files stay."""
        save_models(
            directory, self.predictors, self.testbed, self.default_traffic, self.models, self.seed, self.latencies
        )

    def check(self, workload: Workload) -> list[tuple[str, str]]:
        """What is wrong with a workload, as (column, message): an unknown NF, traffic outside the profiled range."""
        if workload.nf not in self.models:
            return [("nf", f"'{workload.nf}' is not profiled ({suggestion(workload.nf, self.nfs)})")]
        faults = []
        if workload.cores and workload.cores not in (possible := self.models[workload.nf].core_counts):
            known = f", possible: {', '.join(map(str, possible))}" if possible else ""
            faults.append(("cores", f"'{workload.nf}' is not profiled on {workload.cores} cores{known}"))
        for name, (low, high) in self._ranges.items():
            value = getattr(workload.traffic, name)
            if not low <= value <= high:
                faults.append((name, f"{value:g} is outside the profiled range {low:g} to {high:g}"))
        return faults

    @cached_property
    def _ranges(self) -> dict[str, tuple[float, float]]:
        """Of traffic attributes that are profiled, the smallest and largest value."""
        testbed = self.testbed
        return {name: testbed.range_of(name) for name in ATTRIBUTES if testbed and name in testbed.attributes}

    def cores(self, nf: str) -> int:
        """Cores that the NF takes. Raises `InputError` when the NF is not modelled, or its profile does not state its
        cores."""
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
        cores = [workload.cores or self.models[workload.nf].cores for workload in workloads]
        known = [core_count for core_count in cores if core_count is not None]
        if self.testbed is None or len(known) < len(cores) or sum(known) <= self.testbed.nic.cores:
            return None
        return f"{len(cores)} NFs take {sum(known)} cores, a {self.testbed.nic.model} has {self.testbed.nic.cores}"

    def demand(self, workloads: Sequence[Workload]) -> list[ResourceDemand]:
        """The resources that each workload takes of a NIC alone."""
        table = self._workload_table
        return [
            ResourceDemand(
                workload.cores or self.cores(workload.nf),
                float(table.counters[row, -1]),
                {
                    name: float(min(min(table.solo[row], workload.rate_kpps) * table.service[row, at], 1.0))
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
        return {name: complete_model(model) for name, model in self.models.items()}

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
    """Models of every NF of `profile` for every predictor in `names`, by default all registered ones. `solo_fits` are
    curves of throughput alone by NF, measured elsewhere, or `OWN_RUNS`: fitted to the NF's runs. Each serves where that
    surely reduces the error of the NF's solo model; `warn` reports both errors. Raises `InputError` when a predictor is
    unknown, or an NF was measured too little."""
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
                warn(_describe_curve_use(name, model, given[name] == OWN_RUNS))
        predictors: dict[str, Predictor] = {}
        for name, predictor in chosen.items():
            begin(name)
            predictors[name] = predictor.train(profile, models, seed=seed, warn=warn)
        latencies = train_latencies(profile.nfs, warn)
    if progress:
        progress("trained", len(profile.nfs) + len(chosen), len(profile.nfs) + len(chosen))
    return Models(predictors, profile.testbed, measured.default_traffic, models, seed, latencies)


def _describe_curve_use(name: str, model: NfModel, own: bool) -> str:
    """Whether a fitted curve serves in the solo model, in words."""
    found = model.solo.fit_of_runs if model.solo else None
    if found is None:
        return f"{name}: its runs along one attribute are too few for a curve" if own else f"{name}: no curve is used"
    errors = f"solo error at left-out traffic {found.error_pct:.2f} % with it, {found.error_without_pct:.2f} % without"
    source = "a curve fitted to its runs" if own else "the given curve"
    verdict = "serves in its solo model" if found.serves else "does not surely help its solo model, and is not used"
    return f"{name}: {source} over {found.curve.x} {verdict}: {errors} ({found.settings} settings)"


def load_models(path: Path) -> Models:
    """The models that `Models.save` wrote. Raises `InputError` when they were written in another format, are damaged,
    or are no models at all."""
    models = Models(*read_models(path))
    object.__setattr__(models, "digest", hashlib.sha256((path / model_folder.MANIFEST_FILE).read_bytes()).hexdigest())
    return models


MODEL_FORMAT = 6
READABLE_FORMATS = (4, 5, MODEL_FORMAT)
"""Format 4 has no corrections by neighbours, formats 4 and 5 no fitted curves of solo throughput."""
SOLO_FIT = "solo-fit.json"
MADE_WITH = ("nf-placer", "numpy", "scipy", "scikit-learn")

Loaded = tuple[
    dict[str, Predictor], TestbedDescription | None, TrafficProfile, dict[str, NfModel], int, dict[str, NfLatency]
]


def save_models(
    directory: Path,
    predictors: Mapping[str, Predictor],
    testbed: TestbedDescription | None,
    default_traffic: TrafficProfile,
    models: Mapping[str, NfModel],
    seed: int,
    latencies: Mapping[str, NfLatency],
) -> None:
    """Write everything aside, then rename; other files in the folder stay."""
    manifest = {
        "format": MODEL_FORMAT,
        "made_with": {"python": platform.python_version(), **{name: _version(name) for name in MADE_WITH}},
        "seed": seed,
        "predictors": list(predictors),
        "nfs": list(models),
        "default_traffic": default_traffic.as_dict(),
    }
    with model_folder.replace_models(directory, manifest) as aside:
        for name, model in models.items():
            _save_nf(model, aside / name)
        for name, predictor in predictors.items():
            (aside / f"predictor-{name}").mkdir()
            predictor.save(aside / f"predictor-{name}")
        save_latencies(aside / LATENCY_FOLDER, latencies)
        if testbed:
            write_json(testbed.model_dump(mode="json"), aside / "testbed.json")


def read_models(directory: Path) -> Loaded:
    """Everything that `save` wrote, or InputError."""
    manifest = model_folder.read_manifest(directory)
    if manifest.get("kind") is not None:
        hint = "`placer predict --scenarios` and `placer admit` use them"
        raise InputError.of(str(directory), f"holds models of another kind: {manifest['kind']}", hint=hint)
    model_folder.check_files(directory, manifest, READABLE_FORMATS)
    try:
        models = {name: _load_nf(directory / name) for name in manifest["nfs"]}
        predictors = {
            name: PREDICTORS.find(name).load(directory / f"predictor-{name}", models) for name in manifest["predictors"]
        }
        described = directory / "testbed.json"
        testbed = TestbedDescription.model_validate_json(described.read_bytes()) if described.exists() else None
        traffic = TrafficProfile.from_mapping(manifest["default_traffic"])
        latencies = load_latencies(directory / LATENCY_FOLDER, models)
        return predictors, testbed, traffic, models, manifest["seed"], latencies
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise InputError.of(
            str(directory), f"does not hold models that can be read: {error}", hint=model_folder.TRAIN_AGAIN
        ) from error


def complete_model(model: NfModel) -> dict[str, object]:
    """The nf.json of an NF, completed with what training found."""
    execution, solo_fit = model.execution, model.solo.fit_of_runs if model.solo else None
    return {
        "name": model.name,
        "cores": model.cores,
        "accelerators": list(model.accelerators),
        "execution_pattern": execution.pattern,
        "evidence": {"mape_pct": dict(model.evidence), "mape_in_co_locations_pct": dict(model.evidence_in_co_location)},
        "queues": {use.name: use.queues for use in execution.uses},
        "service_ms": {use.name: use.service.as_dict() for use in execution.uses},
        **(
            {"slice_ms": slices}
            if (slices := {use.name: use.slice_ms for use in execution.uses if use.slice_ms})
            else {}
        ),
        "calibrated": model.calibration is not None,
        "measured": {name: list(bounds) for name, bounds in model.measured.items()},
        **({"solo_fit": _comparison(solo_fit)} if solo_fit else {}),
    }


def _comparison(solo_fit: SoloFit) -> dict[str, object]:
    return {
        "serves": solo_fit.serves,
        "settings": solo_fit.settings,
        "error_pct": solo_fit.error_pct,
        "error_without_pct": solo_fit.error_without_pct,
    }


def _save_nf(model: NfModel, folder: Path) -> None:
    folder.mkdir()
    write_json(complete_model(model), folder / "nf.json")
    model_folder.write_arrays(folder / "memory.npz", model.memory.as_arrays())
    model_folder.write_arrays(folder / "errors.npz", model.error_model.as_arrays())
    if model.calibration:
        model_folder.write_arrays(folder / "calibration.npz", model.calibration.as_arrays())
    if model.alone:
        model_folder.write_arrays(folder / "alone.npz", model.alone.as_arrays())
    if model.neighbours:
        model_folder.write_arrays(folder / "neighbours.npz", model.neighbours.as_arrays())
    if model.core_scales or model.doubt_at_loads != 1.0:
        doubt = {"doubt": np.array([model.doubt_at_loads])}
        model_folder.write_arrays(folder / "cores.npz", {**stack_scales(model.core_scales), **doubt})
    if model.solo:
        model_folder.write_arrays(folder / "solo.npz", model.solo.as_arrays())
        if model.solo.fit_of_runs:
            from predictor.fitting.fitted_model import FittedModel
            from predictor.fitting.model_file import models_text

            curve = model.solo.fit_of_runs.curve
            assert isinstance(curve, FittedModel)  # training makes no others
            (folder / SOLO_FIT).write_text(models_text([curve]), encoding="utf-8")


def _load_nf(folder: Path) -> NfModel:
    found = json.loads((folder / "nf.json").read_text(encoding="utf-8"))
    uses = tuple(
        AcceleratorUse(
            name, int(queues), ServiceTime(tuple(found["service_ms"][name].items())),
            found.get("slice_ms", {}).get(name, 0.0),
        )
        for name, queues in found["queues"].items()
    )  # fmt: skip
    solo, calibration, alone, neighbours, cores = (
        folder / f"{part}.npz" for part in ("solo", "calibration", "alone", "neighbours", "cores")
    )
    scales = model_folder.read_arrays(cores) if cores.exists() else {}
    doubt = float(scales.pop("doubt")[0]) if scales else 1.0
    return NfModel(
        name=found["name"],
        cores=found["cores"],
        execution=Execution(found["execution_pattern"], uses),
        solo=SoloModel.from_arrays(model_folder.read_arrays(solo), _load_solo_fit(folder, found))
        if solo.exists()
        else None,
        memory=MemoryModel.from_arrays(model_folder.read_arrays(folder / "memory.npz")),
        measured={name: (bounds[0], bounds[1]) for name, bounds in found["measured"].items()},
        evidence=found["evidence"]["mape_pct"],
        evidence_in_co_location=found["evidence"]["mape_in_co_locations_pct"],
        calibration=Calibration.from_arrays(model_folder.read_arrays(calibration)) if calibration.exists() else None,
        alone=MeasuredAlone.from_arrays(model_folder.read_arrays(alone)) if alone.exists() else None,
        neighbours=NeighbourCorrection.from_arrays(model_folder.read_arrays(neighbours))
        if neighbours.exists()
        else None,
        error_model=ErrorModel.from_arrays(model_folder.read_arrays(folder / "errors.npz")),
        core_scales=unstack_scales(scales),
        doubt_at_loads=doubt,
    )


def _load_solo_fit(folder: Path, found: Mapping[str, Any]) -> SoloFit | None:
    compared = found.get("solo_fit")
    if compared is None:
        return None
    from predictor.fitting.model_file import models_of

    path = folder / SOLO_FIT
    (curve,) = models_of(path.read_text(encoding="utf-8"), str(path))
    return SoloFit(
        curve, compared["settings"], compared["error_pct"], compared["error_without_pct"], bool(compared["serves"])
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
