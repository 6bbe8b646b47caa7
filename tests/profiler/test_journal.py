"""The journal: nothing measured is lost, nothing is measured twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from profiler.journal import Journal, JournaledTestbed
from profiler.testbed import Measurement, Run, TestbedError
from profiles import BenchLoad, Counters, InputError, Load, TrafficProfile, Workload
from tests.profiler.toy_testbed import ToyTestbed, description

NF = Workload("counter", TrafficProfile(10, 64))
BENCH = BenchLoad.of("mem-bench", {"wss_mb": 1, "access_mops": 0.1 + 0.2})


def test_a_run_is_measured_once(tmp_path: Path) -> None:
    """What the journal knows is answered from it, to the last bit, also by another process."""
    toy = ToyTestbed()
    with Journal(tmp_path / "j") as journal:
        testbed = JournaledTestbed(toy, journal)
        first = testbed.run_many([[NF], [NF, BENCH], [NF]], seed=1)
        assert len(toy.asked) == 2
    with Journal(tmp_path / "j") as journal:
        assert len(journal) == 2
        assert JournaledTestbed(ToyTestbed(fails_after=0), journal).run_many([[NF], [NF, BENCH], [NF]], seed=1) == first


def test_seed_noise_and_company_tell_runs_apart(tmp_path: Path) -> None:
    """A run with another seed, without noise, or in another company is another run."""
    toy = ToyTestbed()
    with Journal(tmp_path / "j") as journal:
        testbed = JournaledTestbed(toy, journal)
        testbed.run([NF], seed=1)
        testbed.run([NF], seed=2)
        testbed.run([NF], seed=1, noise=False)
        testbed.run([NF, BENCH], seed=1)
    assert len(toy.asked) == 4


def test_each_run_is_written_before_the_next(tmp_path: Path) -> None:
    """When a testbed dies, everything before is in the journal."""
    with Journal(tmp_path / "j") as journal:
        testbed = JournaledTestbed(ToyTestbed(fails_after=2), journal)
        with pytest.raises(TestbedError, match="fell off"):
            testbed.run_many([[NF], [NF, BENCH], [NF, BENCH, BENCH]])
        assert len(journal) == 2


@pytest.mark.parametrize("kpps", [0.0, -1.0, math.nan, math.inf])
def test_no_model_learns_from_what_is_no_measurement(tmp_path: Path, kpps: float) -> None:
    """A throughput that is not finite and positive is refused and not written."""

    class Broken(ToyTestbed):
        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            return Run((Measurement(kpps, Counters()),))

    with Journal(tmp_path / "j") as journal:
        with pytest.raises(TestbedError, match="throughput of"):
            JournaledTestbed(Broken(), journal).run([NF])
        assert len(journal) == 0


def test_a_journal_belongs_to_one_testbed_and_seed(tmp_path: Path) -> None:
    """Runs of another testbed or seed are refused with the way out."""
    with Journal(tmp_path / "j") as journal:
        journal.claim(description(), 0)
        journal.claim(description(), 0)
        with pytest.raises(InputError, match=r"journal holds runs of seed 0, not 1\nhint: choose another --out"):
            journal.claim(description(), 1)
        with pytest.raises(InputError, match="journal holds runs of another testbed"):
            journal.claim(description(name="other"), 0)


def test_a_journal_in_use_is_refused(tmp_path: Path) -> None:
    """Two profilings cannot write into one journal at once."""
    with Journal(tmp_path / "j"), pytest.raises(InputError, match="journal is in use"):
        Journal(tmp_path / "j")


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    """A file that is no SQLite database is not overwritten."""
    (tmp_path / "j").write_text("my diary, which is not a database, and long enough to be sure of it. " * 20)
    with pytest.raises(InputError, match="is not a journal"):
        Journal(tmp_path / "j")
    assert (tmp_path / "j").read_text().startswith("my diary")
