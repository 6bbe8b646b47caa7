"""The profile directory: what a second profiling replaces, and what stays whatever happens."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from profiler.profiling import profile
from profiler.simulated import SimulatedTestbed
from profiler.testbed import TestbedError
from profiles import InputError, NfDescription
from profiles.profile import COUNTER_COLUMNS, THROUGHPUT_COLUMN, TRAFFIC_COLUMNS, NfProfile
from tests.profiler.foreign import bytes_of
from tests.profiler.toy_testbed import ToyTestbed, description

TWO_NFS = description(nfs=[{"name": "counter", "cores": 2}, {"name": "other", "cores": 1}])
USERS_FILES = (
    "NOTES.md",
    "counter/co-runs.csv",
    "counter/memory-of-last-year.csv",
    "counter/raw/1/log",
    "figures/a.svg",
)


def test_a_second_profiling_keeps_the_files_of_the_user(tmp_path: Path) -> None:
    """NFs profiled earlier, notes, hand-written measurements and nested folders stay as they are."""
    testbed, out = ToyTestbed(TWO_NFS), tmp_path / "p"
    profile(testbed, out, nfs=["counter"], quota=60)
    _write_users_files(out)
    profile(testbed, out, nfs=["other"], quota=60)
    profile(testbed, out, nfs=["counter"], quota=70)
    assert {name: (out / name).read_text() for name in USERS_FILES} == dict.fromkeys(USERS_FILES, "mine\n")
    assert (out / "other" / "memory.csv").exists()


@pytest.mark.parametrize("renames", [0, 3, *(pytest.param(further, marks=pytest.mark.long) for further in (1, 5))])
def test_a_kill_while_a_profile_is_written_again_loses_nothing(tmp_path: Path, renames: int) -> None:
    """Each file is the old or the new one, the user's files stay, and the same command completes the profile."""
    out = tmp_path / "p"
    profile(ToyTestbed(TWO_NFS), out, nfs=["counter"], quota=60)
    profile(ToyTestbed(TWO_NFS), tmp_path / "whole", nfs=["counter"], quota=70)
    _write_users_files(out)
    before, after = bytes_of(out), bytes_of(tmp_path / "whole")
    process = multiprocessing.get_context("fork").Process(target=_profile_and_be_killed, args=(out, renames))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    between = {name: content for name, content in bytes_of(out).items() if not name.startswith(".")}
    assert between.keys() == before.keys()
    assert all(content in (before[name], after.get(name)) for name, content in between.items())
    profile(ToyTestbed(TWO_NFS), out, nfs=["counter"], quota=70)
    assert bytes_of(out) == after | dict.fromkeys(USERS_FILES, b"mine\n")


def test_tables_of_an_earlier_description_are_removed(tmp_path: Path) -> None:
    """A table that this profile no longer has, also under its former name, would be read as a measurement of it."""
    accelerated = NfDescription(name="NF", cores=1, accelerators=("crypto",))
    rows = pd.DataFrame(
        [[1.0, 64.0, 0.0, *range(7), 5.0]], columns=[*TRAFFIC_COLUMNS, *COUNTER_COLUMNS, THROUGHPUT_COLUMN]
    )
    earlier = NfProfile("NF", accelerated, rows, rows, {"crypto": rows}, pattern=rows)
    earlier.write(tmp_path / "NF")
    (tmp_path / "NF" / "companies.csv").write_text("former name")
    NfProfile("NF", NfDescription(name="NF", cores=1), rows, rows).write(tmp_path / "NF")
    assert sorted(path.name for path in (tmp_path / "NF").iterdir()) == ["memory.csv", "nf.json", "solo.csv"]


def test_a_disk_that_is_full_at_the_end_leaves_the_old_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured stays in the journal: the same call writes the profile without a run."""
    profile(ToyTestbed(), tmp_path / "p", quota=60)
    before = bytes_of(tmp_path / "p")

    def full(table: pd.DataFrame, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("profiles.profile.write_table", full)
        with pytest.raises(OSError, match="No space left"):
            profile(ToyTestbed(), tmp_path / "p", quota=70)
    assert bytes_of(tmp_path / "p") == before
    profile(ToyTestbed(fails_after=0), tmp_path / "p", quota=70)
    assert bytes_of(tmp_path / "p") != before


@pytest.mark.long
def test_a_disk_that_is_full_while_profiling_is_one_line(tmp_path: Path) -> None:
    """The command ends with status 1 and writes no profile; with space again, it resumes to the same bytes."""
    arguments = ["--testbed", "simulated", "--nf", "ACL", "--quota", "60", "--quiet", "--out"]
    command = [sys.executable, "-c", "from placer.cli import main; main()", "profile", *arguments]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    failed = subprocess.run([*command, tmp_path / "p"], preexec_fn=limited, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert re.fullmatch(
        r"error: journal .*p\.journal\.sqlite: (database or disk is full|disk I/O error)\n", failed.stderr
    )
    assert not (tmp_path / "p").exists()
    for name in ("p", "whole"):
        profile(SimulatedTestbed(), tmp_path / name, nfs=["ACL"], quota=60)
    assert bytes_of(tmp_path / "p") == bytes_of(tmp_path / "whole")


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    """A folder that no profiling wrote stays as it is."""
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="remove it or choose another"):
        profile(ToyTestbed(), tmp_path, quota=60)
    with pytest.raises(InputError, match="is a file"):
        profile(ToyTestbed(), tmp_path / "thesis.tex", quota=60)
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("accelerator", ["solo", "pattern", "memory-2"])
def test_an_accelerator_named_like_another_file_is_refused(tmp_path: Path, accelerator: str) -> None:
    """An accelerator's file must not be taken for another file of the NF."""
    testbed = ToyTestbed(description(nfs=[{"name": "counter", "cores": 1, "accelerators": [accelerator]}]))
    with pytest.raises(TestbedError, match=f"has an accelerator named {accelerator}"):
        profile(testbed, tmp_path / "p", quota=60)


def _write_users_files(out: Path) -> None:
    for name in USERS_FILES:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine\n")


def _profile_and_be_killed(out: Path, renames: int) -> None:
    """Profile again, and be killed before the file after `renames` others is replaced."""
    replace, inside = Path.replace, [0]

    def counted(path: Path, place: Path) -> Path:
        if ".unfinished." in str(path) and ".unfinished." not in str(place):
            if inside[0] == renames:
                os.kill(os.getpid(), signal.SIGKILL)
            inside[0] += 1
        return replace(path, place)

    Path.replace = counted  # type: ignore[method-assign,assignment]
    profile(ToyTestbed(TWO_NFS), out, nfs=["counter"], quota=70)
