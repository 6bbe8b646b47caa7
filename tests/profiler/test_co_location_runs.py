"""Runs of co-locations: which decide a placement, which work, counted, and confirmed where they are doubtful."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.contention import MemoryContention
from profiler.deciding import DECIDING_BAND, KEPT_SHARE, SOLO_RUNS, measure_deciding
from profiler.journal.status import read_status
from profiler.profiling import journal_of, profile
from profiler.runs.co_location_runs import CoLocationRuns
from profiler.runs.co_runs import draw_co_locations
from profiler.runs.nf_runs import NfRuns
from profiler.runs.outliers import ConfirmedTestbed, WorkingRuns
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Run, RunRefused, Testbed, TestbedChanged, TestbedError
from profiles import CoLocation, Load, NfDescription, Workload
from profiles.profile import read_profile
from tests.profiler.crowd_testbed import LOADS, CrowdTestbed, crowd_description, names
from tests.profiler.foreign import bytes_of

HEAVY, LIGHT, MIDDLE = (Workload(name, crowd_description().traffic) for name in ("heavy", "light", "middle"))
PARTS: list[list[CoLocation]] = [[(LIGHT,), (MIDDLE,)], [(LIGHT, LIGHT), (LIGHT, MIDDLE), (MIDDLE, MIDDLE)]]


def runs_on(testbed: CrowdTestbed, most: int = 1000) -> tuple[CoLocationRuns, ConfirmedTestbed]:
    """No runs yet."""
    confirmed = ConfirmedTestbed(testbed, testbed)
    return CoLocationRuns(confirmed, known=LIGHT, most=most, seed=0, done=lambda _: None, crowded=0.75), confirmed


def off(nfs: tuple[str, ...], by: float, run: int = 0) -> Callable[[tuple[str, ...], int], float]:
    """One run of these NFs is wrong."""
    return lambda found, number: by if (found, number) == (nfs, run) else 1.0


def test_what_keeps_its_throughput_is_expected_from_the_parts() -> None:
    """Two light NFs slow a third one down by what each does."""
    runs, _ = runs_on(CrowdTestbed(noise=0.0))
    for level in PARTS:
        runs.measure(level)
    assert runs.expected((LIGHT, LIGHT, MIDDLE)) == pytest.approx(
        {LIGHT: 1000 / 1.12 / 1.02, MIDDLE: 1000 / 1.02 / 1.02}
    )
    assert runs.slowest((LIGHT, MIDDLE)) == pytest.approx(1 / 1.12) and runs.slowest((LIGHT, HEAVY)) is None


@pytest.mark.parametrize(
    ("co_location", "by"),
    [
        ((LIGHT, MIDDLE), 1.3),  # faster than alone
        ((LIGHT, MIDDLE), 0.75),  # would exclude all co-locations with this pair
        ((LIGHT, LIGHT, MIDDLE), 1.3),  # faster than in a part
        ((LIGHT, LIGHT, MIDDLE), 0.8),  # slower than the parts lead to expect
    ],
)
def test_a_first_run_that_is_absurd_is_replaced_by_its_repeat(co_location: CoLocation, by: float) -> None:
    """The two repeats do not count, one of them is kept in place of the run."""
    runs, confirmed = runs_on(CrowdTestbed(factor=off(tuple(one.nf for one in co_location), by)))
    for level in [*PARTS, *([[co_location]] if len(co_location) > 2 else [])]:
        runs.measure(level)
    assert 1000 - runs.left == len({*PARTS[0], *PARTS[1], co_location}) and confirmed.outliers == 1
    assert runs.count(co_location) == 1
    truth = [1.14 if one.nf == "light" else 1.04 for one in co_location] if len(co_location) > 2 else [1.12, 1.02]
    assert runs.throughputs(co_location)[0] == pytest.approx(1000 / np.array(truth), rel=0.01)


def test_a_first_run_that_its_repeat_confirms_stays() -> None:
    """A pair that loses much does so again: one repeat, none counted, none kept."""
    testbed = CrowdTestbed()
    runs, confirmed = runs_on(testbed)
    runs.measure([(HEAVY,), (LIGHT,)])
    runs.measure([(HEAVY, HEAVY)])
    assert runs.count((HEAVY, HEAVY)) == 1 and confirmed.outliers == 0
    assert testbed.requests.count((HEAVY, HEAVY)) == 2


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_a_repeat_that_disagrees_is_decided_by_another(wrong: int) -> None:
    """Whichever run of an NF alone is wrong, the kept ones agree, and as many are kept as were counted."""
    runs, confirmed = runs_on(CrowdTestbed(factor=off(("light",), 0.7, wrong)))
    for _ in range(5):
        runs.measure([(LIGHT,)])
    assert runs.count((LIGHT,)) == 5 and runs.left == 995
    assert abs(runs.throughputs((LIGHT,)) / 1000 - 1).max() < 0.05 and confirmed.outliers == 1


def test_no_more_runs_than_allowed_are_made() -> None:
    """The first ones of a request are run."""
    testbed = CrowdTestbed()
    runs, _ = runs_on(testbed, most=3)
    runs.measure([*PARTS[0], *PARTS[1]])
    assert testbed.requests == [*PARTS[0], PARTS[1][0]] and runs.left == 0


def test_every_run_has_noise_of_its_own() -> None:
    """Each repeat has another seed."""
    runs, _ = runs_on(CrowdTestbed())
    for _ in range(4):
        runs.measure([(LIGHT, MIDDLE)])
    assert len(set(runs.throughputs((LIGHT, MIDDLE))[:, 0])) == 4


ALL: list[CoLocation] = [(HEAVY, LIGHT), (HEAVY, MIDDLE), (LIGHT, LIGHT), (LIGHT, MIDDLE)]


class Failing(CrowdTestbed):
    """It fails with `error` whenever these NFs run together."""

    victims: tuple[str, ...] = ()
    error: type[TestbedError] = TestbedError

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if names(loads) == self.victims:
            raise self.error("testbed reports a throughput of 0 kpps")
        return super().run(loads, noise=noise, seed=seed)


def working(testbed: Testbed) -> list[CoLocation]:
    """The co-locations that work."""
    return [one for one, _ in WorkingRuns(testbed, LIGHT, lambda _: None).run(ALL, 0)]


@pytest.mark.parametrize("victim", ALL)
def test_what_always_fails_is_left_out(victim: CoLocation) -> None:
    """Also the last one; what is known to run is run to see whether the testbed still works."""
    testbed = Failing()
    testbed.victims = names(victim)
    assert working(testbed) == [one for one in ALL if one != victim] and testbed.requests.count((LIGHT,)) == 1


def test_what_is_refused_is_left_out() -> None:
    """A testbed that answers works, so nothing else is run."""
    testbed = CrowdTestbed(refuses=lambda nfs: "heavy" in nfs)
    assert working(testbed) == ALL[2:] and (LIGHT,) not in testbed.requests


@pytest.mark.parametrize("runs", range(len(ALL)))
def test_a_testbed_that_ends_is_an_error(runs: int) -> None:
    """Also before the last co-location, where only one fails."""
    with pytest.raises(TestbedError, match="crowd is broken"):
        working(CrowdTestbed(fails_after=runs))


def test_a_testbed_that_changed_is_an_error() -> None:
    """Halving would run the others on another testbed, or on one that drifted too far."""
    testbed = Failing()
    testbed.victims, testbed.error = names(ALL[0]), TestbedChanged
    with pytest.raises(TestbedChanged):
        working(testbed)


def test_an_nf_that_fills_the_nic_has_no_co_locations() -> None:
    """Where no other NF fits, none is drawn."""
    described = SimulatedTestbed().describe()
    lonely = NfDescription(name="lonely", cores=7, accelerators=())
    assert draw_co_locations(described, lonely, 5, np.random.default_rng(0)) == []


class AlteredCard(SimulatedTestbed):
    """The simulated card, which fails with `error` where an NF of `victims` runs; the first runs are off by 30 %."""

    victims: tuple[str, ...] = ()
    error: TestbedError = RunRefused("ACL runs alone")
    first_is_off = False

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[Run]:
        if any(isinstance(load, Workload) and load.nf in self.victims for one in co_locations for load in one):
            raise self.error
        first, *others = super().run_many(co_locations, noise=noise, seed=seed)
        if self.first_is_off and seed == 0:
            off = [replace(one, throughput_kpps=0.7 * one.throughput_kpps) for one in first.measurements]
            first = Run(tuple(off), first.elapsed_s)
        return [first, *others]


def runs_of_nat(testbed: Testbed, say: Callable[[str], None] = print) -> tuple[NfRuns, ConfirmedTestbed]:
    """No runs yet of NAT on the card."""
    confirmed, memory = ConfirmedTestbed(testbed, testbed), MemoryContention([], 6, np.random.default_rng(0))
    nat = testbed.describe().nf("NAT")
    return NfRuns(confirmed, nat, memory, quota=0, seed=0, done=lambda _: None, notify=say), confirmed


def drawn_with_nat(count: int, seed: int = 0) -> list[CoLocation]:
    described = SimulatedTestbed().describe()
    return draw_co_locations(described, described.nf("NAT"), count, np.random.default_rng(seed))


def test_a_third_run_decides_where_two_runs_of_a_co_location_disagree() -> None:
    """One of two runs is off by 30 %: the third agrees with the other, and those two are kept."""
    testbed = AlteredCard()
    testbed.first_is_off = True
    runs, confirmed = runs_of_nat(testbed)
    co_locations = drawn_with_nat(3)
    runs.measure_co_locations(co_locations)
    assert confirmed.outliers == 1 and len(runs.co_locations) == 6
    truth = testbed.run_many(co_locations, noise=False)
    for (_, run), true in zip(runs.co_locations, np.repeat(np.array(truth, dtype=object), 2), strict=True):
        measured, expected = ([one.throughput_kpps for one in each.measurements] for each in (run, true))
        assert measured == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("error", "count", "seed"),
    [
        (RunRefused("ACL runs alone"), 30, 0),
        (TestbedError("testbed reports a throughput of 0 kpps"), 12, 3),  # never three with ACL after one another
    ],
)
def test_co_locations_that_do_not_run_are_left_out(error: TestbedError, count: int, seed: int) -> None:
    """The others are run twice, and a message has their number; profiling ends where several fail one after another."""
    testbed, messages = AlteredCard(), list[str]()
    testbed.victims, testbed.error = ("ACL",), error
    runs, _ = runs_of_nat(testbed, messages.append)
    co_locations = drawn_with_nat(count, seed)
    running = [co_location for co_location in co_locations if all(one.nf != "ACL" for one in co_location)]
    runs.measure_co_locations(co_locations)
    assert [co_location for co_location, _ in runs.co_locations] == [one for one in running for _ in range(2)]
    failed = count - len(running)
    assert messages == [f"NAT: {failed} of {count} co-locations do not run here; left out"] and failed
    if not isinstance(error, RunRefused):
        testbed.victims = ("NAT",)
        with pytest.raises(TestbedError, match="throughput of 0"):
            runs.measure_co_locations(co_locations)


ALL_TOGETHER = tuple(LOADS)


def measured(testbed: CrowdTestbed, targets: tuple[str, ...] = ALL_TOGETHER, most: int = 400) -> CoLocationRuns:
    """The deciding co-locations of a testbed without journal."""
    return measure_deciding(ConfirmedTestbed(testbed, testbed), targets, most)


def counted(runs: CoLocationRuns) -> Counter[tuple[str, ...]]:
    """How often each co-location was run."""
    return Counter(names(co_location) for co_location, _ in runs.all())


def kept(nfs: tuple[str, ...]) -> float:
    """The share that the slowest NF keeps on the testbed, without noise."""
    total = sum(LOADS[one] for one in nfs)
    return min(1 / (1 + total - LOADS[one]) for one in nfs)


def test_a_co_location_is_run_where_all_its_parts_keep_enough() -> None:
    """Each that fits the cores, with the same NF several times, too, and no other."""
    found = counted(measured(CrowdTestbed()))
    for nfs in found:
        parts = [nfs[:at] + nfs[at + 1 :] for at in range(len(nfs))]
        assert all(kept(part) >= KEPT_SHARE for part in parts if part)
    level: list[tuple[str, ...]] = [(one,) for one in sorted(LOADS)]
    while level:
        assert set(level) <= set(found)
        larger = {tuple(sorted((*nfs, one))) for nfs in level for one in LOADS if kept(nfs) >= KEPT_SHARE}
        whole = {nfs for nfs in larger if all(kept(nfs[:at] + nfs[at + 1 :]) >= KEPT_SHARE for at in range(len(nfs)))}
        level = [nfs for nfs in whole if len(nfs) <= 4]
    assert max(map(len, found)) == 4 and ("light",) * 4 in found
    assert ("heavy", "heavy") in found and ("heavy", "heavy", "light") not in found


@pytest.mark.parametrize(("noise", "runs"), [(0.001, SOLO_RUNS[0]), (0.05, SOLO_RUNS[1])])
def test_an_nf_alone_is_repeated_until_its_throughput_is_known(noise: float, runs: int) -> None:
    """A steady testbed needs few solo runs, a noisy one the most."""
    found = counted(measured(CrowdTestbed(noise=noise), most=4 * SOLO_RUNS[1] * len(ALL_TOGETHER)))
    assert {found[(one,)] for one in LOADS} == {runs}


def test_runs_that_are_left_repeat_the_co_locations_that_slas_may_allow() -> None:
    """Those in which the slowest NF keeps 0.75 to 0.97, more often where more SLAs allow them; others once."""
    runs = measured(CrowdTestbed(), most=150)
    assert runs.left == 0
    found = counted(runs)
    low, high = DECIDING_BAND
    far = [times for nfs, times in found.items() if len(nfs) > 1 and not low - 0.01 < kept(nfs) < high + 0.01]
    assert set(far) == {1}
    assert found["light", "middle"] > found["middle", "middle"] > found["middle", "middle", "middle"] > 1


def test_the_most_promising_are_run_where_not_all_can_be() -> None:
    """Of three NFs, those of light ones come first."""
    whole = counted(measured(CrowdTestbed()))
    alone, pairs = 3, 6
    threes = {nfs for nfs in counted(measured(CrowdTestbed(), most=alone + pairs + 2)) if len(nfs) == 3}
    left_out = {nfs for nfs in whole if len(nfs) == 3} - threes
    assert len(threes) == len(left_out) == 2 and min(map(kept, threes)) >= max(map(kept, left_out))


def test_only_co_locations_with_a_profiled_nf_are_run() -> None:
    """The others are run alone, a few times."""
    found = counted(measured(CrowdTestbed(), targets=("middle",)))
    assert all("middle" in nfs for nfs in found if len(nfs) > 1) and ("light", "light", "middle") in found
    assert found[("light",)] < SOLO_RUNS[0] <= found[("middle",)]


def test_what_the_testbed_refuses_is_left_out_with_all_that_contains_it() -> None:
    """A message has the number of those refused; no co-location that contains one is requested."""
    messages: list[str] = []
    testbed = CrowdTestbed(refuses=lambda nfs: {"light", "middle"} <= set(nfs))
    runs = measure_deciding(ConfirmedTestbed(testbed, testbed), ALL_TOGETHER, 400, notify=messages.append)
    assert messages == ["1 co-locations at default traffic do not run here; left out"]
    assert not any({"light", "middle"} <= set(nfs) for nfs in counted(runs))
    assert ("light",) * 4 in counted(runs)


def test_a_pool_too_small_for_every_nf_alone_runs_nothing() -> None:
    assert not list(measured(CrowdTestbed(), most=2).all())


def test_the_quota_counts_every_request_once(tmp_path: Path) -> None:
    """Runs of benches aside, NFs and co-locations together take the quota per NF; status counts the same runs."""
    testbed = CrowdTestbed()
    profile(testbed, tmp_path / "p", quota=100)
    benches, *parts = read_status(journal_of(tmp_path / "p")).parts
    assert [part.name for part in parts] == [*ALL_TOGETHER, "co-locations"]
    assert sum(part.recorded for part in parts) <= 100 * len(ALL_TOGETHER)
    assert all(part.planned is not None and part.recorded <= part.planned for part in parts)
    status = read_status(journal_of(tmp_path / "p"))
    assert status.recorded == testbed.runs == benches.recorded + sum(
        part.recorded for part in parts
    ) + status.repeats + status.reference  # fmt: skip


def test_runs_are_in_the_folder_of_their_first_nf(tmp_path: Path) -> None:
    """Numbered on from the random ones, singles included; no run is in two folders."""
    written = read_profile(profile(CrowdTestbed(), tmp_path / "p", quota=100))
    default = written.default_traffic()
    for name, nf in written.nfs.items():
        tables = [table for _, table in nf.co_locations.groupby("run", sort=False)]
        assert nf.co_locations["run"].nunique() == len(tables)
        at_default = [table for table in tables if (table["flows"] == default.flows).all()]
        assert all(table["nf"].min() == name for table in at_default)
        assert any(len(table) == 1 for table in at_default)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A profile of one go, and its runs."""
    testbed, out = CrowdTestbed(), tmp_path_factory.mktemp("whole") / "p"
    profile(testbed, out, quota=100)
    return out, testbed.runs


@pytest.mark.parametrize("left", [1, 120, *(pytest.param(further, marks=pytest.mark.long) for further in (2, 40))])
@pytest.mark.long
def test_a_testbed_that_fails_meanwhile_is_resumed(tmp_path: Path, whole: tuple[Path, int], left: int) -> None:
    """Also at one of the last runs: what is missing is not taken for refused; the result is that of one go."""
    out, runs = whole
    with pytest.raises(TestbedError, match="crowd is broken"):
        profile(CrowdTestbed(fails_after=runs - left), tmp_path / "p", quota=100)
    again = CrowdTestbed()
    profile(again, tmp_path / "p", quota=100)
    assert again.runs == left and bytes_of(tmp_path / "p") == bytes_of(out)
