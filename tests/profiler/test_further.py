"""Further runs on an existing profile, chosen in rounds."""

import shutil
from collections.abc import Set
from pathlib import Path

import pytest

from profiler.further import FURTHER_ROUNDS, profile_further
from profiler.journal.journal import Journal
from profiler.journal.status import as_text, read_status
from profiler.profiling import journal_of, profile
from profiler.testbed import TestbedError
from profiles import CoLocation, InputError, Workload
from profiles.profile import Profile, read_profile
from tests.profiler.crowd_testbed import CrowdTestbed, crowd_description
from tests.profiler.foreign import bytes_of
from tests.profiler.toy_testbed import ToyTestbed

HEAVY, LIGHT, MIDDLE = (Workload(name, crowd_description().traffic) for name in ("heavy", "light", "middle"))
SLOW = Workload("light", crowd_description().traffic.from_mapping({"flows": 50, "packet_size": 64}))


class Chooser:
    """Chooses what it was given, in turn; notes what it saw."""

    def __init__(self, *rounds: list[CoLocation]) -> None:
        self._rounds = iter(rounds)
        self.seen: list[tuple[int, int]] = []
        self.refused: Set[CoLocation] = frozenset()

    def __call__(self, so_far: Profile, most: int, refused: Set[CoLocation]) -> list[CoLocation]:
        self.seen.append((runs_in(so_far), most))
        self.refused = refused
        return next(self._rounds, [])


def runs_in(read: Profile) -> int:
    """Runs of co-locations in a profile."""
    return sum(nf.co_locations["run"].nunique() for nf in read.nfs.values())


def five() -> Chooser:
    """Five rounds with new co-locations and repeats."""
    first: list[CoLocation] = [(LIGHT, SLOW), (MIDDLE, SLOW)]
    return Chooser(first, [(LIGHT, SLOW)] * 2, [(HEAVY, SLOW), (HEAVY, LIGHT)], [(LIGHT,)] * 2, first)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile with its journal."""
    return profile(CrowdTestbed(), tmp_path_factory.mktemp("further") / "p", quota=80)


def copied(made: Path, folder: Path) -> Path:
    """The profile with its journal in another folder."""
    shutil.copytree(made, folder / "p")
    shutil.copy(journal_of(made), journal_of(folder / "p"))
    return folder / "p"


def test_each_round_sees_the_runs_of_those_before(made: Path, tmp_path: Path) -> None:
    """The quota is divided evenly over the rounds; the directory gets every run, and nothing else changes."""
    out, chooser, testbed = copied(made, tmp_path), five(), CrowdTestbed()
    before, files = runs_in(read_profile(out)), bytes_of(out)
    profile_further(testbed, out, chooser, key="k", most=10)
    assert chooser.seen == [(before + 2 * number, 2) for number in range(FURTHER_ROUNDS)]
    assert runs_in(read_profile(out)) == before + 10
    changed = {name for name, content in bytes_of(out).items() if files[name] != content}
    assert changed == {f"{nf}/co-locations.csv" for nf in ("heavy", "light", "middle")}


def test_repeats_have_noise_of_their_own(made: Path, tmp_path: Path) -> None:
    """No run of the journal is taken for a new one, also when further runs are made again."""
    out = copied(made, tmp_path)
    for key in ("a", "b"):
        profile_further(CrowdTestbed(), out, Chooser([(LIGHT, MIDDLE)] * 2), key=key, most=10)
    table = read_profile(out).nfs["light"].co_locations
    alone = [rows for _, rows in table.groupby("run") if rows["nf"].tolist() == ["light", "middle"]]
    kpps = [rows["throughput_kpps"].iloc[0] for rows in alone]
    assert len(set(kpps)) == len(kpps) >= 5


def test_repeats_without_noise_are_kept(made: Path, tmp_path: Path) -> None:
    """Equal runs on a testbed without noise are further runs, for the next round and in the directory."""
    profile(CrowdTestbed(noise=0.0), tmp_path / "exact", quota=80)
    chooser, before = Chooser([(LIGHT, MIDDLE)] * 2, [(LIGHT, MIDDLE)]), runs_in(read_profile(tmp_path / "exact"))
    profile_further(CrowdTestbed(noise=0.0), tmp_path / "exact", chooser, key="k", most=10)
    assert [runs for runs, _ in chooser.seen] == [before, before + 2, before + 3]
    assert runs_in(read_profile(tmp_path / "exact")) == before + 3


@pytest.mark.parametrize("runs", [0, 3, 8, 14])
def test_a_call_that_was_killed_is_resumed(made: Path, tmp_path: Path, runs: int) -> None:
    """The same call makes only the runs that are missing, and ends in the same bytes."""
    (tmp_path / "whole").mkdir()
    whole, undisturbed = copied(made, tmp_path / "whole"), CrowdTestbed()
    profile_further(undisturbed, whole, five(), key="k", most=10)
    out, again = copied(made, tmp_path), CrowdTestbed()
    with pytest.raises(TestbedError, match="crowd is broken"):
        profile_further(CrowdTestbed(fails_after=runs), out, five(), key="k", most=10)
    assert bytes_of(out) == bytes_of(made)
    profile_further(again, out, five(), key="k", most=10)
    assert again.runs == undisturbed.runs - runs and bytes_of(out) == bytes_of(whole)


def test_a_kill_before_the_directory_is_written_loses_nothing(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same call writes it without a run."""
    out = copied(made, tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("profiler.further.write_co_locations", killed)
        profile_further(CrowdTestbed(), out, five(), key="k", most=10)
    testbed = CrowdTestbed()
    profile_further(testbed, out, five(), key="k", most=10)
    assert testbed.runs == 0 and runs_in(read_profile(out)) == runs_in(read_profile(made)) + 10


def test_a_later_profiling_keeps_further_runs(made: Path, tmp_path: Path) -> None:
    """The same profiling as before writes the directory again, with them."""
    out = copied(made, tmp_path)
    profile_further(CrowdTestbed(), out, five(), key="k", most=10)
    after = runs_in(read_profile(out))
    profile(CrowdTestbed(), out, quota=80)
    assert runs_in(read_profile(out)) == after


def test_what_is_refused_is_left_out(made: Path, tmp_path: Path) -> None:
    """The next round gets them, and a message has their number."""
    out, chooser, messages = copied(made, tmp_path), five(), list[str]()
    testbed = CrowdTestbed(refuses=lambda nfs: nfs == ("light", "middle"))
    chooser = Chooser([(LIGHT, MIDDLE), (LIGHT, SLOW)], [(LIGHT, SLOW)])
    profile_further(testbed, out, chooser, key="k", most=10, notify=messages.append)
    assert chooser.refused == {(LIGHT, MIDDLE)} and messages == ["1 co-locations do not run here; left out"]


def test_a_run_that_contradicts_the_earlier_ones_is_replaced(made: Path, tmp_path: Path) -> None:
    """Those that the profile holds decide, too."""
    out = copied(made, tmp_path)
    testbed = CrowdTestbed(factor=lambda nfs, run: 0.6 if nfs == ("light", "middle") and not run else 1.0)
    profile_further(testbed, out, Chooser([(LIGHT, MIDDLE)]), key="k", most=10)
    with Journal(journal_of(out)) as journal:
        ((_, kpps),) = journal.kept()
    assert kpps[0] == pytest.approx(1000 / 1.12, rel=0.02)


def test_status_shows_the_further_runs(made: Path, tmp_path: Path) -> None:
    """A part of their own, with their number."""
    out = copied(made, tmp_path)
    profile_further(CrowdTestbed(), out, five(), key="k", most=10)
    status = read_status(journal_of(out))
    assert (status.parts[-1].name, status.parts[-1].recorded, status.parts[-1].done) == ("for arrivals 1", 10, True)
    assert as_text(status).endswith("left: nothing\n")


def test_a_profile_without_journal_gets_one(made: Path, tmp_path: Path) -> None:
    """A copied directory is enough."""
    shutil.copytree(made, tmp_path / "p")
    profile_further(CrowdTestbed(), tmp_path / "p", five(), key="k", most=10)
    assert runs_in(read_profile(tmp_path / "p")) == runs_in(read_profile(made)) + 10


def test_what_does_not_fit_is_refused(made: Path, tmp_path: Path) -> None:
    """A quota without a run for each round, a missing profile, and another testbed's."""
    with pytest.raises(InputError, match="--quota: 9 runs are too few\nhint: 5 rounds need at least 10"):
        profile_further(CrowdTestbed(), made, five(), key="k", most=9)
    with pytest.raises(InputError, match="is not a profile directory"):
        profile_further(CrowdTestbed(), tmp_path / "nothing", five(), key="k", most=10)
    with pytest.raises(InputError, match=r"--testbed: is toy, .* is a profile of crowd"):
        profile_further(ToyTestbed(), made, five(), key="k", most=10)
