"""The models directory: JSON and plain arrays, checked by digest; loading executes nothing."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from predictor.arrays import read_arrays, write_arrays
from predictor.contention.accelerators import AcceleratorUse, ServiceTime
from predictor.contention.calibration import Calibration
from predictor.contention.execution import Execution
from predictor.contention.intervals import ErrorModel
from predictor.contention.measured_alone import MeasuredAlone
from predictor.contention.memory import MemoryModel
from predictor.contention.neighbours import NeighbourCorrection
from predictor.contention.nf_model import NfModel
from predictor.contention.solo import SoloFit, SoloModel
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.model_file import models_of, models_text
from predictor.latency.files import FOLDER, load_latencies, save_latencies
from predictor.latency.nf_latency import NfLatency
from predictor.registry import PREDICTORS, Predictor
from profiles import InputError, TestbedDescription, TrafficProfile
from profiles.aside import directory_aside
from profiles.profile import write_json

FORMAT = 6
READABLE = (4, 5, FORMAT)
"""Format 4 has no corrections by neighbours, formats 4 and 5 no fitted curves of solo throughput."""
SOLO_FIT = "solo-fit.json"
MANIFEST = "models.json"
MADE_WITH = ("nf-placer", "numpy", "scipy", "scikit-learn")
HINT = "train them again with `placer train PROFILE --out MODELS`"

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
    with directory_aside(directory) as aside:
        for name, model in models.items():
            _save_nf(model, aside / name)
        for name, predictor in predictors.items():
            (aside / f"predictor-{name}").mkdir()
            predictor.save(aside / f"predictor-{name}")
        save_latencies(aside / FOLDER, latencies)
        if testbed:
            write_json(testbed.model_dump(mode="json"), aside / "testbed.json")
        files = sorted(path for path in aside.rglob("*") if path.is_file())
        manifest = {
            "format": FORMAT,
            "made_with": {"python": platform.python_version(), **{name: _version(name) for name in MADE_WITH}},
            "seed": seed,
            "predictors": list(predictors),
            "nfs": list(models),
            "default_traffic": default_traffic.as_dict(),
            "files": {path.relative_to(aside).as_posix(): _digest(path) for path in files},
        }
        write_json(manifest, aside / MANIFEST)
        for path in _other_files(directory):
            place = aside / path.relative_to(directory)
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)


def _other_files(directory: Path) -> list[Path]:
    """Files in a MODELS folder that training did not write, such as notes."""
    try:
        written = {MANIFEST, *json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, TypeError, KeyError):
        return []
    files = (path for path in directory.rglob("*") if path.is_file())
    return [path for path in files if path.relative_to(directory).as_posix() not in written]


def load(directory: Path) -> Loaded:
    """Everything that `save` wrote, or InputError."""
    manifest = _manifest(directory)
    try:
        models = {name: _load_nf(directory / name) for name in manifest["nfs"]}
        predictors = {
            name: PREDICTORS.find(name).load(directory / f"predictor-{name}", models) for name in manifest["predictors"]
        }
        described = directory / "testbed.json"
        testbed = TestbedDescription.model_validate_json(described.read_bytes()) if described.exists() else None
        traffic = TrafficProfile.from_mapping(manifest["default_traffic"])
        latencies = load_latencies(directory / FOLDER, models)
        return predictors, testbed, traffic, models, manifest["seed"], latencies
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise InputError.of(str(directory), f"does not hold models that can be read: {error}", hint=HINT) from error


def completed(model: NfModel) -> dict[str, object]:
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
    write_json(completed(model), folder / "nf.json")
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
    path = folder / SOLO_FIT
    (curve,) = models_of(path.read_text(encoding="utf-8"), str(path))
    return SoloFit(
        curve, compared["settings"], compared["error_pct"], compared["error_without_pct"], bool(compared["serves"])
    )


def _manifest(directory: Path) -> dict[str, Any]:
    """The manifest, after every file that it names was compared with its digest."""
    path = directory / MANIFEST
    if not path.is_file():
        raise InputError.of(str(directory), f"is not a models directory: no {MANIFEST} in it", hint=HINT)
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        made, files = manifest["format"], dict(manifest["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError.of(str(path), "is damaged", hint=HINT) from error
    if manifest.get("kind") is not None:
        hint = "`placer predict --scenarios` and `placer admit` use them"
        raise InputError.of(str(directory), f"holds models of another kind: {manifest['kind']}", hint=hint)
    if made not in READABLE:
        understood = f"{', '.join(map(str, READABLE[:-1]))} and {READABLE[-1]}"
        raise InputError.of(str(path), f"format {made}, only {understood} are understood", column="format", hint=HINT)
    for name, digest in files.items():
        if not (directory / name).is_file():
            raise InputError.of(str(directory / name), "is missing", hint=HINT)
        if _digest(directory / name) != digest:
            raise InputError.of(str(directory / name), "is damaged: not the bytes that training wrote", hint=HINT)
    return dict(manifest)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
