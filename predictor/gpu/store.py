"""The folder of models of a GPU server: JSON and plain arrays, checked by digest; loading executes nothing."""

import json
from collections.abc import Mapping
from pathlib import Path

from predictor.gpu.batching import BatchingModel
from predictor.gpu.nf_model import STAGE_MODELS, GpuNfModel, WorkerModel
from predictor.gpu.prediction import LatencyErrors
from predictor.gpu.sharing import SharingModel
from predictor.gpu.stage_time import StageTime
from predictor.model_folder import (
    MANIFEST_FILE,
    TRAIN_AGAIN,
    check_files,
    read_arrays,
    read_manifest,
    replace_models,
    write_arrays,
)
from profiles import InputError, TestbedDescription
from profiles.profile import write_json

MODEL_KIND, GPU_MODEL_FORMAT = "gpu-latency", 1

LoadedGpuModels = tuple[TestbedDescription, dict[str, GpuNfModel], WorkerModel, LatencyErrors, int]


def holds_gpu_models(directory: Path) -> bool:
    """Whether the models in a folder are those of a GPU server."""
    try:
        return bool(json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))["kind"] == MODEL_KIND)
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
    manifest = {
        "kind": MODEL_KIND,
        "format": GPU_MODEL_FORMAT,
        "seed": seed,
        "nfs": list(models),
        "worker": worker.as_dict(),
    }
    with replace_models(directory, manifest) as aside:
        for name, model in models.items():
            _save_nf(model, aside / name)
        write_arrays(aside / "errors.npz", errors.as_arrays())
        write_json(testbed.model_dump(mode="json"), aside / "testbed.json")


def load_gpu(directory: Path) -> LoadedGpuModels:
    """Everything that `save_gpu` wrote, or InputError."""
    manifest = read_manifest(directory)
    if manifest.get("kind") != MODEL_KIND:
        hint = "train a profile of a GPU server: `placer train PROFILE --out MODELS`"
        raise InputError.of(str(directory), "holds throughput models, not models of a GPU server", hint=hint)
    check_files(directory, manifest, (GPU_MODEL_FORMAT,))
    try:
        testbed = TestbedDescription.model_validate_json((directory / "testbed.json").read_bytes())
        models = {name: _load_nf(directory / name, name) for name in manifest["nfs"]}
        errors = LatencyErrors.from_arrays(read_arrays(directory / "errors.npz"))
        return testbed, models, WorkerModel.from_mapping(manifest["worker"]), errors, manifest["seed"]
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise InputError.of(
            str(directory), f"does not hold models that can be read: {error}", hint=TRAIN_AGAIN
        ) from error


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
