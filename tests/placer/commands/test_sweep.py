"""`placer sweep`."""

import errno
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from placer.inputs.sweep import read_sweep
from profiler.sweeps.loads import faults_on_testbed
from profiler.testbeds import open_testbed
from tests.placer.commands.conftest import Placer, refuse
from tests.profiler.foreign import bytes_of

EXAMPLES = Path(__file__).parents[3] / "examples" / "sweeps"
FILES = {"fits.json", "machine.json", "measurements.csv", "report.html", "spec.toml"}

SMALL_SWEEP = """\
testbed = "simulated"
[workload]
nf = "FlowStats"
[[vary]]
key = "flows"
from = 1
to = 500_000
points = 12
scale = "log"
[measure]
repeats = 2
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Twelve points, twice each."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL_SWEEP, encoding="utf-8")
    return path


def test_a_sweep_is_measured_fitted_and_written(small: Path, tmp_path: Path, placer: Placer) -> None:
    """A summary on stdout, all else in the folder; the same command again measures nothing and writes the same."""
    status, out, err = placer("sweep", small, "--out", tmp_path / "s")
    assert (status, err) == (0, f"written: {tmp_path / 's'}\n")
    heading, row = out.splitlines()
    assert heading.split("  ")[0] == "curve" and row.startswith("throughput_kpps over flows")
    files = bytes_of(tmp_path / "s")
    assert set(files) == FILES
    table = pd.read_csv(tmp_path / "s" / "measurements.csv")
    assert table.columns.tolist() == ["flows", "repeat", "run", "throughput_kpps"] and len(table) == 24
    assert tomllib.loads((tmp_path / "s" / "spec.toml").read_text()) == tomllib.loads(SMALL_SWEEP)
    assert set(json.loads((tmp_path / "s" / "machine.json").read_text())) == {"testbed", "description"}
    status, again, err = placer("sweep", small, "--out", tmp_path / "s")
    assert (status, again) == (0, out) and err.startswith("nothing to measure: 24 runs are recorded\n")
    assert bytes_of(tmp_path / "s") == files


@pytest.mark.long
def test_the_same_seed_gives_the_same_bytes(small: Path, tmp_path: Path, placer: Placer) -> None:
    """Whatever the folder and the file are called; another seed gives others."""
    for name in ("a", "b"):
        assert placer("sweep", small, "--out", tmp_path / name, "--quiet").stderr == ""
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")
    other = tmp_path / "other.toml"
    other.write_text(f"seed = 1\n{SMALL_SWEEP}", encoding="utf-8")
    placer("sweep", other, "--out", tmp_path / "c")
    assert bytes_of(tmp_path / "c")["measurements.csv"] != bytes_of(tmp_path / "a")["measurements.csv"]


def test_a_fit_can_be_used_by_placer_fit(small: Path, tmp_path: Path, placer: Placer) -> None:
    """The files of a sweep are a table and a model like any other."""
    placer("sweep", small, "--out", tmp_path / "s")
    points = tmp_path / "points.csv"
    points.write_text("flows\n1000\n", encoding="utf-8")
    status, out, _ = placer("fit", tmp_path / "s" / "fits.json", "--at", points)
    assert status == 0 and out.startswith("flows,predicted")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples_can_be_read(path: Path) -> None:
    """Those on the simulated card fit it; those on this machine name it."""
    sweep = read_sweep(path)
    testbed = sweep.spec.testbed or ""
    if testbed == "simulated":
        with open_testbed(testbed) as card:
            sweep.refuse(faults_on_testbed(sweep.spec, card.describe()))
    else:
        assert testbed == "switch" or testbed.startswith("host:")


def test_there_are_examples_for_every_purpose() -> None:
    """Four on this machine, four everywhere."""
    names = {path.stem for path in EXAMPLES.glob("*.toml")}
    assert names >= {"acl-rules", "iprouter-routes", "flowstats-flows", "nat-sessions"}
    assert names >= {"flows", "packet-size", "mtbr", "competitor-rate"}


@pytest.mark.long
@pytest.mark.parametrize("name", ["flows", "packet-size", "mtbr", "competitor-rate"])
def test_examples_on_the_simulated_card_run(name: str, tmp_path: Path, placer: Placer) -> None:
    """From the file to the fits; the matches at which the accelerator becomes the bottleneck are found."""
    status, out, _ = placer("sweep", EXAMPLES / f"{name}.toml", "--out", tmp_path / "s", "--quiet")
    assert status == 0 and " over " in out
    model = json.loads((tmp_path / "s" / "fits.json").read_text())
    if name == "mtbr":
        assert [450 < one["at"] < 550 for one in model["breakpoints"]] == [True]


@pytest.mark.long
def test_several_metrics_and_settings_have_a_fit_each(tmp_path: Path, placer: Placer) -> None:
    """`fits.json` holds those of the first metric, a further file those of each other one."""
    path = tmp_path / "s.toml"
    path.write_text(
        'testbed = "simulated"\nworkload = { nf = "FlowMonitor" }\n'
        'measure = { metrics = ["throughput_kpps", "memrd"], repeats = 1 }\n'
        'fit = { y = ["throughput_kpps", "memrd"] }\n'
        '[[vary]]\nkey = "flows"\nvalues = [1, 1000, 100_000]\n[[vary]]\nkey = "mtbr"\nvalues = [0, 600]\n',
        encoding="utf-8",
    )
    status, out, _ = placer("sweep", path, "--out", tmp_path / "s")
    assert status == 0 and len(out.splitlines()) == 5
    assert set(bytes_of(tmp_path / "s")) == FILES | {"fits-memrd.json"}
    fits = json.loads((tmp_path / "s" / "fits-memrd.json").read_text())["fits"]
    assert [(fit["y"], fit["setting"]) for fit in fits] == [("memrd", {"mtbr": 0}), ("memrd", {"mtbr": 600})]


def test_a_changed_file_is_refused_and_the_folder_stays(small: Path, tmp_path: Path, placer: Placer) -> None:
    """With what differs; another fit is allowed."""
    placer("sweep", small, "--out", tmp_path / "s")
    before = bytes_of(tmp_path / "s")
    small.write_text(SMALL_SWEEP.replace("points = 12", "points = 13"), encoding="utf-8")
    err = refuse("sweep", small, "--out", tmp_path / "s")
    assert err.startswith("--out: holds another sweep: vary.1.points was 12, is 13\nhint: choose")
    assert bytes_of(tmp_path / "s") == before
    small.write_text(f"{SMALL_SWEEP}[fit]\nselect = 'bic'\n", encoding="utf-8")
    assert placer("sweep", small, "--out", tmp_path / "s").status == 0


def test_the_status_is_printed_without_a_run(small: Path, tmp_path: Path, placer: Placer) -> None:
    """Before, it is refused; afterwards nothing is left."""
    assert placer("sweep", small, "--out", tmp_path / "s", "--status").status == 2
    placer("sweep", small, "--out", tmp_path / "s")
    status, out, _ = placer("sweep", small, "--out", tmp_path / "s", "--status")
    assert status == 0 and out.splitlines()[1:2] == ["  sweep      24  done"] and out.endswith("left: nothing\n")


def test_a_full_disk_leaves_no_half_of_a_folder(
    small: Path, tmp_path: Path, placer: Placer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 1 and one line; with space again, nothing is measured again."""

    def full(table: pd.DataFrame, path: Path) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as changed:
        changed.setattr("profiles.table.write_table", full)
        status, out, err = placer("sweep", small, "--out", tmp_path / "s")
    assert (status, out) == (1, "") and "no space left" in err
    assert not (tmp_path / "s").exists()
    assert placer("sweep", small, "--out", tmp_path / "s").stderr.startswith("nothing to measure")
