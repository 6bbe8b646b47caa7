"""Testbeds that fail on purpose: what is retried, what is found, and what is told."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.drift import DriftReference, SteadyTestbed
from profiler.outliers import ConfirmedTestbed, doubtful
from profiler.profiling import profile
from profiler.retry import RetryingTestbed
from profiler.testbed import Measurement, Run, RunRefused, TestbedChanged, TestbedError
from profiler.testbeds.exec import ExecTestbed
from profiles import Counters, Load, TrafficProfile, Workload
from profiles.profile import Profile, read_profile
from tests.profiler.toy_testbed import ToyTestbed, description

FOREIGN = f"{sys.executable} {Path(__file__).parents[1] / 'data' / 'foreign_testbed.py'}"
FIREWALL = Workload("edge-firewall", TrafficProfile(4000, 1024))
NF = Workload("counter", TrafficProfile(1000, 512))
CO_LOCATIONS = [[Workload("counter", TrafficProfile(1000, 512 + size))] for size in range(400)]


def patient(flags: str, said: list[str], timeout: float = 20.0) -> RetryingTestbed:
    """The foreign testbed with these flags, retried without waiting."""
    return RetryingTestbed(lambda: ExecTestbed(f"{FOREIGN} {flags}", timeout), said.append, lambda seconds: None)


def profiled(tmp_path: Path, flags: str, said: list[str], timeout: float = 20.0, quota: int = 120) -> Profile:
    """The profile of one NF of the foreign testbed, written whatever it does."""
    with patient(flags, said, timeout) as testbed:
        return read_profile(profile(testbed, tmp_path / "p", nfs=["tls-proxy"], quota=quota, notify=said.append))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """The same profile of a testbed without fault."""
    return profiled(tmp_path_factory.mktemp("whole"), "", [])


@pytest.mark.parametrize(
    ("fault", "timeout"),
    [
        ("--die-after", 20),  # dies in the middle
        ("--hang-after", 0.3),  # hangs
        ("--late-s 0.6 --late-after", 0.3),  # answers late
        ("--garbage-after", 20),  # answers what is no JSON
        ("--wrong-id-after", 20),  # answers another question
        ("--nan-after", 20),  # reports NaN
        ("--zero-after", 20),  # reports no throughput
        ("--short-after", 20),  # forgets a workload
        ("--no-counter-after", 20),  # forgets a counter
    ],
)
def test_a_testbed_that_fails_now_and_then_is_started_again(
    tmp_path: Path, undisturbed: Profile, fault: str, timeout: float
) -> None:
    """A testbed that fails after every 150 runs is started again each time, and the profile is the same to the byte."""
    said: list[str] = []
    written = profiled(tmp_path, f"{fault} 150", said, timeout)
    assert said and all("attempt 1 of 3 failed, restarting the testbed" in line for line in said)
    for name in ("solo.csv", "memory.csv", "crypto.csv", "pattern.csv"):
        whole, broken = (one.source / "tls-proxy" / name for one in (undisturbed, written))
        assert broken.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("fault", ["die", "garbage", "nan", "zero"])
def test_retries_are_bounded_and_end_with_the_last_words(fault: str) -> None:
    """A testbed that fails at every start is given up after three attempts, with what it said last."""
    said: list[str] = []
    with (
        patient(f"--{fault}-after 0", said) as testbed,
        pytest.raises(TestbedError, match=r"(?s)gave up after 3 attempts at one run: testbed .*last lines on stderr"),
    ):
        testbed.run([FIREWALL])
    assert len(said) == 2


def test_a_testbed_that_dies_at_start_is_reported_at_once(tmp_path: Path) -> None:
    """A command that ends before it describes itself is not tried again: its operator is at hand."""
    said: list[str] = []
    dead = tmp_path / "dead.py"
    dead.write_text("import sys\nsys.exit('no card in slot 3')\n")
    with (
        RetryingTestbed(lambda: ExecTestbed(f"{sys.executable} {dead}"), said.append) as testbed,
        pytest.raises(TestbedError, match="no card in slot 3"),
    ):
        testbed.describe()
    assert not said


def test_what_is_refused_is_not_asked_again() -> None:
    """A bad request would be bad again."""
    said: list[str] = []
    with patient("", said) as testbed:
        with pytest.raises(RunRefused, match="bad-request: no workload nf NoSuchNf"):
            testbed.run([Workload("NoSuchNf", TrafficProfile(1, 64))])
        assert testbed.run([FIREWALL]).measurements
    assert not said


def test_another_testbed_that_comes_back_is_refused() -> None:
    """After a failure, the one that starts again must describe itself as the one that left did."""
    testbeds = iter([ToyTestbed(fails_after=0), ToyTestbed(description(name="other"))])
    testbed = RetryingTestbed(lambda: next(testbeds), pause=lambda seconds: None)
    testbed.describe()
    with pytest.raises(TestbedChanged, match="describes itself differently after a restart"):
        testbed.run([NF])


def test_no_outlier_enters_a_profile(tmp_path: Path, undisturbed: Profile) -> None:
    """With one run in 50 off by 30 %, every exported throughput is within 5 % of the undisturbed one; it is told."""
    said: list[str] = []
    written = profiled(tmp_path, "--outliers 50", said)
    assert any("their repeats did not confirm them" in line for line in said)
    assert _compared(undisturbed, written).max() < 0.05


def test_drift_is_corrected_and_told(tmp_path: Path) -> None:
    """A card that gets 10 % slower within an hour of runs gives throughputs within 5 % of a steady one's."""
    said: list[str] = []
    steady, drifting = (
        profiled(tmp_path / name, flags, said, quota=900)
        for name, flags in (("steady", ""), ("drifts", "--drift 1200"))
    )
    differences = _compared(steady, drifting)
    assert differences.max() < 0.05 and differences.mean() < 0.03
    assert any("testbed drifts: the reference run is -" in line for line in said)


class Scripted(ToyTestbed):
    """A toy whose runs are multiplied by what the script says next."""

    def __init__(self, script: Sequence[float]) -> None:
        super().__init__()
        self.script = iter(script)

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        run = super().run(loads)
        factor = next(self.script, 1.0)
        return replace(
            run,
            measurements=tuple(replace(one, throughput_kpps=one.throughput_kpps * factor) for one in run.measurements),
        )


@pytest.mark.parametrize(
    ("script", "factor", "runs", "outliers"),
    [
        ((1.0, 1.01), 1.0, 2, 0),  # confirmed at once: the first stays
        ((1.3, 1.0, 1.0), 1.0, 3, 1),  # the first was off
        ((1.0, 0.7, 1.01), 1.0, 3, 0),  # the repeat was off
        ((1.3, 0.7, 1.0, 0.5, 1.5), 1.0, 5, 1),  # nobody agrees: the middle one
    ],
)
def test_two_that_agree_settle_it(script: tuple[float, ...], factor: float, runs: int, outliers: int) -> None:
    """The earliest run that another confirms counts."""
    toy = Scripted(script)
    testbed = ConfirmedTestbed(toy, toy)
    assert testbed.run([NF]).measurements[0].throughput_kpps == pytest.approx(1000 * factor)
    assert len(toy.asked) == runs
    assert testbed.outliers == outliers


def test_a_counter_that_does_not_come_out_again_is_an_outlier() -> None:
    """Of a load alone the counters must agree too, because models are told them."""

    class Miscounting(ToyTestbed):
        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            run = super().run(loads)
            wss = 3.0 if len(self.asked) == 1 else 1.0
            return Run(
                tuple(Measurement(one.throughput_kpps, replace(one.counters, wss=wss)) for one in run.measurements)
            )

    toy = Miscounting()
    assert ConfirmedTestbed(toy, toy).run([NF]).measurements[0].counters.wss == 1.0


def test_what_is_smooth_is_not_doubted_and_what_sticks_out_is() -> None:
    """Of 200 runs on a smooth surface with 1 % noise, exactly the four that are 30 % off are doubted, worst first."""
    rng = np.random.default_rng(0)
    inputs = rng.random((200, 3))
    logarithm = -np.log1p(2 * inputs[:, 0]) - 0.3 * inputs[:, 1] + 0.01 * rng.standard_normal(200)
    off = {10: math.log(0.7), 50: math.log(1.3), 120: math.log(0.7), 180: math.log(1.3)}
    for index, change in off.items():
        logarithm[index] += change
    assert set(doubtful(inputs, logarithm)) == set(off)
    assert doubtful(inputs, logarithm)[0] in (10, 120)
    assert doubtful(inputs, np.zeros(200)) == []


def test_drift_is_felt_corrected_and_at_last_refused() -> None:
    """Nothing is done about 2 %; 10 % is divided out; at a quarter the profiling ends."""
    said: list[str] = []

    def steady(drift: float) -> SteadyTestbed:
        toy = Scripted([1.0] * 5 + [drift] * 1000)
        return SteadyTestbed(toy, DriftReference(toy, 0, said.append))

    mild, felt, lost = steady(0.98), steady(0.9), steady(0.75)
    assert [run.measurements[0].throughput_kpps for run in mild.run_many(CO_LOCATIONS)] == pytest.approx([980] * 400)
    assert not said
    assert felt.run_many(CO_LOCATIONS)[-1].measurements[0].throughput_kpps == pytest.approx(1000)
    assert said == ["testbed drifts: the reference run is -10.0 % off its beginning; throughputs are corrected by it"]
    with pytest.raises(TestbedError, match=r"-25\.0 % off its beginning, more than the 20 % that can be corrected"):
        lost.run_many(CO_LOCATIONS)


def test_the_reference_comes_by_runs_and_by_time() -> None:
    """A reading after 50 runs of no time, and after four of 30 seconds each."""

    class Timed(ToyTestbed):
        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            return replace(super().run(loads), elapsed_s=self.seconds)

        seconds = 0.0

    for seconds, runs, readings in ((0.0, 100, 2), (30.0, 8, 2)):
        toy = Timed()
        toy.seconds = seconds
        SteadyTestbed(toy, DriftReference(toy, 0, print)).run_many(CO_LOCATIONS[:runs])
        assert len(toy.asked) == 5 + runs + readings


def test_a_testbed_without_nfs_is_taken_as_steady() -> None:
    """Where no NF can be the reference, benches run as they are."""
    toy = ToyTestbed(description(nfs=[]))
    assert len(SteadyTestbed(toy, DriftReference(toy, 0, print)).run_many(CO_LOCATIONS[:120])) == 120


def test_readings_are_counters_of_zero_too() -> None:
    """A counter that reads zero twice agrees with itself."""

    class Idle(ToyTestbed):
        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            super().run(loads)
            return Run((Measurement(5.0, Counters()),))

    toy = Idle()
    ConfirmedTestbed(toy, toy).run([NF])
    assert len(toy.asked) == 2


def _compared(whole: Profile, other: Profile) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Relative differences of throughput between runs that both profiles hold; many of them must be the same runs."""
    differences = []
    for name in ("solo", "memory"):
        ours, theirs = (getattr(one.nfs["tls-proxy"], name) for one in (whole, other))
        keys = [column for column in ("flows", "packet_size", "mtbr", "l2crd", "memrd", "wss") if name == "memory"]
        both = ours.merge(theirs, on=keys or ["flows", "packet_size"], suffixes=("", "_other"))
        assert len(both) > len(ours) / 5
        differences.append(np.abs(both["throughput_kpps_other"] / both["throughput_kpps"] - 1).to_numpy())
    return np.concatenate(differences)
