"""Testbeds that fail on purpose: retries, outliers and drift."""

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.profiling import profile
from profiler.runs.outliers import ConfirmedTestbed, doubtful
from profiler.testbed import Measurement, Run, RunRefused, TestbedChanged, TestbedError
from profiler.testbed_stack import DriftReference, RetryingTestbed, SteadyTestbed
from profiler.testbeds.exec import ExecTestbed
from profiles import ChainLoad, Counters, Load, TrafficProfile, Workload
from profiles.profile import Profile, read_profile
from tests.profiler.foreign import FIREWALL, FOREIGN
from tests.profiler.toy_server import ToyServer
from tests.profiler.toy_testbed import ToyTestbed, description

NF = Workload("counter", TrafficProfile(1000, 512))
CO_LOCATIONS = [[Workload("counter", TrafficProfile(1000, 512 + size))] for size in range(400)]


def retried(flags: str, messages: list[str], timeout: float = 20.0) -> RetryingTestbed:
    """The foreign testbed with these flags, retried without waiting."""
    return RetryingTestbed(lambda: ExecTestbed(f"{FOREIGN} {flags}", timeout), messages.append, lambda seconds: None)


def profiled(tmp_path: Path, flags: str, messages: list[str], timeout: float = 20.0, quota: int = 60) -> Profile:
    """The profile of one NF of the foreign testbed with these flags."""
    with retried(flags, messages, timeout) as testbed:
        return read_profile(profile(testbed, tmp_path / "p", nfs=["tls-proxy"], quota=quota, notify=messages.append))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """The same profile, of a testbed without fault."""
    return profiled(tmp_path_factory.mktemp("whole"), "", [])


FAULTS = [
    ("--die-after", 20),  # ends in the middle
    ("--hang-after", 1),  # hangs
    ("--late-s 2 --late-after", 1),  # answers late
    ("--garbage-after", 20),  # answers with what is not JSON
    ("--wrong-id-after", 20),  # answers with another id
    ("--nan-after", 20),  # reports NaN
    ("--zero-after", 20),  # reports no throughput
    ("--short-after", 20),  # leaves out a workload
    ("--no-counter-after", 20),  # leaves out a counter
]


def check_restarts(messages: list[str]) -> None:
    """The testbed was restarted for each fault; on a busy machine, the next attempt may be late, too."""
    assert "attempt 1 of 3 failed" in messages[0]
    assert all("failed, restarting the testbed" in line for line in messages)


@pytest.mark.parametrize(("fault", "timeout"), FAULTS)
def test_a_run_that_fails_is_made_again(fault: str, timeout: float) -> None:
    """A testbed that fails after every third run is restarted, and measures what one without fault does."""
    messages: list[str] = []
    runs = [[replace(FIREWALL, traffic=replace(FIREWALL.traffic, flows=flows))] for flows in (10, 100, 1000, 10_000)]
    with retried("", []) as whole, retried(f"{fault} 3", messages, timeout) as testbed:
        expected, found = ([one.run(loads, seed=7).measurements for loads in runs] for one in (whole, testbed))
        assert found == expected
    check_restarts(messages)


@pytest.mark.parametrize(("fault", "timeout"), FAULTS)
@pytest.mark.long
def test_a_testbed_that_fails_sometimes_is_restarted(
    tmp_path: Path, undisturbed: Profile, fault: str, timeout: float
) -> None:
    """A testbed that fails after every 80 runs is restarted each time, and the profile is the same to the byte."""
    messages: list[str] = []
    written = profiled(tmp_path, f"{fault} 80", messages, timeout)
    check_restarts(messages)
    for name in ("solo.csv", "memory.csv", "crypto.csv", "pattern.csv"):
        whole, broken = (one.source / "tls-proxy" / name for one in (undisturbed, written))
        assert broken.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("fault", ["die", "garbage", "nan", "zero"])
def test_after_three_attempts_the_last_failure_is_reported(fault: str) -> None:
    """The error holds the last lines of the testbed."""
    messages: list[str] = []
    with (
        retried(f"--{fault}-after 0", messages) as testbed,
        pytest.raises(TestbedError, match=r"(?s)gave up after 3 attempts at one run: testbed .* on stderr"),
    ):
        testbed.run([FIREWALL])
    assert len(messages) == 2


def test_a_testbed_that_ends_at_its_start_is_reported_at_once(tmp_path: Path) -> None:
    """A command that ends before it describes itself is not restarted: the user can correct it."""
    messages: list[str] = []
    dead = tmp_path / "dead.py"
    dead.write_text("import sys\nsys.exit('no card in slot 3')\n")
    with (
        RetryingTestbed(lambda: ExecTestbed(f"{sys.executable} {dead}"), messages.append) as testbed,
        pytest.raises(TestbedError, match="no card in slot 3"),
    ):
        testbed.describe()
    assert not messages


def test_a_refused_run_is_not_repeated() -> None:
    """It would be refused again."""
    messages: list[str] = []
    with retried("", messages) as testbed:
        with pytest.raises(RunRefused, match="bad-request: no workload nf NoSuchNf"):
            testbed.run([Workload("NoSuchNf", TrafficProfile(1, 64))])
        assert testbed.run([FIREWALL]).measurements
    assert not messages


def test_a_testbed_that_describes_itself_differently_after_a_restart_is_refused() -> None:
    """Its measurements would belong to another profile."""
    testbeds = iter([ToyTestbed(fails_after=0), ToyTestbed(description(name="other"))])
    testbed = RetryingTestbed(lambda: next(testbeds), pause=lambda seconds: None)
    testbed.describe()
    with pytest.raises(TestbedChanged, match="describes itself differently after a restart"):
        testbed.run([NF])


@pytest.mark.long
def test_no_outlier_enters_a_profile(tmp_path: Path, undisturbed: Profile) -> None:
    """With one run in 50 off by 30 %, every exported throughput is within 5 % of the undisturbed one."""
    messages: list[str] = []
    written = profiled(tmp_path, "--outliers 50", messages)
    assert any("their repeats did not confirm them" in line for line in messages)
    assert _compared(undisturbed, written).max() < 0.05


@pytest.mark.long
def test_drift_is_corrected_and_reported(tmp_path: Path) -> None:
    """A card that gets 10 % slower within an hour of runs gives throughputs within 5 % of a steady one's."""
    messages: list[str] = []
    steady, drifting = (
        profiled(tmp_path / name, flags, messages, quota=900)
        for name, flags in (("steady", ""), ("drifts", "--drift 1200"))
    )
    differences = _compared(steady, drifting)
    assert differences.max() < 0.05 and differences.mean() < 0.03
    assert any("testbed drifts: the reference run is -" in line for line in messages)


class Scripted(ToyTestbed):
    """A toy whose throughputs are multiplied by the next factor of the script."""

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
        ((1.3, 0.7, 1.0, 0.5, 1.5), 1.0, 5, 1),  # no two agree: the middle one
    ],
)
def test_the_earliest_confirmed_run_counts(script: tuple[float, ...], factor: float, runs: int, outliers: int) -> None:
    """Two runs that agree within 10 % confirm each other."""
    toy = Scripted(script)
    testbed = ConfirmedTestbed(toy, toy)
    assert testbed.run([NF]).measurements[0].throughput_kpps == pytest.approx(1000 * factor)
    assert len(toy.requests) == runs and testbed.outliers == outliers


def test_a_counter_that_a_repeat_does_not_confirm_is_an_outlier() -> None:
    """Of a load alone the counters must agree, too, because models learn from them."""

    def miscount(number: int, run: Run) -> Run:
        (one,) = run.measurements
        return Run((replace(one, counters=replace(one.counters, wss=3.0 if number == 1 else 1.0)),))

    toy = ToyTestbed(alter=miscount)
    assert ConfirmedTestbed(toy, toy).run([NF]).measurements[0].counters.wss == 1.0


def test_only_runs_off_a_smooth_surface_are_doubted() -> None:
    """Of 200 runs on a smooth surface with 1 % noise, exactly the four that are 30 % off are doubted, worst first."""
    rng = np.random.default_rng(0)
    inputs = rng.random((200, 3))
    logarithm = -np.log1p(2 * inputs[:, 0]) - 0.3 * inputs[:, 1] + 0.01 * rng.standard_normal(200)
    off = {10: math.log(0.7), 50: math.log(1.3), 120: math.log(0.7), 180: math.log(1.3)}
    for index, change in off.items():
        logarithm[index] += change
    assert set(doubtful(inputs, logarithm)) == set(off)
    assert doubtful(inputs, logarithm)[0] in (10, 120) and doubtful(inputs, np.zeros(200)) == []


def test_small_drift_is_ignored_larger_corrected_and_large_refused() -> None:
    """2 % counts as noise, throughputs are divided by 10 %, at 25 % the profiling ends."""
    messages: list[str] = []

    def steady(drift: float) -> SteadyTestbed:
        toy = Scripted([1.0] * 5 + [drift] * 1000)
        return SteadyTestbed(toy, DriftReference(toy, 0, messages.append))

    small, larger, large = steady(0.98), steady(0.9), steady(0.75)
    assert [run.measurements[0].throughput_kpps for run in small.run_many(CO_LOCATIONS)] == pytest.approx([980] * 400)
    assert not messages
    assert larger.run_many(CO_LOCATIONS)[-1].measurements[0].throughput_kpps == pytest.approx(1000)
    assert messages == [
        "testbed drifts: the reference run is -10.0 % off its beginning; throughputs are corrected by it"
    ]
    with pytest.raises(TestbedError, match=r"-25\.0 % off its beginning, more than the 20 % that can be corrected"):
        large.run_many(CO_LOCATIONS)


def test_the_reference_is_read_after_some_runs_or_some_time() -> None:
    """After 50 runs of no time, and after four of 30 seconds each."""
    for seconds, runs, readings in ((0.0, 100, 2), (30.0, 8, 2)):
        toy = ToyTestbed(elapsed_s=seconds)
        SteadyTestbed(toy, DriftReference(toy, 0, print)).run_many(CO_LOCATIONS[:runs])
        assert len(toy.requests) == 5 + runs + readings


def test_without_nfs_no_drift_is_measured() -> None:
    """Where no NF can be the reference, the runs of benches are not corrected."""
    toy = ToyTestbed(description(nfs=[]))
    assert len(SteadyTestbed(toy, DriftReference(toy, 0, print)).run_many(CO_LOCATIONS[:120])) == 120


def test_two_counters_of_zero_agree() -> None:
    """No third run is made."""
    toy = ToyTestbed(alter=lambda number, run: Run((Measurement(5.0, Counters()),)))
    ConfirmedTestbed(toy, toy).run([NF])
    assert len(toy.requests) == 2


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


def test_drift_of_chains_is_corrected_with_their_stages_but_not_beyond_what_is_offered() -> None:
    """A testbed that is 10 % slow: in a closed loop all rates are corrected, in an open one up to the offered load."""
    closed = ChainLoad.of(["gate", "coder"], [[0, 1]], TrafficProfile(100, 500))
    opened = [replace(closed, rate_kpps=rate) for rate in (100.0, 1500.0)]

    class Slow(ToyServer):
        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            self.factors = [1.0 if len(self.requests) < 5 else 0.9]
            return super().run(loads)

    toy = Slow()
    reference = DriftReference(toy, 0, lambda message: None)
    steady = SteadyTestbed(toy, reference)
    for seed in range(300):
        steady.run([closed], seed=seed)
    assert reference.factor == pytest.approx(0.9)
    truth = ToyServer().run([closed]).measurements[0]
    corrected = steady.run([closed], seed=1000).measurements[0]
    assert corrected.throughput_kpps == pytest.approx(truth.throughput_kpps)
    assert corrected.stages[1].throughput_kpps == pytest.approx(truth.stages[1].throughput_kpps)
    light, heavy = (steady.run([load], seed=1000).measurements[0] for load in opened)
    assert light.throughput_kpps == 100 and heavy.throughput_kpps == pytest.approx(truth.throughput_kpps)
