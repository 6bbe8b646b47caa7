"""`latency/` in a MODELS folder: what NFs share in arrays, and a JSON file per NF; loading executes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from predictor.arrays import read_arrays, write_arrays
from predictor.gpu.latency_errors import LatencyErrors
from predictor.latency.law import LatencyLaw
from predictor.latency.nf_latency import NfLatency
from profiles.profile import write_json

FOLDER = "latency"
SHARED = "shared.npz"
VERSION = 1


def save_latencies(folder: Path, models: Mapping[str, NfLatency]) -> None:
    """Write the models, which share a law, into `folder`; nothing if there are none."""
    if not models:
        return
    folder.mkdir(exist_ok=True)
    shared = next(iter(models.values()))
    errors = {f"errors_{name}": values for name, values in shared.errors.as_arrays().items()}
    write_arrays(folder / SHARED, shared.law.as_arrays() | errors)
    for name, model in models.items():
        write_json(_described(model), folder / f"{name}.json")


def load_latencies(folder: Path, nfs: Iterable[str]) -> dict[str, NfLatency]:
    """The models of those of the NFs that have one.

    Raises
    ------
    KeyError, TypeError, ValueError, OSError
        When the files are damaged.
    """
    if not (folder / SHARED).exists():
        return {}
    arrays = read_arrays(folder / SHARED)
    errors = LatencyErrors.from_arrays(
        {name.removeprefix("errors_"): values for name, values in arrays.items() if name.startswith("errors_")}
    )
    law = LatencyLaw.from_arrays(arrays)
    models = {}
    for name in nfs:
        found = _read(folder / f"{name}.json")
        if found is not None:
            factors = found["factor"]
            models[name] = NfLatency(law, (float(factors["mean"]), float(factors["p99"])), errors, found["settings"])
    return models


def is_trained(path: Path) -> bool:
    """Whether a file in `latency/` is one that training wrote; others are fitted curves of users."""
    try:
        return "latency" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


def _read(path: Path) -> dict | None:  # type: ignore[type-arg]
    if not path.exists() or not is_trained(path):
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    if found["latency"] != VERSION:
        raise ValueError(f"{path.name}: version {found['latency']}, not {VERSION}")
    return dict(found)


def _described(model: NfLatency) -> dict[str, object]:
    return {
        "latency": VERSION,
        "factor": dict(zip(("mean", "p99"), model.factors, strict=True)),
        "settings": model.settings,
        "utilisation": [model.law.least, float(model.law.carried.max())],
        "left_out_error_pct": {what: model.errors.error_pct(what) for what in ("mean", "p99")},
    }
