"""Profiling from describe to the profile directory: arguments, quota, runs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from profiler.methods import DEFAULT_QUOTA
from profiler.profiling import profile
from profiler.quota import DECIDING_SHARES, divide
from profiler.simulated import SimulatedTestbed
from profiler.testbeds import open_testbed
from profiles import COUNTERS, InputError, TrafficProfile, Workload
from profiles.profile import TRAFFIC_COLUMNS, Profile, read_profile
from tests.profiler.foreign import FOREIGN, bytes_of
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
        return read_profile(profile(testbed, out, quota=80))


@pytest.mark.long
def test_a_profile_holds_the_requested_nfs(simulated: Profile) -> None:
    """The directory can be read: description, benches, and each NF with the files that it needs."""
    assert simulated.testbed == SimulatedTestbed().describe()
    assert list(simulated.nfs) == ["FlowStats", "IPCompGateway"]
    gateway = simulated.nfs["IPCompGateway"]
    assert sorted(gateway.accelerators) == ["compression", "regex"]
    assert len(gateway.pattern) and not len(simulated.nfs["FlowStats"].pattern)
    assert not list(simulated.source.parent.glob(".*"))


@pytest.mark.long
def test_an_nf_has_as_many_runs_as_its_quota(simulated: Profile, foreign: Profile) -> None:
    """Benches, random co-locations and those at default traffic together; three runs are the same solo run."""
    solo_runs_of_others = 3 * (len(SimulatedTestbed().describe().nfs) - len(simulated.nfs))
    assert 2 * 160 - 10 < _runs(simulated) + solo_runs_of_others <= 2 * 160 and _runs(foreign) <= 5 * 80


@pytest.mark.long
def test_co_locations_of_nfs_are_run_twice(simulated: Profile) -> None:
    """A tenth of the quota is for co-locations at random traffic that fit the NIC, the NF first."""
    cores = {nf.name: nf.cores for nf in SimulatedTestbed().describe().nfs}
    default = SimulatedTestbed().describe().traffic
    for name, nf in simulated.nfs.items():
        runs = [table for _, table in nf.co_locations.groupby("run", sort=False) if not _at(default, table)]
        assert len(runs) == 2 * (int(160 * 0.1) // 2)
        for first, again in zip(runs[::2], runs[1::2], strict=True):
            assert first.iloc[0]["nf"] == name
            assert len(first) >= 2 and sum(cores[member] for member in first["nf"]) <= 8
            same = ["nf", "flows", "packet_size", "mtbr"]
            assert first[same].to_numpy().tolist() == again[same].to_numpy().tolist()
            ratio = first["throughput_kpps"].to_numpy() / again["throughput_kpps"].to_numpy()
            assert (abs(ratio - 1) < 0.1).all() and (ratio != 1).all()


@pytest.mark.long
def test_accelerators_need_few_runs(simulated: Profile, foreign: Profile) -> None:
    """Fewer than ten co-runs per accelerator, at two service demands or more, and light competitors among them."""
    for nf in [*simulated.nfs.values(), *foreign.nfs.values()]:
        for table in nf.accelerators.values():
            assert 6 <= len(table) < 10
            assert table[table.competitor_kpps.isna()].competitor_service_ms.nunique() >= 2
            assert table.competitor_kpps.notna().sum() >= 2


@pytest.mark.long
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


@pytest.mark.long
def test_memory_of_accelerator_nfs_is_measured_with_the_least_matches(simulated: Profile) -> None:
    """Every memory row of an NF that uses an accelerator has no matches; its solo rows span the whole range."""
    gateway = simulated.nfs["IPCompGateway"]
    assert (gateway.memory.mtbr == 0).all()
    assert gateway.solo.mtbr.min() == 0 and gateway.solo.mtbr.max() == 1100


def test_memory_contention_has_both_extremes_and_exceeds_that_of_nfs(simulated: Profile) -> None:
    """No bench, and six at their maximum; summed counters exceed those of three NFs, and fall below those of one."""
    memory = simulated.nfs["FlowStats"].memory
    alone = (memory[list(COUNTERS)] == 0).all(axis=1)
    assert 0 < alone.sum() < len(memory) / 2 and max(memory.wss) > 6 * 20
    for name in ("l2crd", "l2cwr", "wss"):
        solo = np.median(simulated.nfs["FlowStats"].solo[name])
        assert memory[name].max() > 3 * solo and memory[name][~alone].min() < solo


def test_a_testbed_unlike_ours_is_profiled_completely(foreign: Profile) -> None:
    """No mtbr, another accelerator, NFs of one to three cores, benches with other parameters."""
    assert set(foreign.nfs) == {"edge-firewall", "load-balancer", "packet-sampler", "tls-proxy", "vpn-gateway"}
    assert "write_share" in foreign.benches and "key_rounds" in foreign.benches
    for nf in foreign.nfs.values():
        assert (nf.memory.mtbr == 0).all()
        assert nf.memory.flows.between(10, 100000).all() and nf.memory.packet_size.between(128, 9000).all()
    assert len(foreign.nfs["vpn-gateway"].pattern) and not len(foreign.nfs["load-balancer"].pattern)


@pytest.mark.long
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two profilings with one seed agree in every byte of every file; another seed differs."""
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        profile(SimulatedTestbed(), tmp_path / name, nfs=["NIDS"], quota=60, seed=seed)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")
    assert bytes_of(tmp_path / "a") != bytes_of(tmp_path / "c")


@pytest.mark.long
def test_an_nf_is_profiled_the_same_alone_and_among_others(tmp_path: Path) -> None:
    """The measurements of an NF, other than in co-locations, do not depend on which others are profiled with it."""
    profile(SimulatedTestbed(), tmp_path / "one", nfs=["NAT"], quota=40)
    profile(SimulatedTestbed(), tmp_path / "two", nfs=["ACL", "NAT"], quota=40)
    one, two = (bytes_of(tmp_path / name / "NAT") for name in ("one", "two"))
    for files in (one, two):
        del files["co-locations.csv"]
    assert one == two


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
    nf = read_profile(profile(testbed, tmp_path / "p", quota=60)).nfs["counter"]
    assert len(nf.solo) and len(nf.memory)
    for name, (low, high) in testbed.described.attributes.items():
        assert nf.solo[name].between(low, high).all() and nf.memory[name].between(low, high).all()
    assert set(nf.accelerators) == set(nf.uses)


def test_progress_counts_to_the_end(tmp_path: Path) -> None:
    """Progress never decreases and ends when all is done."""
    steps: list[tuple[int, int]] = []
    profile(ToyTestbed(), tmp_path / "p", quota=60, progress=lambda done, total: steps.append((done, total)))
    done = [one for one, _ in steps]
    assert done == sorted(done) and all(one <= total for one, total in steps) and done[-1] >= 60


def _runs(profile_read: Profile) -> int:
    """Number of different runs of all NFs; solo runs are in two files."""
    return sum(
        len(nf.solo)
        + len(nf.pattern)
        + sum(map(len, nf.accelerators.values()))
        + nf.co_locations["run"].nunique()
        + int((nf.memory[list(COUNTERS)] != 0).any(axis=1).sum())
        for nf in profile_read.nfs.values()
    )


def _at(traffic: TrafficProfile, table: pd.DataFrame) -> bool:
    return all(tuple(row) == traffic.as_tuple() for row in table[TRAFFIC_COLUMNS].to_numpy().tolist())


def test_an_nf_that_needs_more_cores_than_the_nic_has_is_left_out(tmp_path: Path) -> None:
    """With a message; requested by name it is refused. No run has it as a neighbour."""
    toy = ToyTestbed(description(nfs=[{"name": "huge", "cores": 7}, {"name": "counter", "cores": 2}]))
    messages: list[str] = []
    assert list(read_profile(profile(toy, tmp_path / "p", quota=60, notify=messages.append)).nfs) == ["counter"]
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
    assert message in str(raised.value) and not (tmp_path / "p").exists()


@pytest.mark.parametrize("quota", [200, 400, 600, 5000])
def test_a_fifth_to_a_half_of_a_usual_quota_is_for_deciding_co_locations(quota: int) -> None:
    """All shares together are the quota; what is more than enough for benches goes to co-locations."""
    shares = divide("NAT", quota, 20)
    assert shares.own is not None and shares.own + shares.deciding == quota
    least, most = DECIDING_SHARES
    assert least * quota <= shares.deciding <= most * quota and shares.random == quota // 10 // 2 * 2


def test_small_quotas_leave_what_every_method_needs() -> None:
    """The share of co-locations shrinks to nothing before a quota is refused."""
    with pytest.raises(InputError, match="32 runs are too few for NAT\nhint: it needs at least") as refused:
        divide("NAT", 32, 10)
    least = int(str(refused.value).rsplit(maxsplit=1)[-1])
    assert divide("NAT", least, 10).deciding == 0
    for quota in range(least, 200):
        benches = divide("NAT", quota, 10).benches
        assert benches is not None and benches >= 33


def test_a_method_without_quota_has_the_usual_co_locations() -> None:
    shares = divide("NAT", None, 10)
    assert shares.own is None and (shares.random, shares.deciding) == (40, divide("NAT", DEFAULT_QUOTA, 10).deciding)
