"""The journal: no measurement is lost, none is repeated; after kill -9 at any moment, the same command continues."""

import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from profiler.journal.journal import Journal, JournaledTestbed
from profiler.journal.records import JournalError
from profiler.journal.status import as_text, read_status
from profiler.profiling import journal_of, merge, profile
from profiler.simulated import SimulatedServer
from profiler.testbed import Measurement, PacketLatency, Run, StageMeasurement, TestbedError
from profiler.testbed_stack import RetryingTestbed
from profiler.testbeds import open_testbed
from profiles import COUNTERS, BenchLoad, ChainLoad, Counters, InputError, TrafficProfile, Workload
from tests.profiler.foreign import FOREIGN, bytes_of
from tests.profiler.toy_testbed import ToyTestbed, description

NF = Workload("counter", TrafficProfile(10, 64))
BENCH = BenchLoad.of("mem-bench", {"wss_mb": 1, "access_mops": 0.1 + 0.2})


def test_a_run_is_measured_once(tmp_path: Path) -> None:
    """A run in the journal is answered from it, to the last bit, also by another process."""
    toy = ToyTestbed()
    with Journal(tmp_path / "j") as journal:
        first = JournaledTestbed(toy, journal).run_many([[NF], [NF, BENCH], [NF]], seed=1)
        assert len(toy.requests) == 2
    with Journal(tmp_path / "j") as journal:
        assert len(journal) == 2
        assert JournaledTestbed(ToyTestbed(fails_after=0), journal).run_many([[NF], [NF, BENCH], [NF]], seed=1) == first


def test_a_run_of_a_chain_is_kept_with_its_stages_and_latency(tmp_path: Path) -> None:
    """What the journal answers is what was measured, to the last bit."""
    chain = ChainLoad.of(["ACL", "NAT"], [[0], [1]], TrafficProfile(10, 64), rate_kpps=100)
    with Journal(tmp_path / "j") as journal:
        measured = JournaledTestbed(SimulatedServer(), journal).run([chain], seed=1)
        assert measured.measurements[0].stages and measured.measurements[0].latency_us
        assert JournaledTestbed(ToyTestbed(fails_after=0), journal).run([chain], seed=1) == measured


def test_a_latency_without_p95_is_read(tmp_path: Path) -> None:
    """As journals of earlier versions have it."""
    answer = """{"measurements": [{"throughput_kpps": 1.5, "counters": {%s},
        "latency_us": {"mean": 2, "p50": 1, "p99": 3, "max": 4}}], "elapsed_s": 1}"""
    with Journal(tmp_path / "j") as journal:
        JournaledTestbed(ToyTestbed(), journal).run([NF], seed=1)
    with sqlite3.connect(tmp_path / "j") as database:
        database.execute("UPDATE runs SET answer = ?", (answer % ", ".join(f'"{name}": 0' for name in COUNTERS),))
    with Journal(tmp_path / "j") as journal:
        run = JournaledTestbed(ToyTestbed(fails_after=0), journal).run([NF], seed=1)
    assert run.measurements[0].latency_us == PacketLatency(2, 1, 3, 4, None)


def test_another_seed_noise_or_co_location_is_another_run(tmp_path: Path) -> None:
    """None of them is answered by the other's entry in the journal."""
    toy = ToyTestbed()
    with Journal(tmp_path / "j") as journal:
        testbed = JournaledTestbed(toy, journal)
        testbed.run([NF], seed=1)
        testbed.run([NF], seed=2)
        testbed.run([NF], seed=1, noise=False)
        testbed.run([NF, BENCH], seed=1)
    assert len(toy.requests) == 4


def test_each_run_is_written_before_the_next(tmp_path: Path) -> None:
    """When a testbed fails, all runs before are in the journal."""
    with Journal(tmp_path / "j") as journal:
        testbed = JournaledTestbed(ToyTestbed(fails_after=2), journal)
        with pytest.raises(TestbedError, match="toy is broken"):
            testbed.run_many([[NF], [NF, BENCH], [NF, BENCH, BENCH]])
        assert len(journal) == 2


@pytest.mark.parametrize(
    ("one", "message"),
    [
        *((Measurement(kpps, Counters()), "throughput of") for kpps in (0.0, -1.0, math.nan, math.inf)),
        (Measurement(1.0, Counters(), (StageMeasurement(math.nan, 0.0),)), "testbed reports"),
        (Measurement(1.0, Counters(), (StageMeasurement(1.0, 101.0),)), "testbed reports"),
        (Measurement(1.0, Counters(), (), PacketLatency(1.0, 1.0, math.inf, 1.0)), "testbed reports"),
    ],
)
def test_an_invalid_measurement_is_not_written(tmp_path: Path, one: Measurement, message: str) -> None:
    """Throughputs, stages and latencies that are none are refused, so no model learns from them."""
    with Journal(tmp_path / "j") as journal:
        with pytest.raises(TestbedError, match=message):
            JournaledTestbed(ToyTestbed(alter=lambda number, run: Run((one,))), journal).run([NF])
        assert len(journal) == 0


def test_a_journal_belongs_to_one_testbed_and_seed(tmp_path: Path) -> None:
    """Runs of another testbed or seed are refused with a hint."""
    with Journal(tmp_path / "j") as journal:
        journal.claim(ToyTestbed(), 0)
        journal.claim(ToyTestbed(), 0)
        with pytest.raises(InputError, match=r"journal holds runs of seed 0, not 1\nhint: choose another --out"):
            journal.claim(ToyTestbed(), 1)
        with pytest.raises(InputError, match="journal holds runs of another testbed"):
            journal.claim(ToyTestbed(description(name="other")), 0)


def test_a_journal_belongs_to_one_of_machines_that_describe_themselves_alike(tmp_path: Path) -> None:
    """Runs of another card of the kind are refused; a journal of an earlier version belongs to the first that asks."""
    first, second = (ToyTestbed(card=card) for card in ("bf2-a", "bf2-b"))
    with Journal(tmp_path / "j") as journal:
        journal.claim(ToyTestbed(), 0)
        journal.claim(first, 0)
        journal.claim(RetryingTestbed(lambda: first), 0)
        with pytest.raises(InputError, match="another machine measured: bf2-a, not bf2-b"):
            journal.claim(second, 0)
    with Journal(tmp_path / "k") as journal:
        journal.add_journal(tmp_path / "j")
        journal.claim(second, 0)


def test_a_journal_belongs_to_a_sweep_or_to_a_profile(tmp_path: Path) -> None:
    """This is said first: another seed would not help."""
    with Journal(tmp_path / "sweep") as journal:
        journal.claim(ToyTestbed(), 1, {"sweep": "{}"})
        with pytest.raises(InputError, match="journal holds runs of a sweep"):
            journal.claim(ToyTestbed(), 0)
    with Journal(tmp_path / "profile") as journal:
        journal.claim(ToyTestbed(), 0)
        with pytest.raises(InputError, match="journal holds runs of a profile"):
            journal.claim(ToyTestbed(), 1, {"sweep": "{}"})


def test_a_journal_in_use_is_refused(tmp_path: Path) -> None:
    """Two profilings cannot write into one journal at once."""
    with Journal(tmp_path / "j"), pytest.raises(InputError, match="journal is in use"):
        Journal(tmp_path / "j")


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    """A file that is no SQLite database is not overwritten."""
    (tmp_path / "j").write_text("my diary, which is not a database, and long enough to be sure of it. " * 20)
    with pytest.raises(InputError, match="is not a journal"):
        Journal(tmp_path / "j")
    assert (tmp_path / "j").read_text().startswith("my diary")


def test_a_journal_that_cannot_be_opened_is_reported_as_such(tmp_path: Path) -> None:
    """A path that cannot be opened is no bad input: the command ends with status 1."""
    (tmp_path / "j").mkdir()
    with pytest.raises(JournalError, match=r"journal .*/j: unable to open database file"):
        Journal(tmp_path / "j")
    assert [path.name for path in tmp_path.iterdir()] == ["j"]


def test_a_full_disk_keeps_all_earlier_runs(tmp_path: Path) -> None:
    """A run that cannot be written is reported; the journal then still holds those before, and works again."""
    with Journal(tmp_path / "j") as journal:
        testbed = JournaledTestbed(ToyTestbed(), journal)
        testbed.run([NF], seed=0)
        assert journal._database is not None
        pages = journal._database.execute("PRAGMA page_count").fetchone()[0]
        journal._database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(JournalError, match="database or disk is full"):
            for seed in range(1, 1000):
                testbed.run([NF], seed=seed)
        known = len(journal)
        journal._database.execute("PRAGMA max_page_count = 1000000")
        testbed.run([NF], seed=2000)
        assert len(journal) == known + 1


@pytest.mark.parametrize("answer", ["not JSON", "{}", '{"measurements": 3, "elapsed_s": 1}', "[" * 100_000])
def test_a_damaged_answer_is_reported(tmp_path: Path, answer: str) -> None:
    """An answer that cannot be read is an input error with a hint, not a measurement."""
    with Journal(tmp_path / "j") as journal:
        JournaledTestbed(ToyTestbed(), journal).run([NF], seed=1)
    with sqlite3.connect(tmp_path / "j") as database:
        database.execute("UPDATE runs SET answer = ?", (answer,))
    with Journal(tmp_path / "j") as journal, pytest.raises(InputError, match="journal is damaged: the answer to"):
        JournaledTestbed(ToyTestbed(), journal).run([NF], seed=1)


COMMAND = (
    "import sys; from pathlib import Path; from profiler.profiling import profile; from profiler.testbeds import "
    "open_testbed; profile(open_testbed(sys.argv[1]), Path(sys.argv[2]), nfs=['tls-proxy'], quota=150)"
)
RUN_BYTES = 300

TWO_NFS = description(nfs=[{"name": "counter", "cores": 2}, {"name": "other", "cores": 1}])


@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.long
def test_kills_at_random_moments_change_nothing(tmp_path: Path, kills: int) -> None:
    """The profile has the bytes of an undisturbed run, and each kill lost one run at most."""
    log, rng = tmp_path / "log", random.Random(7)
    log.touch()
    for _ in range(kills):
        _kill_in_the_middle(log, tmp_path / "killed", rng, most=400 // kills)
    interrupted = len(_logged(log))
    for name, spec in (("killed", _exec(log)), ("whole", _exec(tmp_path / "undisturbed"))):
        with open_testbed(spec) as testbed:
            profile(testbed, tmp_path / name, nfs=["tls-proxy"], quota=150)
    assert bytes_of(tmp_path / "killed") == bytes_of(tmp_path / "whole")
    logged, once = _logged(log), _logged(tmp_path / "undisturbed")
    assert set(logged) == set(once) and set(once.values()) == {1}
    assert sum(logged.values()) - len(logged) <= kills and len(once) / 4 < interrupted


def _kill_in_the_middle(log: Path, out: Path, rng: random.Random, most: int) -> None:
    """Begin a profiling and kill it, with the testbed, shortly after some runs; sometimes before the first one."""
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


@pytest.mark.parametrize("after", [1, pytest.param(40, marks=pytest.mark.slow), 100])
def test_a_profiling_is_resumed_after_the_testbed_failed(tmp_path: Path, after: int) -> None:
    """Its measurements are kept, and the same call ends in the same bytes as an undisturbed one."""
    undisturbed = ToyTestbed()
    profile(undisturbed, tmp_path / "whole", quota=60)
    with pytest.raises(TestbedError):
        profile(ToyTestbed(fails_after=after), tmp_path / "broken", quota=60)
    assert not (tmp_path / "broken").exists()
    second = ToyTestbed()
    profile(second, tmp_path / "broken", quota=60)
    assert len(second.requests) == len(undisturbed.requests) - after
    assert bytes_of(tmp_path / "broken") == bytes_of(tmp_path / "whole")


def test_a_second_call_reports_that_nothing_is_left(tmp_path: Path) -> None:
    """When all is measured the testbed is only described; a message has the number of recorded runs, the bytes stay."""
    messages: list[str] = []
    profile(ToyTestbed(), tmp_path / "p", quota=60, notify=messages.append)
    assert not messages
    with Journal(journal_of(tmp_path / "p")) as journal:
        runs = len(journal)
    before = bytes_of(tmp_path / "p")
    profile(ToyTestbed(fails_after=0), tmp_path / "p", quota=60, notify=messages.append)
    assert messages == [f"nothing to measure: {runs:,} runs are recorded"] and bytes_of(tmp_path / "p") == before


def test_status_reports_what_is_done_and_what_is_left(tmp_path: Path) -> None:
    """In the middle there is a rest; at the end nothing is left."""
    with pytest.raises(TestbedError):
        profile(ToyTestbed(TWO_NFS, fails_after=250), tmp_path / "p", quota=60)
    status = read_status(journal_of(tmp_path / "p"))
    benches, counter, other, together = status.parts
    assert (benches.done, counter.done, together.done) == (True, True, False)
    assert counter.planned is not None and other.planned is not None and together.planned is not None
    assert counter.planned + other.planned + together.planned == 2 * 60
    assert (together.name, together.recorded) == ("co-locations", 0) and status.recorded == 250
    assert together.left == together.planned > 0
    assert status.left is not None and status.left >= together.left
    assert "left: about" in as_text(status)
    profile(ToyTestbed(TWO_NFS), tmp_path / "p", quota=60)
    assert as_text(read_status(journal_of(tmp_path / "p"))).endswith("left: nothing\n")


def test_status_can_be_read_while_a_profiling_runs(tmp_path: Path) -> None:
    """Reading takes no lock that the writer needs, and sees the runs written so far."""
    seen: list[int] = []
    profile(
        ToyTestbed(), tmp_path / "p", quota=60,
        progress=lambda done, total: seen.append(read_status(journal_of(tmp_path / "p")).recorded),
    )  # fmt: skip
    assert seen == sorted(seen) and seen[-1] > seen[0] > 0


def test_the_time_left_follows_from_the_times_of_runs(tmp_path: Path) -> None:
    """The testbed reports half a second a run."""
    testbed = ToyTestbed(TWO_NFS, fails_after=150, elapsed_s=0.5)
    with pytest.raises(TestbedError):
        profile(testbed, tmp_path / "p", quota=60)
    status = read_status(journal_of(tmp_path / "p"))
    assert status.run_s == pytest.approx(0.5) and status.left_s == pytest.approx(0.5 * (status.left or 0))


def test_a_status_without_a_journal_is_refused(tmp_path: Path) -> None:
    """Where nothing was profiled, or the file is no journal."""
    with pytest.raises(InputError, match="nothing has been profiled into this --out"):
        read_status(tmp_path / "p.journal.sqlite")
    (tmp_path / "j").write_text("no journal")
    with pytest.raises(InputError, match="is not a journal"):
        read_status(tmp_path / "j")


@pytest.mark.long
def test_journals_of_two_machines_make_one_profile(tmp_path: Path) -> None:
    """Each machine profiles an NF; merged, only co-locations for which their runs did not suffice are run."""
    for machine, nf in (("a", "counter"), ("b", "other")):
        profile(ToyTestbed(TWO_NFS), tmp_path / machine, nfs=[nf], quota=60)
    profile(ToyTestbed(TWO_NFS), tmp_path / "both", quota=60)
    assert merge(tmp_path / "a", journal_of(tmp_path / "b")) > 30
    assert merge(tmp_path / "a", journal_of(tmp_path / "b")) == 0
    testbed = ToyTestbed(TWO_NFS)
    profile(testbed, tmp_path / "a", quota=60)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "both") and len(testbed.requests) < 20
    assert all(isinstance(load, Workload) for loads in testbed.requests for load in loads)


@pytest.mark.long
def test_contradicting_journals_are_not_merged(tmp_path: Path) -> None:
    """Other answers to the same request, another seed, another testbed, and what is no journal are refused whole."""
    profile(ToyTestbed(), tmp_path / "a", quota=60)
    profile(ToyTestbed(hidden=True), tmp_path / "contradicts", quota=60)
    profile(ToyTestbed(), tmp_path / "seed", quota=60, seed=1)
    profile(ToyTestbed(TWO_NFS), tmp_path / "stranger", quota=60)
    (tmp_path / "text.journal.sqlite").write_text("today")
    with Journal(journal_of(tmp_path / "a")) as journal:
        before = len(journal)
    for name, message in (
        ("contradicts", r"another answer than in .*counter with seed 0(?s:.*)hint: bench levels are measured once"),
        ("seed", "holds runs of another seed than"),
        ("stranger", "holds runs of another testbed than"),
        ("text", "is not a journal"),
        ("nowhere", "does not exist"),
    ):
        with pytest.raises(InputError, match=message):
            merge(tmp_path / "a", journal_of(tmp_path / name))
    with Journal(journal_of(tmp_path / "a")) as journal:
        assert len(journal) == before


def _exec(log: Path) -> str:
    return f"exec:{FOREIGN} --log {log}"


def _logged(log: Path) -> Counter[str]:
    """How often each run was requested; a line that a kill cut short does not count."""
    return Counter(line for line in log.read_text().splitlines() if line.endswith("]]"))
