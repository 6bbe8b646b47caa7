"""Profiling from describe to the profile directory."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from profiler.co_runs import draw_co_locations
from profiler.memory_contention import MemoryContention
from profiler.nf_runs import NfRuns
from profiler.outliers import ConfirmedTestbed
from profiler.profiling import journal_of, profile
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Run, RunRefused, TestbedError
from profiler.testbeds import open_testbed
from profiles import COUNTERS, InputError, Load, NfDescription, Workload
from profiles.profile import COUNTER_COLUMNS, THROUGHPUT, TRAFFIC_COLUMNS, NfProfile, Profile, read_profile
from tests.profiler.foreign import FOREIGN
from tests.profiler.toy_testbed import ToyTestbed, description


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Two NFs of the simulated card, one with two accelerators."""
    out = tmp_path_factory.mktemp("simulated") / "profile"
    return read_profile(profile(SimulatedTestbed(), out, nfs=["IPCompGateway", "FlowStats"], quota=160))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """All NFs of the foreign card."""
    out = tmp_path_factory.mktemp("foreign") / "profile"
    with open_testbed(f"exec:{FOREIGN}") as testbed:
        return read_profile(profile(testbed, out, quota=120))


def test_a_profile_holds_the_requested_nfs(simulated: Profile) -> None:
    """The directory can be read: description, benches, and each NF with the files that it needs."""
    assert simulated.testbed == SimulatedTestbed().describe()
    assert list(simulated.nfs) == ["FlowStats", "IPCompGateway"]
    gateway = simulated.nfs["IPCompGateway"]
    assert sorted(gateway.accelerators) == ["compression", "regex"]
    assert len(gateway.pattern) and not len(simulated.nfs["FlowStats"].pattern)
    assert not list(simulated.source.parent.glob(".*"))


def test_an_nf_has_as_many_runs_as_its_quota(simulated: Profile, foreign: Profile) -> None:
    """Three of them are the same solo run; the number of accelerators does not change the total."""
    assert {_runs(nf) for nf in simulated.nfs.values()} <= {158, 156}
    assert {_runs(nf) for nf in foreign.nfs.values()} <= {118, 116}


def test_co_locations_of_nfs_are_run_twice(simulated: Profile) -> None:
    """A seventh of the quota is for co-locations that fit the NIC, the NF first, a third of them at default traffic."""
    cores = {nf.name: nf.cores for nf in SimulatedTestbed().describe().nfs}
    default = SimulatedTestbed().describe().traffic
    for name, nf in simulated.nfs.items():
        runs = [table for _, table in nf.co_locations.groupby("run", sort=False)]
        assert len(runs) == 2 * (int(160 * 0.15) // 2)
        at_default = 0
        for first, again in zip(runs[::2], runs[1::2], strict=True):
            assert first.iloc[0]["nf"] == name
            assert len(first) >= 2 and sum(cores[member] for member in first["nf"]) <= 8
            same = ["nf", "flows", "packet_size", "mtbr"]
            assert first[same].to_numpy().tolist() == again[same].to_numpy().tolist()
            ratio = first["throughput_kpps"].to_numpy() / again["throughput_kpps"].to_numpy()
            assert (abs(ratio - 1) < 0.1).all() and (ratio != 1).all()
            at_default += all(tuple(row) == default.as_tuple() for row in first[same[1:]].to_numpy().tolist())
        assert at_default == len(runs) / 2 / 3


def test_an_nf_that_fills_the_nic_has_no_co_locations() -> None:
    """Where no other NF fits, none is drawn."""
    described = SimulatedTestbed().describe()
    lonely = NfDescription(name="lonely", cores=7, accelerators=())
    assert draw_co_locations(described, lonely, 5, np.random.default_rng(0)) == []


def test_a_third_run_decides_where_two_runs_of_a_co_location_disagree() -> None:
    """One of two runs is off by 30 %: the third agrees with the other, and those two are kept."""

    class FirstOff(SimulatedTestbed):
        def run_many(
            self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
        ) -> list[Run]:
            runs = super().run_many(co_locations, noise=noise, seed=seed)
            if seed != 0:
                return runs
            off = [replace(one, throughput_kpps=0.7 * one.throughput_kpps) for one in runs[0].measurements]
            return [Run(tuple(off), runs[0].elapsed_s), *runs[1:]]

    testbed = FirstOff()
    confirmed = ConfirmedTestbed(testbed, testbed)
    nat = testbed.describe().nf("NAT")
    runs = NfRuns(
        confirmed, nat, MemoryContention([], 6, np.random.default_rng(0)), quota=0, seed=0, done=lambda _: None
    )
    co_locations = draw_co_locations(testbed.describe(), nat, 3, np.random.default_rng(0))
    runs.measure_co_locations(co_locations)
    assert confirmed.outliers == 1 and len(runs.co_locations) == 6
    truth = testbed.run_many(co_locations, noise=False)
    for (_, run), true in zip(runs.co_locations, np.repeat(np.array(truth, dtype=object), 2), strict=True):
        measured, expected = ([one.throughput_kpps for one in each.measurements] for each in (run, true))
        assert measured == pytest.approx(expected, rel=0.05)


def test_co_locations_that_the_testbed_refuses_are_left_out() -> None:
    """The others are run twice, and a message has the number of those refused."""

    class RefusesAcl(SimulatedTestbed):
        def run_many(
            self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
        ) -> list[Run]:
            if any(
                isinstance(load, Workload) and load.nf == "ACL" for co_location in co_locations for load in co_location
            ):
                raise RunRefused("ACL runs alone")
            return super().run_many(co_locations, noise=noise, seed=seed)

    testbed, messages = RefusesAcl(), list[str]()
    nat = testbed.describe().nf("NAT")
    memory = MemoryContention([], 6, np.random.default_rng(0))
    confirmed = ConfirmedTestbed(testbed, testbed)
    runs = NfRuns(confirmed, nat, memory, quota=0, seed=0, done=lambda _: None, notify=messages.append)
    co_locations = draw_co_locations(testbed.describe(), nat, 30, np.random.default_rng(0))
    accepted = [co_location for co_location in co_locations if all(one.nf != "ACL" for one in co_location)]
    runs.measure_co_locations(co_locations)
    assert [co_location for co_location, _ in runs.co_locations] == [
        co_location for co_location in accepted for _ in range(2)
    ]
    refused = len(co_locations) - len(accepted)
    assert messages == [f"NAT: {refused} of 30 co-locations do not run here; left out"] and refused


def test_a_co_location_that_always_fails_is_left_out() -> None:
    """Where several fail one after another, profiling ends."""

    class Failing(SimulatedTestbed):
        victims: tuple[str, ...] = ()

        def run_many(
            self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
        ) -> list[Run]:
            if any(isinstance(load, Workload) and load.nf in self.victims for one in co_locations for load in one):
                raise TestbedError("testbed reports a throughput of 0 kpps")
            return super().run_many(co_locations, noise=noise, seed=seed)

    testbed, messages = Failing(), list[str]()
    described = testbed.describe()
    runs = NfRuns(
        ConfirmedTestbed(testbed, testbed), described.nf("NAT"), MemoryContention([], 6, np.random.default_rng(0)),
        quota=0, seed=0, done=lambda _: None, notify=messages.append,
    )  # fmt: skip
    co_locations = draw_co_locations(described, described.nf("NAT"), 12, np.random.default_rng(3))
    failing = [any(one.nf == "ACL" for one in co_location) for co_location in co_locations]
    assert any(failing) and not any(all(failing[at : at + 3]) for at in range(len(failing)))
    testbed.victims = ("ACL",)
    runs.measure_co_locations(co_locations)
    assert len(runs.co_locations) == 2 * (len(co_locations) - sum(failing))
    assert messages == [f"NAT: {sum(failing)} of 12 co-locations do not run here; left out"]
    testbed.victims = ("NAT",)
    with pytest.raises(TestbedError, match="throughput of 0"):
        runs.measure_co_locations(co_locations)


def test_accelerators_need_few_runs(simulated: Profile, foreign: Profile) -> None:
    """Fewer than ten co-runs per accelerator, at two service demands or more, and light competitors among them."""
    for nf in [*simulated.nfs.values(), *foreign.nfs.values()]:
        for table in nf.accelerators.values():
            assert 6 <= len(table) < 10
            saturating = table[table.competitor_kpps.isna()]
            assert saturating.competitor_service_ms.nunique() >= 2
            assert table.competitor_kpps.notna().sum() >= 2


def test_light_competitors_offer_less_than_the_accelerator_carries(foreign: Profile) -> None:
    """The offered rate of a light competitor times its service time is a share of the accelerator's time."""
    table = foreign.nfs["tls-proxy"].accelerators["crypto"]
    light = table[table.competitor_kpps.notna()]
    share = light.competitor_kpps * light.competitor_service_ms
    assert ((share > 0.1) & (share < 0.6)).all()


def test_service_time_is_the_inverse_of_throughput(foreign: Profile) -> None:
    """A saturating accelerator bench takes 1 / throughput per request; memory benches take no time."""
    crypto = foreign.benches[foreign.benches.bench == "crypto-bench"]
    flat_out = crypto[crypto.rate_kpps == 0]
    assert np.allclose(flat_out.crypto_service_ms * flat_out.throughput_kpps, 1)
    assert flat_out.crypto_service_ms.max() > 3 * flat_out.crypto_service_ms.min()
    assert foreign.benches[foreign.benches.bench == "mem-bench"].crypto_service_ms.isna().all()


def test_memory_of_accelerator_nfs_is_measured_with_the_least_matches(simulated: Profile) -> None:
    """Every memory row of an NF that uses an accelerator has no matches; its solo rows span the whole range."""
    gateway = simulated.nfs["IPCompGateway"]
    assert (gateway.memory.mtbr == 0).all()
    assert gateway.solo.mtbr.min() == 0 and gateway.solo.mtbr.max() == 1100


def test_memory_contention_has_both_extremes_and_exceeds_that_of_nfs(simulated: Profile) -> None:
    """No bench, and six at their maximum; summed counters exceed those of three NFs, and fall below those of one."""
    memory = simulated.nfs["FlowStats"].memory
    alone = (memory[list(COUNTERS)] == 0).all(axis=1)
    assert 0 < alone.sum() < len(memory) / 2
    hardest = max(memory.wss)
    assert hardest > 6 * 20
    for name in ("l2crd", "l2cwr", "wss"):
        solo = np.median(simulated.nfs["FlowStats"].solo[name])
        assert memory[name].max() > 3 * solo
        assert memory[name][~alone].min() < solo


def test_a_testbed_unlike_ours_is_profiled_completely(foreign: Profile) -> None:
    """No mtbr, another accelerator, NFs of one to three cores, benches with other parameters."""
    assert set(foreign.nfs) == {"edge-firewall", "load-balancer", "packet-sampler", "tls-proxy", "vpn-gateway"}
    assert "write_share" in foreign.benches and "key_rounds" in foreign.benches
    for nf in foreign.nfs.values():
        assert (nf.memory.mtbr == 0).all()
        assert nf.memory.flows.between(10, 100000).all() and nf.memory.packet_size.between(128, 9000).all()
    assert len(foreign.nfs["vpn-gateway"].pattern) and not len(foreign.nfs["load-balancer"].pattern)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two profilings with one seed agree in every byte of every file; another seed differs."""
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        profile(SimulatedTestbed(), tmp_path / name, nfs=["NIDS"], quota=80, seed=seed)
    assert _bytes(tmp_path / "a") == _bytes(tmp_path / "b")
    assert _bytes(tmp_path / "a") != _bytes(tmp_path / "c")


def test_an_nf_is_profiled_the_same_alone_and_among_others(tmp_path: Path) -> None:
    """The measurements of an NF do not depend on which others are profiled with it."""
    profile(SimulatedTestbed(), tmp_path / "one", nfs=["NAT"], quota=60)
    profile(SimulatedTestbed(), tmp_path / "two", nfs=["ACL", "NAT"], quota=60)
    assert _bytes(tmp_path / "one" / "NAT") == _bytes(tmp_path / "two" / "NAT")


@pytest.mark.parametrize("after", [1, 40, 100])
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
    assert _bytes(tmp_path / "broken") == _bytes(tmp_path / "whole")


def test_a_killed_profiling_is_resumed(tmp_path: Path) -> None:
    """After kill -9, the same command ends in the same bytes as an undisturbed run."""
    command = (
        "import sys; from pathlib import Path; from profiler.profiling import profile; "
        "from profiler.testbeds import open_testbed; "
        "profile(open_testbed(sys.argv[1]), Path(sys.argv[2]), nfs=['tls-proxy'], quota=150)"
    )
    spec = f"exec:{FOREIGN}"
    for wait in (0.1, 0.3):
        process = subprocess.Popen([sys.executable, "-c", command, spec, tmp_path / "killed"], start_new_session=True)
        while not journal_of(tmp_path / "killed").exists():
            time.sleep(0.01)
        time.sleep(wait)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for name in ("killed", "whole"):
        with open_testbed(spec) as testbed:
            profile(testbed, tmp_path / name, nfs=["tls-proxy"], quota=150)
    assert _bytes(tmp_path / "killed") == _bytes(tmp_path / "whole")


def test_a_second_call_measures_nothing(tmp_path: Path) -> None:
    """When all is measured, the same call only writes the same directory again."""
    profile(ToyTestbed(), tmp_path / "p", quota=60)
    before = _bytes(tmp_path / "p")
    profile(ToyTestbed(fails_after=0), tmp_path / "p", quota=60)
    assert _bytes(tmp_path / "p") == before


TWO_NFS = description(nfs=[{"name": "counter", "cores": 2}, {"name": "other", "cores": 1}])
USERS_FILES = (
    "NOTES.md",
    "counter/co-runs.csv",
    "counter/memory-of-last-year.csv",
    "counter/raw/1/log",
    "figures/a.svg",
)


def test_a_second_profiling_keeps_the_files_of_the_user(tmp_path: Path) -> None:
    """NFs profiled earlier, notes, hand-written measurements and nested folders stay as they are."""
    testbed, out = ToyTestbed(TWO_NFS), tmp_path / "p"
    profile(testbed, out, nfs=["counter"], quota=60)
    _write_users_files(out)
    profile(testbed, out, nfs=["other"], quota=60)
    profile(testbed, out, nfs=["counter"], quota=70)
    assert {name: (out / name).read_text() for name in USERS_FILES} == dict.fromkeys(USERS_FILES, "mine\n")
    assert (out / "other" / "memory.csv").exists()


@pytest.mark.parametrize("renames", [0, 1, 3, 5])
def test_a_kill_while_a_profile_is_written_again_loses_nothing(tmp_path: Path, renames: int) -> None:
    """Each file is the old or the new one, the user's files stay, and the same command completes the profile."""
    out = tmp_path / "p"
    profile(ToyTestbed(TWO_NFS), out, nfs=["counter"], quota=60)
    profile(ToyTestbed(TWO_NFS), tmp_path / "whole", nfs=["counter"], quota=70)
    _write_users_files(out)
    before, after = _bytes(out), _bytes(tmp_path / "whole")
    process = multiprocessing.get_context("fork").Process(target=_profile_and_be_killed, args=(out, renames))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    between = {name: content for name, content in _bytes(out).items() if not name.startswith(".")}
    assert between.keys() == before.keys()
    assert all(content in (before[name], after.get(name)) for name, content in between.items())
    profile(ToyTestbed(TWO_NFS), out, nfs=["counter"], quota=70)
    assert _bytes(out) == after | dict.fromkeys(USERS_FILES, b"mine\n")


def test_tables_of_an_earlier_description_are_removed(tmp_path: Path) -> None:
    """A table that this profile no longer has, also under its former name, would be read as a measurement of it."""
    accelerated = NfDescription(name="NF", cores=1, accelerators=("crypto",))
    rows = pd.DataFrame([[1.0, 64.0, 0.0, *range(7), 5.0]], columns=[*TRAFFIC_COLUMNS, *COUNTER_COLUMNS, THROUGHPUT])
    earlier = NfProfile("NF", accelerated, rows, rows, {"crypto": rows}, pattern=rows)
    earlier.write(tmp_path / "NF")
    (tmp_path / "NF" / "companies.csv").write_text("former name")
    NfProfile("NF", NfDescription(name="NF", cores=1), rows, rows).write(tmp_path / "NF")
    assert sorted(path.name for path in (tmp_path / "NF").iterdir()) == ["memory.csv", "nf.json", "solo.csv"]


def test_a_disk_that_is_full_at_the_end_leaves_the_old_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured stays in the journal: the same call writes the profile without a run."""
    profile(ToyTestbed(), tmp_path / "p", quota=60)
    before = _bytes(tmp_path / "p")

    def full(table: pd.DataFrame, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("profiles.profile.write_table", full)
        with pytest.raises(OSError, match="No space left"):
            profile(ToyTestbed(), tmp_path / "p", quota=70)
    assert _bytes(tmp_path / "p") == before
    profile(ToyTestbed(fails_after=0), tmp_path / "p", quota=70)
    assert _bytes(tmp_path / "p") != before


def test_a_disk_that_is_full_while_profiling_is_one_line(tmp_path: Path) -> None:
    """The command ends with status 1 and writes no profile; with space again, it resumes to the same bytes."""
    arguments = ["--testbed", "simulated", "--nf", "ACL", "--quota", "60", "--quiet", "--out"]
    command = [sys.executable, "-c", "from placer.cli import main; main()", "profile", *arguments]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    failed = subprocess.run([*command, tmp_path / "p"], preexec_fn=limited, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert re.fullmatch(
        r"error: journal .*p\.journal\.sqlite: (database or disk is full|disk I/O error)\n", failed.stderr
    )
    assert not (tmp_path / "p").exists()
    for name in ("p", "whole"):
        profile(SimulatedTestbed(), tmp_path / name, nfs=["ACL"], quota=60)
    assert _bytes(tmp_path / "p") == _bytes(tmp_path / "whole")


def test_an_nf_that_needs_more_cores_than_the_nic_has_is_left_out(tmp_path: Path) -> None:
    """With a message; requested by name it is refused. No run has it as a neighbour."""
    toy = ToyTestbed(description(nfs=[{"name": "huge", "cores": 7}, {"name": "counter", "cores": 2}]))
    messages: list[str] = []
    written = read_profile(profile(toy, tmp_path / "p", quota=60, notify=messages.append))
    assert list(written.nfs) == ["counter"]
    assert messages == ["huge needs 7 cores, the NIC has 6: left out"]
    assert not any(isinstance(load, Workload) and load.nf == "huge" for loads in toy.requests for load in loads)
    with pytest.raises(InputError, match="--nf: huge needs 7 cores, the NIC has 6"):
        profile(toy, tmp_path / "q", nfs=["huge"], quota=60)


@pytest.mark.parametrize(
    ("nfs", "message"),
    [
        ([], "--testbed: toy has no NFs, so there is nothing to profile"),
        ([{"name": "huge", "cores": 7}], "--testbed: huge needs 7 cores, the NIC has 6"),
    ],
)
def test_a_testbed_without_an_nf_that_fits_is_refused(
    tmp_path: Path, nfs: list[dict[str, object]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        profile(ToyTestbed(description(nfs=nfs)), tmp_path / "p", quota=60)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "changes",
    [
        {"benches": []},  # no contention
        {"nfs": [{"name": "counter", "cores": 6}]},  # an NF that fills the NIC
        {
            "benches": [{"name": "mem-bench", "cores": 4, "parameters": {"access_mops": (1, 100)}}]
        },  # a bench that fits once
        {
            "benches": [{"name": "mem-bench", "cores": 9, "parameters": {"access_mops": (1, 100)}}]
        },  # a bench that does not fit the NIC
        {"benches": [{"name": "mem-bench", "cores": 1}]},  # a bench without parameters
        {"attributes": {}},  # traffic that cannot vary
        {
            "attributes": {"flows": (5, 5), "packet_size": (64.2, 64.8)},
            "default_traffic": {"flows": 5, "packet_size": 64.5},
        },  # ranges without a whole number
        {"nfs": [{"name": "counter", "cores": 2, "accelerators": ["gpu"]}]},  # an accelerator without a bench
    ],
)
def test_a_testbed_without_some_features_is_profiled(tmp_path: Path, changes: dict[str, object]) -> None:
    """Missing features are left out; the others are measured inside their ranges."""
    testbed = ToyTestbed(description(**changes))
    written = read_profile(profile(testbed, tmp_path / "p", quota=60))
    nf = written.nfs["counter"]
    assert len(nf.solo) and len(nf.memory)
    for name, (low, high) in testbed.described.attributes.items():
        assert nf.solo[name].between(low, high).all() and nf.memory[name].between(low, high).all()
    assert set(nf.accelerators) == set(nf.uses)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nfs": ["NAT"]}, "--nf: the testbed has no NAT\nhint: one of counter"),  # an NF it does not host
        ({"method": "guess"}, "'guess' is not a profiling method\nhint: one of active, adaptive, full, random"),
        ({"seed": -1}, "--seed: -1 is negative"),  # random generators take none
        ({"quota": 10**9}, "--quota: 1,000,000,000 runs are more than 1,000,000"),  # would take years
        ({"quota": 5}, "--quota: 5 runs are too few for counter\nhint: it needs at least"),  # nothing left to choose
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    """Before anything is written."""
    with pytest.raises(InputError) as raised:
        profile(ToyTestbed(), tmp_path / "p", **arguments)  # type: ignore[arg-type]
    assert message in str(raised.value)
    assert not (tmp_path / "p").exists()


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    """A folder that no profiling wrote stays as it is."""
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="remove it or choose another"):
        profile(ToyTestbed(), tmp_path, quota=60)
    with pytest.raises(InputError, match="is a file"):
        profile(ToyTestbed(), tmp_path / "thesis.tex", quota=60)
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("accelerator", ["solo", "pattern", "memory-2"])
def test_an_accelerator_named_like_another_file_is_refused(tmp_path: Path, accelerator: str) -> None:
    """An accelerator's file must not be taken for another file of the NF."""
    testbed = ToyTestbed(description(nfs=[{"name": "counter", "cores": 1, "accelerators": [accelerator]}]))
    with pytest.raises(TestbedError, match=f"has an accelerator named {accelerator}"):
        profile(testbed, tmp_path / "p", quota=60)


def test_progress_counts_to_the_end(tmp_path: Path) -> None:
    """Progress never decreases and ends when all is done."""
    steps: list[tuple[int, int]] = []
    profile(ToyTestbed(), tmp_path / "p", quota=60, progress=lambda done, total: steps.append((done, total)))
    done = [one for one, _ in steps]
    assert done == sorted(done)
    assert all(one <= total for one, total in steps)
    assert done[-1] >= 60


def _runs(nf: NfProfile) -> int:
    """Number of different runs of an NF; solo runs are in two files."""
    co_locations = len(nf.solo) + len(nf.pattern) + sum(map(len, nf.accelerators.values()))
    in_co_location = nf.co_locations["run"].nunique() if len(nf.co_locations) else 0
    return co_locations + in_co_location + int((nf.memory[list(COUNTERS)] != 0).any(axis=1).sum())


def _bytes(directory: Path) -> dict[str, bytes]:
    files = {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    assert not files.get("nf.json") or json.loads(files["nf.json"])
    return files


def _write_users_files(out: Path) -> None:
    for name in USERS_FILES:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine\n")


def _profile_and_be_killed(out: Path, renames: int) -> None:
    """Profile again, and be killed before the file after `renames` others is replaced."""
    replace, inside = Path.replace, [0]

    def counted(path: Path, place: Path) -> Path:
        if ".unfinished." in str(path) and ".unfinished." not in str(place):
            if inside[0] == renames:
                os.kill(os.getpid(), signal.SIGKILL)
            inside[0] += 1
        return replace(path, place)

    Path.replace = counted  # type: ignore[method-assign,assignment]
    profile(ToyTestbed(TWO_NFS), out, nfs=["counter"], quota=70)
