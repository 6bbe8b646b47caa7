"""Best-effort answers: kept with what they say of themselves, listed in the profile, and never mixed in silently."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from profiler.export import best_effort_table
from profiler.journal.journal import Journal, JournaledTestbed, canonical
from profiler.profiling import journal_of, profile
from profiler.protocol.protocol import parse_run, run_answer
from profiler.runs.outliers import ConfirmedTestbed
from profiler.testbed import BestEffort, Measurement, Run, difference_by_error
from profiler.testbeds.exec import ExecTestbed
from profiles import BenchLoad, Counters, Load, TrafficProfile, Workload
from profiles.best_effort import BEST_EFFORT, read_best_effort
from tests.profiler.foreign import FIREWALL, FOREIGN, bytes_of
from tests.profiler.toy_testbed import ToyTestbed

NF = Workload("counter", TrafficProfile(1000, 512))
BENCH = BenchLoad.of("mem-bench", {"wss_mb": 1, "access_mops": 50})
HURRIED = BestEffort((5.0, None), 97.5)


def run_of(*kpps: float, effort: BestEffort | None = None) -> Run:
    """A run with these throughputs."""
    return Run(tuple(Measurement(one, Counters()) for one in kpps), 3.0, effort)


def test_an_answer_says_what_it_is() -> None:
    """Mark, share of disturbed windows and errors are sent and parsed; other answers do not carry them."""
    sent = run_answer(3, run_of(100, 200, effort=HURRIED))
    assert json.loads(sent)["best_effort"] is True
    assert json.loads(sent)["disturbed_pct"] == 97.5
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


class HurriedTestbed(ToyTestbed):
    """A toy of which every second run is best effort."""

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        run = super().run(loads, noise=noise, seed=seed)
        effort = BestEffort((5.0,) * len(loads), 97.5)
        return replace(run, best_effort=effort) if len(self.requests) % 2 == 0 else run


def test_the_journal_keeps_the_mark(tmp_path: Path) -> None:
    """Also for another process; the answers of other runs are the same bytes as without best efforts."""
    with Journal(tmp_path / "j") as journal:
        testbed = JournaledTestbed(HurriedTestbed(), journal, "counter")
        runs = testbed.run_many([[NF], [NF, BENCH]], seed=1)
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
    request = canonical([NF, BENCH], True, 1)
    table = best_effort_table([("/benches", request, run_of(100, 200, effort=HURRIED))])
    assert table.to_dict("records")[0] == {
        "run": 0,
        "purpose": "benches",
        "kind": "nf",
        "name": "counter",
        "settings": "flows=1000 packet_size=512 mtbr=0",
        "throughput_kpps": 100,
        "standard_error_pct": 5.0,
        "disturbed_pct": 97.5,
    }
    assert table["settings"].iloc[1] == "access_mops=50 wss_mb=1"
    assert pd.isna(table["standard_error_pct"].iloc[1])


def test_a_profile_lists_its_best_efforts(tmp_path: Path) -> None:
    """A message counts them; all other files are the same as without the mark, and nothing is measured again."""
    messages: list[str] = []
    marked = profile(HurriedTestbed(), tmp_path / "marked", quota=60, notify=messages.append)
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
    profile(HurriedTestbed(), marked, quota=60)
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

    class Scattering(ToyTestbed):
        def __init__(self, effort: BestEffort | None) -> None:
            super().__init__()
            self.effort = effort

        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            self.requests.append(tuple(loads))
            return run_of(100 + 20 * len(self.requests), effort=self.effort)

    for effort, runs in ((None, 5), (BestEffort((10.0,)), 2)):
        testbed = Scattering(effort)
        ConfirmedTestbed(testbed, testbed).run_many([[NF]], seed=1)
        assert len(testbed.requests) == runs


def test_another_program_may_answer_best_effort() -> None:
    """`exec:` testbeds mark their runs by the protocol."""
    with ExecTestbed(f"{FOREIGN} --best-effort 2") as testbed:
        runs = [testbed.run([FIREWALL], seed=1) for _ in range(2)]
    assert runs[0].best_effort is None
    assert runs[1].best_effort == BestEffort((4.0,), 97.5)
    assert runs[0].measurements == runs[1].measurements
