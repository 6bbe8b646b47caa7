"""Co-locations that decide a placement: level by level, no further than throughput allows."""

from collections import Counter
from pathlib import Path

import pytest

from profiler.deciding import DECIDING_BAND, KEPT_SHARE, SOLO_RUNS, measure_deciding
from profiler.journal.status import read_status
from profiler.profiling import journal_of, profile
from profiler.runs.co_location_runs import CoLocationRuns
from profiler.runs.outliers import ConfirmedTestbed
from profiler.testbed import TestbedError
from profiles.profile import read_profile
from tests.profiler.crowd_testbed import LOADS, CrowdTestbed, names
from tests.profiler.foreign import bytes_of

ALL = tuple(LOADS)


def measured(testbed: CrowdTestbed, targets: tuple[str, ...] = ALL, most: int = 400) -> CoLocationRuns:
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
    found = counted(measured(CrowdTestbed(noise=noise), most=4 * SOLO_RUNS[1] * len(ALL)))
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
    runs = measure_deciding(ConfirmedTestbed(testbed, testbed), ALL, 400, notify=messages.append)
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
    assert [part.name for part in parts] == [*ALL, "co-locations"]
    assert sum(part.recorded for part in parts) <= 100 * len(ALL)
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
def test_a_testbed_that_fails_meanwhile_is_resumed(tmp_path: Path, whole: tuple[Path, int], left: int) -> None:
    """Also at one of the last runs: what is missing is not taken for refused; the result is that of one go."""
    out, runs = whole
    with pytest.raises(TestbedError, match="crowd is broken"):
        profile(CrowdTestbed(fails_after=runs - left), tmp_path / "p", quota=100)
    again = CrowdTestbed()
    profile(again, tmp_path / "p", quota=100)
    assert again.runs == left and bytes_of(tmp_path / "p") == bytes_of(out)
