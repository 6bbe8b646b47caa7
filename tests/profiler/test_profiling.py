"""Profiling from describe to the profile directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
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
from profiles.profile import NfProfile, Profile, read_profile
from tests.profiler.toy_testbed import ToyTestbed, description

FOREIGN = f"{sys.executable} {Path(__file__).parents[1] / 'data' / 'foreign_testbed.py'}"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Two NFs of the simulated card, one with two accelerators."""
    out = tmp_path_factory.mktemp("simulated") / "profile"
    return read_profile(profile(SimulatedTestbed(), out, nfs=["IPCompGateway", "FlowStats"], quota=160))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """All NFs of somebody else's card."""
    out = tmp_path_factory.mktemp("foreign") / "profile"
    with open_testbed(f"exec:{FOREIGN}") as testbed:
        return read_profile(profile(testbed, out, quota=120))


def test_a_profile_can_be_read_and_holds_what_was_asked(simulated: Profile) -> None:
    """The directory is a profile: description, benches, and the NFs asked for with the files that they need."""
    assert simulated.testbed == SimulatedTestbed().describe()
    assert list(simulated.nfs) == ["FlowStats", "IPCompGateway"]
    gateway = simulated.nfs["IPCompGateway"]
    assert sorted(gateway.accelerators) == ["compression", "regex"]
    assert len(gateway.pattern) and not len(simulated.nfs["FlowStats"].pattern)
    assert not list(simulated.source.parent.glob(".profile.*"))


def test_the_quota_is_kept_and_used(simulated: Profile, foreign: Profile) -> None:
    """An NF has as many runs as its quota, three of them the same solo run, whatever its accelerators take."""
    assert {_runs(nf) for nf in simulated.nfs.values()} <= {158, 156}
    assert {_runs(nf) for nf in foreign.nfs.values()} <= {118, 116}


def test_real_companies_are_run_twice(simulated: Profile) -> None:
    """A seventh of the quota goes to companies that fit the NIC, the NF first, a third of them at default traffic."""
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


def test_an_nf_that_leaves_room_for_nobody_has_no_company() -> None:
    """Where no NF fits beside it, none is drawn."""
    described = SimulatedTestbed().describe()
    lonely = NfDescription(name="lonely", cores=7, accelerators=())
    assert draw_co_locations(described, lonely, 5, np.random.default_rng(0)) == []


def test_a_company_that_comes_out_differently_is_run_again() -> None:
    """One of the two runs of a company is off by 30 %: a third run agrees with the other, and those two are kept."""

    class Odd(SimulatedTestbed):
        def run_many(
            self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
        ) -> list[Run]:
            runs = super().run_many(co_locations, noise=noise, seed=seed)
            if seed != 0:
                return runs
            odd = [replace(one, throughput_kpps=0.7 * one.throughput_kpps) for one in runs[0].measurements]
            return [Run(tuple(odd), runs[0].elapsed_s), *runs[1:]]

    testbed = Odd()
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
        told, expected = ([one.throughput_kpps for one in each.measurements] for each in (run, true))
        assert told == pytest.approx(expected, rel=0.05)


def test_nfs_that_do_not_go_together_are_left_out() -> None:
    """A testbed that refuses some companies of NFs: the others are run twice, and how many were refused is told."""

    class Picky(SimulatedTestbed):
        def run_many(
            self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
        ) -> list[Run]:
            if any(
                isinstance(load, Workload) and load.nf == "ACL" for co_location in co_locations for load in co_location
            ):
                raise RunRefused("ACL runs alone")
            return super().run_many(co_locations, noise=noise, seed=seed)

    testbed, said = Picky(), list[str]()
    nat = testbed.describe().nf("NAT")
    memory = MemoryContention([], 6, np.random.default_rng(0))
    confirmed = ConfirmedTestbed(testbed, testbed)
    runs = NfRuns(confirmed, nat, memory, quota=0, seed=0, done=lambda _: None, notify=said.append)
    co_locations = draw_co_locations(testbed.describe(), nat, 30, np.random.default_rng(0))
    served = [co_location for co_location in co_locations if all(one.nf != "ACL" for one in co_location)]
    runs.measure_co_locations(co_locations)
    assert [co_location for co_location, _ in runs.co_locations] == [
        co_location for co_location in served for _ in range(2)
    ]
    refused = len(co_locations) - len(served)
    assert said == [f"NAT: {refused} of 30 co-locations do not run here; left out"] and refused


def test_an_nf_that_starves_in_company_ends_nothing() -> None:
    """A company that fails however often it is tried is left out; where several fail in a row, profiling ends."""

    class Starving(SimulatedTestbed):
        victims: tuple[str, ...] = ()

        def run_many(
            self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
        ) -> list[Run]:
            if any(isinstance(load, Workload) and load.nf in self.victims for one in co_locations for load in one):
                raise TestbedError("testbed reports a throughput of 0 kpps")
            return super().run_many(co_locations, noise=noise, seed=seed)

    testbed, said = Starving(), list[str]()
    described = testbed.describe()
    runs = NfRuns(
        ConfirmedTestbed(testbed, testbed), described.nf("NAT"), MemoryContention([], 6, np.random.default_rng(0)),
        quota=0, seed=0, done=lambda _: None, notify=said.append,
    )  # fmt: skip
    co_locations = draw_co_locations(described, described.nf("NAT"), 12, np.random.default_rng(3))
    hit = [any(one.nf == "ACL" for one in co_location) for co_location in co_locations]
    assert any(hit) and not any(all(hit[at : at + 3]) for at in range(len(hit)))
    testbed.victims = ("ACL",)
    runs.measure_co_locations(co_locations)
    assert len(runs.co_locations) == 2 * (len(co_locations) - sum(hit))
    assert said == [f"NAT: {sum(hit)} of 12 co-locations do not run here; left out"]
    testbed.victims = ("NAT",)
    with pytest.raises(TestbedError, match="throughput of 0"):
        runs.measure_co_locations(co_locations)


def test_accelerators_cost_few_runs(simulated: Profile, foreign: Profile) -> None:
    """Fewer than ten co-runs per accelerator, at two service demands or more, and light competitors among them."""
    for nf in [*simulated.nfs.values(), *foreign.nfs.values()]:
        for table in nf.accelerators.values():
            assert 6 <= len(table) < 10
            saturating = table[table.competitor_kpps.isna()]
            assert saturating.competitor_service_ms.nunique() >= 2
            assert table.competitor_kpps.notna().sum() >= 2


def test_light_competitors_ask_less_than_the_accelerator_carries(foreign: Profile) -> None:
    """The offered rate of a light competitor times its service time is a share of the accelerator's time."""
    table = foreign.nfs["tls-proxy"].accelerators["crypto"]
    light = table[table.competitor_kpps.notna()]
    share = light.competitor_kpps * light.competitor_service_ms
    assert ((share > 0.1) & (share < 0.6)).all()


def test_service_time_is_the_inverse_of_throughput(foreign: Profile) -> None:
    """The bench of an accelerator, going as fast as it can, takes 1 / throughput per request; others take none."""
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


def test_memory_contention_has_both_extremes_and_reaches_beyond_real_company(simulated: Profile) -> None:
    """No bench, and six at their hardest; summed accesses exceed those of three NFs, and also come as small as one."""
    memory = simulated.nfs["FlowStats"].memory
    alone = (memory[list(COUNTERS)] == 0).all(axis=1)
    assert 0 < alone.sum() < len(memory) / 2
    hardest = max(memory.wss)
    assert hardest > 6 * 20
    for name in ("l2crd", "l2cwr", "wss"):
        solo = np.median(simulated.nfs["FlowStats"].solo[name])
        assert memory[name].max() > 3 * solo
        assert memory[name][~alone].min() < solo


def test_nothing_is_assumed_of_a_foreign_testbed(foreign: Profile) -> None:
    """No mtbr, another accelerator, NFs of one to three cores, benches with other parameters: all profiled."""
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
    """What is measured of an NF does not hang on which others are profiled with it."""
    profile(SimulatedTestbed(), tmp_path / "one", nfs=["NAT"], quota=60)
    profile(SimulatedTestbed(), tmp_path / "two", nfs=["ACL", "NAT"], quota=60)
    assert _bytes(tmp_path / "one" / "NAT") == _bytes(tmp_path / "two" / "NAT")


@pytest.mark.parametrize("after", [1, 40, 100])
def test_a_testbed_that_dies_is_resumed(tmp_path: Path, after: int) -> None:
    """What a dying testbed had measured is kept, and the same call ends in the same bytes as an undisturbed one."""
    undisturbed = ToyTestbed()
    profile(undisturbed, tmp_path / "whole", quota=60)
    with pytest.raises(TestbedError):
        profile(ToyTestbed(fails_after=after), tmp_path / "broken", quota=60)
    assert not (tmp_path / "broken").exists()
    second = ToyTestbed()
    profile(second, tmp_path / "broken", quota=60)
    assert len(second.asked) == len(undisturbed.asked) - after
    assert _bytes(tmp_path / "broken") == _bytes(tmp_path / "whole")


def test_a_killed_profiling_is_resumed(tmp_path: Path) -> None:
    """kill -9 in the middle, then the same command: the same bytes as an undisturbed run."""
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


def test_what_was_there_stays(tmp_path: Path) -> None:
    """NFs profiled earlier, and co-runs that people put beside the measurements, survive another profiling."""
    testbed = ToyTestbed(description(nfs=[{"name": "counter", "cores": 2}, {"name": "other", "cores": 1}]))
    profile(testbed, tmp_path / "p", nfs=["counter"], quota=60)
    (tmp_path / "p" / "counter" / "co-runs.csv").write_text("mine\n")
    profile(testbed, tmp_path / "p", nfs=["other"], quota=60)
    profile(testbed, tmp_path / "p", nfs=["counter"], quota=70)
    assert (tmp_path / "p" / "counter" / "co-runs.csv").read_text() == "mine\n"
    assert (tmp_path / "p" / "other" / "memory.csv").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"benches": []},  # nothing to contend with
        {"nfs": [{"name": "counter", "cores": 6}]},  # an NF that fills the NIC
        {"benches": [{"name": "mem-bench", "cores": 4, "parameters": {"access_mops": (1, 100)}}]},  # a big bench
        {"benches": [{"name": "mem-bench", "cores": 9, "parameters": {"access_mops": (1, 100)}}]},  # one too big
        {"benches": [{"name": "mem-bench", "cores": 1}]},  # a bench without parameters
        {"attributes": {}},  # traffic that cannot vary
        {
            "attributes": {"flows": (5, 5), "packet_size": (64.2, 64.8)},
            "default_traffic": {"flows": 5, "packet_size": 64.5},
        },  # ranges without a whole number
        {"nfs": [{"name": "counter", "cores": 2, "accelerators": ["gpu"]}]},  # an accelerator without a bench
    ],
)
def test_testbeds_with_little_to_offer_are_profiled(tmp_path: Path, changes: dict[str, object]) -> None:
    """What a testbed lacks is left out; what it has is measured, inside its ranges, and can be read."""
    testbed = ToyTestbed(description(**changes))
    written = read_profile(profile(testbed, tmp_path / "p", quota=60))
    nf = written.nfs["counter"]
    assert len(nf.solo) and len(nf.memory)
    for name, (low, high) in testbed.told.attributes.items():
        assert nf.solo[name].between(low, high).all() and nf.memory[name].between(low, high).all()
    assert set(nf.accelerators) == set(nf.uses)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"nfs": ["NAT"]}, "--nf: the testbed has no NAT\nhint: it has counter"),  # an NF it does not host
        ({"method": "guess"}, "'guess' is not a profiling method\nhint: one of active, adaptive, full, random"),
        ({"seed": -1}, "--seed: -1 is negative"),  # no generator takes it
        ({"quota": 5}, "--quota: 5 runs are too few for counter\nhint: it needs at least"),  # nothing left to choose
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: dict[str, object], said: str) -> None:
    """What cannot be done is said before anything is written."""
    with pytest.raises(InputError) as raised:
        profile(ToyTestbed(), tmp_path / "p", **arguments)  # type: ignore[arg-type]
    assert said in str(raised.value)
    assert not (tmp_path / "p").exists()


def test_a_directory_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    """A folder that no profiling wrote is left as it is."""
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="remove it or choose another"):
        profile(ToyTestbed(), tmp_path, quota=60)
    with pytest.raises(InputError, match="is a file"):
        profile(ToyTestbed(), tmp_path / "thesis.tex", quota=60)
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("accelerator", ["solo", "pattern", "memory-2"])
def test_accelerators_called_like_other_files_are_refused(tmp_path: Path, accelerator: str) -> None:
    """An accelerator's file must not be taken for another file of the NF."""
    testbed = ToyTestbed(description(nfs=[{"name": "counter", "cores": 1, "accelerators": [accelerator]}]))
    with pytest.raises(TestbedError, match=f"has an accelerator named {accelerator}"):
        profile(testbed, tmp_path / "p", quota=60)


def test_progress_counts_to_the_end(tmp_path: Path) -> None:
    """Progress never goes back and ends where all is done."""
    told: list[tuple[int, int]] = []
    profile(ToyTestbed(), tmp_path / "p", quota=60, progress=lambda done, total: told.append((done, total)))
    done = [one for one, _ in told]
    assert done == sorted(done)
    assert all(one <= total for one, total in told)
    assert done[-1] >= 60


def _runs(nf: NfProfile) -> int:
    """Different runs of an NF; solo runs stand in two files."""
    co_locations = len(nf.solo) + len(nf.pattern) + sum(map(len, nf.accelerators.values()))
    in_co_location = nf.co_locations["run"].nunique() if len(nf.co_locations) else 0
    return co_locations + in_co_location + int((nf.memory[list(COUNTERS)] != 0).any(axis=1).sum())


def _bytes(directory: Path) -> dict[str, bytes]:
    files = {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    assert not files.get("nf.json") or json.loads(files["nf.json"])
    return files
