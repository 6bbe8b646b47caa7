"""Files of arrays: what NumPy writes is read as NumPy reads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from predictor.model_folder import read_arrays, write_arrays

ARRAYS = {
    "numbers": np.arange(6, dtype=np.float64).reshape(2, 3),
    "whole": np.array([1, -2, 3]),
    "flags": np.array([True, False]),
    "names": np.array(["NAT", "IPTunnel"]),
    "alone": np.array(2.5),
    "none": np.zeros((0, 4)),
    "last": np.zeros(0),
    "in columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "large end first": np.array([1.5, 2.5], dtype=">f8"),
}


def test_what_is_read_is_what_numpy_reads(tmp_path: Path) -> None:
    """Values, types, shapes and order in memory; and it can be written to, as compiled code expects."""
    path = tmp_path / "arrays.npz"
    write_arrays(path, ARRAYS)
    read = read_arrays(path)
    with np.load(path) as file:
        assert list(read) == list(file)
        for name, array in read.items():
            np.testing.assert_array_equal(array, file[name])
            assert (array.dtype, array.shape) == (file[name].dtype, file[name].shape)
            assert array.flags.f_contiguous == file[name].flags.f_contiguous
            assert array.flags.writeable


def test_objects_are_refused(tmp_path: Path) -> None:
    """Reading them would execute what they say."""
    np.savez(tmp_path / "objects.npz", found=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="objects are no plain arrays"):
        read_arrays(tmp_path / "objects.npz")


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY\x01\x00", b"text"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    """Such as one that was cut short."""
    (tmp_path / "other.npz").write_bytes(content)
    with pytest.raises(ValueError, match="holds no arrays"):
        read_arrays(tmp_path / "other.npz")
