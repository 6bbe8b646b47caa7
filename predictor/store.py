"""The models directory: JSON and plain arrays, checked by digest; loading executes nothing."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from predictor.contention.accelerators import AcceleratorUse, ServiceTime
from predictor.contention.calibration import Calibration
from predictor.contention.execution import Execution
from predictor.contention.intervals import ErrorModel
from predictor.contention.memory import MemoryModel
from predictor.contention.neighbours import NeighbourCorrection
from predictor.contention.nf_model import NfModel
from predictor.contention.solo import MeasuredAlone, SoloFit, SoloModel
from predictor.latency import LATENCY_FOLDER, NfLatency, load_latencies, save_latencies
from predictor.model_folder import TRAIN_AGAIN, check_files, read_arrays, read_manifest, replace_models, write_arrays
from predictor.registry import PREDICTORS, Predictor
from profiles import InputError, TestbedDescription, TrafficProfile
from profiles.profile import write_json

MODEL_FORMAT = 6
READABLE_FORMATS = (4, 5, MODEL_FORMAT)
"""Format 4 has no corrections by neighbours, formats 4 and 5 no fitted curves of solo throughput."""
SOLO_FIT = "solo-fit.json"
MADE_WITH = ("nf-placer", "numpy", "scipy", "scikit-learn")

Loaded = tuple[
    dict[str, Predictor], TestbedDescription | None, TrafficProfile, dict[str, NfModel], int, dict[str, NfLatency]
]


def save(
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
    with replace_models(directory, manifest) as aside:
        for name, model in models.items():
            _save_nf(model, aside / name)
        for name, predictor in predictors.items():
            (aside / f"predictor-{name}").mkdir()
            predictor.save(aside / f"predictor-{name}")
        save_latencies(aside / LATENCY_FOLDER, latencies)
        if testbed:
            write_json(testbed.model_dump(mode="json"), aside / "testbed.json")


def load(directory: Path) -> Loaded:
    """Everything that `save` wrote, or InputError."""
    manifest = read_manifest(directory)
    if manifest.get("kind") is not None:
        hint = "`placer predict --scenarios` and `placer admit` use them"
        raise InputError.of(str(directory), f"holds models of another kind: {manifest['kind']}", hint=hint)
    check_files(directory, manifest, READABLE_FORMATS)
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
            str(directory), f"does not hold models that can be read: {error}", hint=TRAIN_AGAIN
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
    write_arrays(folder / "memory.npz", model.memory.as_arrays())
    write_arrays(folder / "errors.npz", model.error_model.as_arrays())
    if model.calibration:
        write_arrays(folder / "calibration.npz", model.calibration.as_arrays())
    if model.alone:
        write_arrays(folder / "alone.npz", model.alone.as_arrays())
    if model.neighbours:
        write_arrays(folder / "neighbours.npz", model.neighbours.as_arrays())
    if model.solo:
        write_arrays(folder / "solo.npz", model.solo.as_arrays())
        if model.solo.fit_of_runs:
            from predictor.fitting.fitted_model import FittedModel
            from predictor.fitting.model_file import models_text

            curve = model.solo.fit_of_runs.curve
            assert isinstance(curve, FittedModel)  # training makes no others
            (folder / SOLO_FIT).write_text(models_text([curve]), encoding="utf-8")


def _load_nf(folder: Path) -> NfModel:
    found = json.loads((folder / "nf.json").read_text(encoding="utf-8"))
    uses = tuple(
        AcceleratorUse(name, int(queues), ServiceTime(tuple(found["service_ms"][name].items())))
        for name, queues in found["queues"].items()
    )
    solo, calibration, alone, neighbours = (
        folder / f"{part}.npz" for part in ("solo", "calibration", "alone", "neighbours")
    )
    return NfModel(
        name=found["name"],
        cores=found["cores"],
        execution=Execution(found["execution_pattern"], uses),
        solo=SoloModel.from_arrays(read_arrays(solo), _load_solo_fit(folder, found)) if solo.exists() else None,
        memory=MemoryModel.from_arrays(read_arrays(folder / "memory.npz")),
        measured={name: (bounds[0], bounds[1]) for name, bounds in found["measured"].items()},
        evidence=found["evidence"]["mape_pct"],
        evidence_in_co_location=found["evidence"]["mape_in_co_locations_pct"],
        calibration=Calibration.from_arrays(read_arrays(calibration)) if calibration.exists() else None,
        alone=MeasuredAlone.from_arrays(read_arrays(alone)) if alone.exists() else None,
        neighbours=NeighbourCorrection.from_arrays(read_arrays(neighbours)) if neighbours.exists() else None,
        error_model=ErrorModel.from_arrays(read_arrays(folder / "errors.npz")),
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
