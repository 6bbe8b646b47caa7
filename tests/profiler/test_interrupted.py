"""kill -9 at any moment, and the same command goes on: nothing lost but the run in flight, nothing measured twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from profiler.journal import Journal
from profiler.profiling import journal_of, merge, profile
from profiler.status import as_text, read_status
from profiler.testbed import TestbedError
from profiler.testbeds import open_testbed
from profiles import InputError
from tests.profiler.toy_testbed import ToyTestbed, description

FOREIGN = Path(__file__).parents[1] / "data" / "foreign_testbed.py"
COMMAND = (
    "import sys; from pathlib import Path; from profiler.profiling import profile; "
    "from profiler.testbeds import open_testbed; "
    "profile(open_testbed(sys.argv[1]), Path(sys.argv[2]), nfs=['tls-proxy'], quota=150)"
)
RUN_BYTES = 300

TWO_NFS = description(nfs=[{"name": "counter", "cores": 2}, {"name": "other", "cores": 1}])


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_at_random_moments_change_nothing(tmp_path: Path, kills: int) -> None:
    """Killed at random moments, then left alone: the bytes of an undisturbed run, and each kill lost a run at most."""
    log, rng = tmp_path / "log", random.Random(7)
    log.touch()
    for _ in range(kills):
        _kill_in_the_middle(log, tmp_path / "killed", rng, most=400 // kills)
    interrupted = len(_asked(log))
    for name, spec in (("killed", _exec(log)), ("whole", _exec(tmp_path / "undisturbed"))):
        with open_testbed(spec) as testbed:
            profile(testbed, tmp_path / name, nfs=["tls-proxy"], quota=150)
    assert _bytes(tmp_path / "killed") == _bytes(tmp_path / "whole")
    asked, once = _asked(log), _asked(tmp_path / "undisturbed")
    assert set(asked) == set(once) and set(once.values()) == {1}
    assert sum(asked.values()) - len(asked) <= kills
    assert len(once) / 4 < interrupted


def _kill_in_the_middle(log: Path, out: Path, rng: random.Random, most: int) -> None:
    """Begin a profiling and kill it, with the testbed, a moment after some runs; at times before it has begun any."""
    process = subprocess.Popen([sys.executable, "-c", COMMAND, _exec(log), out], start_new_session=True)
    enough = log.stat().st_size + RUN_BYTES * rng.randint(0, most)
    if rng.random() < 0.1:
        enough = 0
    while process.poll() is None and log.stat().st_size <= enough:
        time.sleep(0.001)
    time.sleep(rng.uniform(0, 0.005))
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_second_call_says_that_nothing_is_left(tmp_path: Path) -> None:
    """When all is measured the testbed is only asked what it is, and how many runs are recorded is told."""
    said: list[str] = []
    profile(ToyTestbed(), tmp_path / "p", quota=60, notify=said.append)
    assert not said
    with Journal(journal_of(tmp_path / "p")) as journal:
        runs = len(journal)
    profile(ToyTestbed(fails_after=0), tmp_path / "p", quota=60, notify=said.append)
    assert said == [f"nothing to measure: {runs:,} runs are recorded"]


def test_status_tells_what_is_done_and_what_is_left(tmp_path: Path) -> None:
    """In the middle the rest is told; at the end nothing is left."""
    with pytest.raises(TestbedError):
        profile(ToyTestbed(TWO_NFS, fails_after=330), tmp_path / "p", quota=60)
    status = read_status(journal_of(tmp_path / "p"))
    benches, counter, other = status.parts
    assert (benches.done, counter.done, other.done) == (True, True, False)
    assert counter.planned == other.planned == 60
    assert status.recorded == 330
    assert other.left == 60 - other.recorded > 0
    assert status.left is not None and status.left >= other.left
    assert "left: about" in as_text(status)
    profile(ToyTestbed(TWO_NFS), tmp_path / "p", quota=60)
    assert as_text(read_status(journal_of(tmp_path / "p"))).endswith("left: nothing\n")


def test_status_may_be_asked_while_a_profiling_runs(tmp_path: Path) -> None:
    """Reading takes no lock that the writer needs, and sees what is written so far."""
    seen: list[int] = []
    profile(
        ToyTestbed(), tmp_path / "p", quota=60,
        progress=lambda done, total: seen.append(read_status(journal_of(tmp_path / "p")).recorded),
    )  # fmt: skip
    assert seen == sorted(seen) and seen[-1] > seen[0] > 0


def test_time_left_is_what_runs_took(tmp_path: Path) -> None:
    """The testbed's own times are believed: half a second a run."""
    testbed = ToyTestbed(TWO_NFS, fails_after=150, elapsed_s=0.5)
    with pytest.raises(TestbedError):
        profile(testbed, tmp_path / "p", quota=60)
    status = read_status(journal_of(tmp_path / "p"))
    assert status.run_s == pytest.approx(0.5)
    assert status.left_s == pytest.approx(0.5 * (status.left or 0))


def test_there_is_no_status_of_nothing(tmp_path: Path) -> None:
    """Where nothing was profiled, or something else lies, it is said."""
    with pytest.raises(InputError, match="nothing has been profiled into this --out"):
        read_status(tmp_path / "p.journal.sqlite")
    (tmp_path / "j").write_text("no journal")
    with pytest.raises(InputError, match="is not a journal"):
        read_status(tmp_path / "j")


def test_journals_of_two_machines_make_one_profile(tmp_path: Path) -> None:
    """Each machine profiles an NF; merged, the profile of both is written without a run, to the byte as from one."""
    for machine, nf in (("a", "counter"), ("b", "other")):
        profile(ToyTestbed(TWO_NFS), tmp_path / machine, nfs=[nf], quota=60)
    profile(ToyTestbed(TWO_NFS), tmp_path / "both", quota=60)
    assert merge(tmp_path / "a", journal_of(tmp_path / "b")) > 30
    assert merge(tmp_path / "a", journal_of(tmp_path / "b")) == 0
    profile(ToyTestbed(TWO_NFS, fails_after=0), tmp_path / "a", quota=60)
    assert _bytes(tmp_path / "a") == _bytes(tmp_path / "both")


def test_journals_that_contradict_each_other_are_not_merged(tmp_path: Path) -> None:
    """Other answers to the same request, another seed, another testbed, and what is no journal are refused whole."""
    profile(ToyTestbed(), tmp_path / "a", quota=60)
    profile(ToyTestbed(hidden=True), tmp_path / "contradicts", quota=60)
    profile(ToyTestbed(), tmp_path / "seed", quota=60, seed=1)
    profile(ToyTestbed(TWO_NFS), tmp_path / "stranger", quota=60)
    (tmp_path / "diary.journal.sqlite").write_text("today")
    with Journal(journal_of(tmp_path / "a")) as journal:
        before = len(journal)
    for name, said in (
        ("contradicts", r"another answer than in .*counter with seed 0(?s:.*)hint: bench levels are measured once"),
        ("seed", "holds runs of another seed than"),
        ("stranger", "holds runs of another testbed than"),
        ("diary", "is not a journal"),
        ("nowhere", "does not exist"),
    ):
        with pytest.raises(InputError, match=said):
            merge(tmp_path / "a", journal_of(tmp_path / name))
    with Journal(journal_of(tmp_path / "a")) as journal:
        assert len(journal) == before


def _exec(log: Path) -> str:
    return f"exec:{sys.executable} {FOREIGN} --log {log}"


def _asked(log: Path) -> Counter[str]:
    """How often each run was asked; a line that a kill cut short is none."""
    return Counter(line for line in log.read_text().splitlines() if line.endswith("]]"))


def _bytes(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
