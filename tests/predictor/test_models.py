"""Models on disk: what is written is what is read; other formats and damaged files are refused."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from predictor import PREDICTORS, Models, load_models, train
from predictor.model_folder import read_arrays, write_arrays
from profiles import InputError, TrafficProfile, Workload
from tests.predictor.made_up import CRYPTO, DEFAULT, LOOKUP, PLAIN, profile

CO_LOCATION = [Workload(nf.name, DEFAULT) for nf in (PLAIN, CRYPTO, LOOKUP)]


@pytest.fixture
def saved(models: Models, tmp_path: Path) -> Path:
    """A models directory."""
    models.save(tmp_path / "models")
    return tmp_path / "models"


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_round_trip(models: Models, saved: Path) -> None:
    """Loaded models predict the same to the bit, describe the same NFs, and save as the same bytes."""
    loaded = load_models(saved)
    for name, predictor in models.predictors.items():
        np.testing.assert_array_equal(
            loaded.predictors[name].throughput([CO_LOCATION]), predictor.throughput([CO_LOCATION])
        )
    assert loaded.completed_nf_json == models.completed_nf_json
    assert (loaded.nfs, loaded.testbed, loaded.default_traffic) == (models.nfs, models.testbed, models.default_traffic)
    loaded.save(saved.parent / "again")
    assert _bytes(saved.parent / "again") == _bytes(saved)


def test_files_of_the_user_stay_where_models_are_saved_again(models: Models, saved: Path) -> None:
    """Models of before are replaced, even those of an NF that is no longer there."""
    (saved / "NOTES.md").write_text("trained on card 3", encoding="utf-8")
    (saved / "plots").mkdir()
    (saved / "plots" / "error.svg").write_text("<svg/>", encoding="utf-8")
    before = _bytes(saved)
    models.save(saved)
    assert _bytes(saved) == before
    load_models(saved)


@pytest.mark.long
def test_same_profile_and_seed_are_the_same_bytes(tmp_path: Path) -> None:
    """Training twice writes the same files."""
    for name in ("one", "two"):
        train(profile([CRYPTO]), seed=3).save(tmp_path / name)
    assert _bytes(tmp_path / "one") == _bytes(tmp_path / "two")


def test_nothing_in_the_files_executes(saved: Path) -> None:
    """Only JSON and arrays that NumPy reads without pickle."""
    for path in saved.rglob("*.*"):
        assert path.suffix in (".json", ".npz")
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as file:
                assert all(file[name].dtype.kind in "fiu" for name in file.files)


def _truncate(folder: Path) -> None:
    path = folder / PLAIN.name / "memory.npz"
    path.write_bytes(path.read_bytes()[:100])


def _remove(folder: Path) -> None:
    (folder / PLAIN.name / "memory.npz").unlink()


def _other_format(folder: Path) -> None:
    manifest = json.loads((folder / "models.json").read_text())
    (folder / "models.json").write_text(json.dumps({**manifest, "format": 99}))


def _not_json(folder: Path) -> None:
    (folder / "models.json").write_text("{")


def _other_nfs(folder: Path) -> None:
    manifest = json.loads((folder / "models.json").read_text())
    (folder / "models.json").write_text(json.dumps({**manifest, "nfs": ["Firewall"]}))


def _not_models(folder: Path) -> None:
    (folder / "models.json").unlink()


def _pickled(folder: Path) -> None:
    """Objects where arrays belong, with a digest that fits."""
    path = folder / PLAIN.name / "memory.npz"
    np.savez(path, most_accesses=np.array([{}], dtype=object))
    manifest = json.loads((folder / "models.json").read_text())
    manifest["files"][f"{PLAIN.name}/memory.npz"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "models.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_truncate, "is damaged"),
        (_remove, "is missing"),
        (_other_format, "format 99, only 4, 5 and 6 are understood"),
        (_not_json, "is damaged"),
        (_other_nfs, "does not hold models that can be read"),
        (_not_models, "is not a models directory"),
        (_pickled, "does not hold models that can be read"),
    ],
)
def test_damaged_models_are_refused(saved: Path, spoil: object, message: str) -> None:
    """One fault that names the place, and a hint to train again."""
    spoil(saved)  # type: ignore[operator]
    with pytest.raises(InputError, match=message) as refused:
        load_models(saved)
    assert "placer train" in str(refused.value)


def test_range_is_checked(models: Models) -> None:
    """Faults of an unknown NF and of traffic outside the profiled range name the column."""
    assert models.check(CO_LOCATION[0]) == [] and models.check(Workload("Firewall", DEFAULT))[0][0] == "nf"
    wrong = models.check(Workload(PLAIN.name, TrafficProfile(1e6, 1500, 2000)))
    assert wrong == [
        ("flows", "1e+06 is outside the profiled range 1 to 200000"),
        ("mtbr", "2000 is outside the profiled range 0 to 1000"),
    ]


def test_demand_alone(models: Models) -> None:
    """Cores as described, working set as measured, and all of the accelerator's time for a pipeline bound by it."""
    plain, crypto, lookup = models.demand(CO_LOCATION)
    assert (plain.cores, dict(plain.accelerators)) == (1, {})
    assert plain.wss_mb == pytest.approx(PLAIN.wss(DEFAULT), rel=0.05)
    assert crypto.accelerators["crypto"] == pytest.approx(1.0, abs=0.02)
    assert 0 < lookup.accelerators["crypto"] < 1


def test_unknown_cores_are_refused() -> None:
    """Without nf.json and testbed.json, cores are not known, and the refusal names the file to write."""
    made = profile([PLAIN])
    bare = replace(made, testbed=None, nfs={PLAIN.name: replace(made.nfs[PLAIN.name], description=None)})
    with pytest.raises(InputError, match=r"plain/nf\.json: is missing, so its cores are not known"):
        train(bare, ["tomur"]).cores(PLAIN.name)


def test_predictors_are_known_by_name() -> None:
    """Ours are there, and an unknown name is refused with theirs."""
    assert list(PREDICTORS)[:2] == ["tomur", "slomo"]
    with pytest.raises(InputError, match="'oracle' is not a predictor"):
        train(profile([PLAIN]), ["oracle"])


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
            assert array.flags.f_contiguous == file[name].flags.f_contiguous and array.flags.writeable


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
