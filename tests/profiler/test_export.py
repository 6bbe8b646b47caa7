"""The profile directory: what a second profiling replaces, what stays, and how runs of best effort are marked."""

import errno
import json
import multiprocessing
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from profiler.export import best_effort_table
from profiler.journal.journal import Journal, JournaledTestbed, canonical
from profiler.profiling import journal_of, profile
from profiler.protocol.protocol import parse_run, run_answer
from profiler.runs.outliers import ConfirmedTestbed
from profiler.simulated import SimulatedTestbed
from profiler.testbed import BestEffort, Measurement, Run, TestbedError, difference_by_error
from profiler.testbeds.exec import ExecTestbed
from profiles import BenchLoad, Counters, InputError, NfDescription, TrafficProfile, Workload
from profiles.best_effort import BEST_EFFORT, read_best_effort
from profiles.profile import COUNTER_COLUMNS, KPPS_COLUMN, TRAFFIC_COLUMNS, NfProfile
from tests.profiler.foreign import FIREWALL, FOREIGN, bytes_of
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
@pytest.mark.long
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
    rows = pd.DataFrame([[1.0, 64.0, 0.0, *range(7), 5.0]], columns=[*TRAFFIC_COLUMNS, *COUNTER_COLUMNS, KPPS_COLUMN])
    NfProfile("NF", accelerated, rows, rows, {"crypto": rows}, pattern=rows).write(tmp_path / "NF")
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


NF = Workload("counter", TrafficProfile(1000, 512))
BENCH = BenchLoad.of("mem-bench", {"wss_mb": 1, "access_mops": 50})
HURRIED = BestEffort((5.0, None), 97.5)


def run_of(*kpps: float, effort: BestEffort | None = None) -> Run:
    """A run with these throughputs."""
    return Run(tuple(Measurement(one, Counters()) for one in kpps), 3.0, effort)


def test_an_answer_says_what_it_is() -> None:
    """Mark, share of disturbed windows and errors are sent and parsed; other answers do not carry them."""
    sent = run_answer(3, run_of(100, 200, effort=HURRIED))
    assert json.loads(sent)["best_effort"] is True and json.loads(sent)["disturbed_pct"] == 97.5
    assert [one["standard_error_pct"] for one in json.loads(sent)["workloads"]] == [5.0, None]
    assert parse_run(json.loads(sent), [FIREWALL] * 2) == run_of(100, 200, effort=HURRIED)
    accepted = json.loads(run_answer(3, run_of(100)))
    assert not {"best_effort", "disturbed_pct"} & accepted.keys()
    accepted["workloads"][0]["standard_error_pct"] = 0.4  # the host testbed reports it always
    assert parse_run(accepted, [FIREWALL]) == run_of(100)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"disturbed_pct": 120}, "disturbed_pct"),  # more than all windows
        ({"best_effort": "yes"}, "best_effort"),  # neither true nor false
        (
            {"workloads": [{"throughput_kpps": 1.0, "counters": Counters().as_dict(), "standard_error_pct": -1}]},
            "error",
        ),
    ],
)
def test_a_wrong_mark_is_refused(change: dict[str, object], fault: str) -> None:
    """With the name of the key."""
    answer = json.loads(run_answer(0, run_of(1, effort=BestEffort((1.0,), 50)))) | change
    with pytest.raises(ValueError, match=fault):
        parse_run(answer, [FIREWALL])


def hurried() -> ToyTestbed:
    """A toy of which every second run is best effort."""

    def hurry(number: int, run: Run) -> Run:
        return run if number % 2 else replace(run, best_effort=BestEffort((5.0,) * len(run.measurements), 97.5))

    return ToyTestbed(alter=hurry)


def test_the_journal_keeps_the_mark(tmp_path: Path) -> None:
    """Also for another process; the answers of other runs are the same bytes as without best efforts."""
    with Journal(tmp_path / "j") as journal:
        runs = JournaledTestbed(hurried(), journal, "counter").run_many([[NF], [NF, BENCH]], seed=1)
        assert [run.best_effort is None for run in runs] == [True, False]
    with Journal(tmp_path / "j") as journal:
        assert JournaledTestbed(ToyTestbed(fails_after=0), journal).run_many([[NF], [NF, BENCH]], seed=1) == runs
        assert journal.best_efforts() == [("counter", canonical([NF, BENCH], True, 1), runs[1])]
    with sqlite3.connect(tmp_path / "j") as database:
        accepted, effort = (json.loads(one) for (one,) in database.execute("SELECT answer FROM runs ORDER BY rowid"))
    assert accepted.keys() == {"measurements", "elapsed_s"}
    assert effort["best_effort"] == {"standard_error_pct": [5.0, 5.0], "disturbed_pct": 97.5}


def test_the_table_has_a_row_per_workload() -> None:
    """With what ran, why, and what the answer says."""
    table = best_effort_table([("/benches", canonical([NF, BENCH], True, 1), run_of(100, 200, effort=HURRIED))])
    assert table.to_dict("records")[0] == {
        "run": 0, "purpose": "benches", "kind": "nf", "name": "counter",
        "settings": "flows=1000 packet_size=512 mtbr=0", "throughput_kpps": 100, "standard_error_pct": 5.0,
        "disturbed_pct": 97.5,
    }  # fmt: skip
    assert table["settings"].iloc[1] == "access_mops=50 wss_mb=1"
    assert pd.isna(table["standard_error_pct"].iloc[1])


def test_a_profile_lists_its_best_efforts(tmp_path: Path) -> None:
    """A message counts them; all other files are the same as without the mark, and nothing is measured again."""
    messages: list[str] = []
    marked = profile(hurried(), tmp_path / "marked", quota=60, notify=messages.append)
    plain = profile(ToyTestbed(), tmp_path / "plain", quota=60)
    table = read_best_effort(marked)
    with Journal(journal_of(marked)) as journal:
        efforts, runs = len(journal.best_efforts()), len(journal)
    assert table["run"].nunique() == efforts > 20
    assert messages == [
        f"best-effort runs, disturbed by other work: {efforts} of {runs}; standard error 5.0 % in the median, 5.0 % "
        "at most (best-effort.csv)"
    ]
    files = bytes_of(marked)
    listed = files.pop(BEST_EFFORT)
    assert files == bytes_of(plain)
    profile(hurried(), marked, quota=60)
    assert bytes_of(marked)[BEST_EFFORT] == listed


def test_a_profile_without_best_efforts_has_no_such_file(tmp_path: Path) -> None:
    """One of an earlier profile is removed."""
    out = profile(ToyTestbed(), tmp_path / "p", quota=60)
    assert not (out / BEST_EFFORT).exists()
    (out / BEST_EFFORT).write_text("of another testbed")
    profile(ToyTestbed(), out, quota=60)
    assert not (out / BEST_EFFORT).exists()


def test_best_efforts_agree_within_their_errors() -> None:
    """Runs that differ by less than 1.96 errors of the difference confirm each other; others by 10 %."""
    assert difference_by_error(None, None) == 0
    assert difference_by_error(BestEffort((3.0,)), BestEffort((4.0,))) == pytest.approx(1.96 * 0.05)
    assert difference_by_error(BestEffort((None,)), None) == 0

    for effort, runs in ((None, 5), (BestEffort((10.0,)), 2)):
        testbed = ToyTestbed(alter=lambda number, run, effort=effort: run_of(100 + 20 * number, effort=effort))
        ConfirmedTestbed(testbed, testbed).run_many([[NF]], seed=1)
        assert len(testbed.requests) == runs


def test_another_program_may_answer_best_effort() -> None:
    """`exec:` testbeds mark their runs by the protocol."""
    with ExecTestbed(f"{FOREIGN} --best-effort 2") as testbed:
        runs = [testbed.run([FIREWALL], seed=1) for _ in range(2)]
    assert runs[0].best_effort is None and runs[1].best_effort == BestEffort((4.0,), 97.5)
    assert runs[0].measurements == runs[1].measurements
