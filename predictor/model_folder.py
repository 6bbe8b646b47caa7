"""Folders of models: JSON and plain arrays, checked by digest. Reading them executes nothing; the same models are the
same bytes."""

import hashlib
import io
import json
import math
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiles import InputError
from profiles.aside import directory_aside
from profiles.profile import write_json

MANIFEST_FILE = "models.json"
TRAIN_AGAIN = "train them again with `placer train PROFILE --out MODELS`"
ARRAY_SUFFIX = ".npy"
LARGEST_HEADER = 2**16


@contextmanager
def replace_models(directory: Path, manifest: Mapping[str, Any]) -> Iterator[Path]:
    """An empty folder to fill, which replaces the models in `directory`, with the manifest, when the block ends well.
    Files in `directory` that training did not write, such as notes, stay."""
    with directory_aside(directory) as aside:
        yield aside
        files = sorted(path for path in aside.rglob("*") if path.is_file())
        digests = {path.relative_to(aside).as_posix(): _digest(path) for path in files}
        write_json({**manifest, "files": digests}, aside / MANIFEST_FILE)
        for path in _other_files(directory):
            place = aside / path.relative_to(directory)
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)


def _other_files(directory: Path) -> list[Path]:
    try:
        written = {MANIFEST_FILE, *json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, TypeError, KeyError):
        return []
    files = (path for path in directory.rglob("*") if path.is_file())
    return [path for path in files if path.relative_to(directory).as_posix() not in written]


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of the models in `directory`: `kind`, where they have one, `format`, `files` and what else they say.
    Raises `InputError` when there is none, or it is damaged."""
    path = directory / MANIFEST_FILE
    if not path.is_file():
        raise InputError.of(str(directory), f"is not a models directory: no {MANIFEST_FILE} in it", hint=TRAIN_AGAIN)
    try:
        manifest = dict(json.loads(path.read_text(encoding="utf-8")))
        return manifest | {"format": manifest["format"], "files": dict(manifest["files"])}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError.of(str(path), "is damaged", hint=TRAIN_AGAIN) from error


def check_files(directory: Path, manifest: Mapping[str, Any], readable: Sequence[int]) -> None:
    """Compare the manifest's format with those that are readable, and every file that it names with its digest. Raises
    `InputError` when the format is another, or a file is missing or damaged."""
    if manifest["format"] not in readable:
        *others, last = map(str, readable)
        understood = f"{', '.join(others)} and {last} are" if others else f"{last} is"
        message = f"format {manifest['format']}, only {understood} understood"
        raise InputError.of(str(directory / MANIFEST_FILE), message, column="format", hint=TRAIN_AGAIN)
    for name, digest in manifest["files"].items():
        path = directory / name
        if not path.is_file():
            raise InputError.of(str(path), "is missing", hint=TRAIN_AGAIN)
        if _digest(path) != digest:
            raise InputError.of(str(path), "is damaged: not the bytes that training wrote", hint=TRAIN_AGAIN)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `arrays` under their names."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **dict(arrays))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays that `write_arrays` wrote. Raises `ValueError` when the file holds anything but plain arrays."""
    try:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as file:
            return {name.removesuffix(ARRAY_SUFFIX): _array_of(file.read(name)) for name in file.namelist()}
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path.name} holds no arrays: {error}") from error


def _array_of(written: bytes) -> NDArray[Any]:
    """The array of a .npy file, which `numpy.load` would read, too: it parses every header as Python text, of which
    models have seven hundred, but few different ones."""
    file = io.BytesIO(written)
    version = np.lib.format.read_magic(file)
    before = np.lib.format.MAGIC_LEN
    start = before + (2 if version == (1, 0) else 4)
    header = start + int.from_bytes(written[before:start], "little")
    shape, in_columns, kind = _parse_header(written[:header])
    values = np.frombuffer(written, kind, math.prod(shape), header)
    return values.reshape(shape, order="F" if in_columns else "C").copy(order="K")


@lru_cache(maxsize=4096)
def _parse_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come before rows, and type of the array with this header."""
    file = io.BytesIO(header)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(file)
    if version not in read:
        raise ValueError(f"arrays of format {version} are not understood")
    shape, in_columns, kind = read[version](file, max_header_size=LARGEST_HEADER)
    if kind.hasobject:
        raise ValueError("objects are no plain arrays")
    return shape, in_columns, kind
