"""The folder of models of a GPU server: JSON and plain arrays, checked by digest; loading executes nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from predictor.arrays import read_arrays, write_arrays
from predictor.gpu.batching import BatchingModel
from predictor.gpu.latency_errors import LatencyErrors
from predictor.gpu.nf_model import STAGE_MODELS, GpuNfModel
from predictor.gpu.sharing import SharingModel
from predictor.gpu.stage_time import StageTime
from predictor.gpu.worker import WorkerModel
from profiles import InputError, TestbedDescription
from profiles.aside import directory_aside
from profiles.profile import write_json

KIND, FORMAT = "gpu-latency", 1
MANIFEST = "models.json"
HINT = "train them again with `placer train PROFILE --out MODELS`"

LoadedGpuModels = tuple[TestbedDescription, dict[str, GpuNfModel], WorkerModel, LatencyErrors, int]


def holds_gpu_models(directory: Path) -> bool:
    """Whether the models in a folder are those of a GPU server."""
    try:
        return bool(json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["kind"] == KIND)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def save_gpu(
    directory: Path,
    testbed: TestbedDescription,
    models: Mapping[str, GpuNfModel],
    worker: WorkerModel,
    errors: LatencyErrors,
    seed: int,
) -> None:
    """Write everything aside, then rename; other files in the folder stay."""
    with directory_aside(directory) as aside:
        for name, model in models.items():
            _save_nf(model, aside / name)
        write_arrays(aside / "errors.npz", errors.as_arrays())
        write_json(testbed.model_dump(mode="json"), aside / "testbed.json")
        files = sorted(path for path in aside.rglob("*") if path.is_file())
        manifest = {
            "kind": KIND,
            "format": FORMAT,
            "seed": seed,
            "nfs": list(models),
            "worker": worker.as_dict(),
            "files": {path.relative_to(aside).as_posix(): _digest(path) for path in files},
        }
        write_json(manifest, aside / MANIFEST)
        for path in _other_files(directory):
            place = aside / path.relative_to(directory)
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)


def load_gpu(directory: Path) -> LoadedGpuModels:
    """Everything that `save_gpu` wrote, or InputError."""
    manifest = _manifest(directory)
    try:
        testbed = TestbedDescription.model_validate_json((directory / "testbed.json").read_bytes())
        models = {name: _load_nf(directory / name, name) for name in manifest["nfs"]}
        errors = LatencyErrors.from_arrays(read_arrays(directory / "errors.npz"))
        return testbed, models, WorkerModel.from_mapping(manifest["worker"]), errors, manifest["seed"]
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise InputError.of(str(directory), f"does not hold models that can be read: {error}", hint=HINT) from error


def _save_nf(model: GpuNfModel, folder: Path) -> None:
    folder.mkdir()
    errors = {name: model.stage(name).error_pct for name in STAGE_MODELS}
    if model.sharing:
        errors["sharing"] = model.sharing.error_pct
        write_arrays(folder / "sharing.npz", model.sharing.as_arrays())
    write_json({"name": model.name, "moves": model.moves, "left_out_error_pct": errors}, folder / "nf.json")
    write_arrays(folder / "batching.npz", model.batching.as_arrays())
    for name in STAGE_MODELS:
        write_arrays(folder / f"{name}.npz", model.stage(name).as_arrays())


def _load_nf(folder: Path, name: str) -> GpuNfModel:
    described = json.loads((folder / "nf.json").read_text(encoding="utf-8"))
    sharing = folder / "sharing.npz"
    return GpuNfModel(
        name=name,
        moves=described["moves"],
        batching=BatchingModel.from_arrays(read_arrays(folder / "batching.npz")),
        sharing=SharingModel.from_arrays(read_arrays(sharing)) if sharing.exists() else None,
        **{stage: StageTime.from_arrays(read_arrays(folder / f"{stage}.npz")) for stage in STAGE_MODELS},
    )


def _manifest(directory: Path) -> dict[str, Any]:
    """The manifest, after every file that it names was compared with its digest."""
    path = directory / MANIFEST
    if not path.is_file():
        raise InputError.of(str(directory), f"is not a models directory: no {MANIFEST} in it", hint=HINT)
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        kind, made, files = manifest.get("kind"), manifest["format"], dict(manifest["files"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError.of(str(path), "is damaged", hint=HINT) from error
    if kind != KIND:
        hint = "train a profile of a GPU server: `placer train PROFILE --out MODELS`"
        raise InputError.of(str(directory), "holds throughput models, not models of a GPU server", hint=hint)
    if made != FORMAT:
        raise InputError.of(str(path), f"format {made}, only {FORMAT} is understood", column="format", hint=HINT)
    for name, digest in files.items():
        if not (directory / name).is_file():
            raise InputError.of(str(directory / name), "is missing", hint=HINT)
        if _digest(directory / name) != digest:
            raise InputError.of(str(directory / name), "is damaged: not the bytes that training wrote", hint=HINT)
    return dict(manifest)


def _other_files(directory: Path) -> list[Path]:
    """Files in the folder that training did not write, such as notes."""
    try:
        written = {MANIFEST, *json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, TypeError, KeyError):
        return []
    files = (path for path in directory.rglob("*") if path.is_file())
    return [path for path in files if path.relative_to(directory).as_posix() not in written]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
