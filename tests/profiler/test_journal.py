"""The journal: no measurement is lost, none is repeated."""

import math
import sqlite3
from pathlib import Path

import pytest

from profiler.journal.journal import Journal, JournaledTestbed
from profiler.journal.records import JournalError
from profiler.simulated import SimulatedServer
from profiler.testbed import Measurement, PacketLatency, Run, StageMeasurement, TestbedError
from profiler.testbed_stack import RetryingTestbed
from profiles import BenchLoad, ChainLoad, Counters, InputError, TrafficProfile, Workload
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
