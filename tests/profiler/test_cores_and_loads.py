"""Profiling of further numbers of cores, of NFs at rates, and of latency: what is run, what is kept, and what
resumes."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from profiler.cores_and_loads import Capacities, choose_counts, find_mattering
from profiler.journal.status import as_text, read_status
from profiler.latency import OFFERED_SHARES, SETTINGS_ALONE, SETTINGS_BESIDE, draw_settings, profile_latency
from profiler.profiling import journal_of, profile
from profiler.quota import CORES_QUOTA, divide, divide_cores
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Measurement, PacketLatency, Run, Testbed, TestbedError
from profiler.testbeds.replay import ReplayTestbed
from profiles import ChainLoad, Counters, InputError, Load, TestbedDescription, TrafficProfile, Workload
from profiles.profile import Profile, read_profile
from tests.profiler.foreign import bytes_of
from tests.profiler.toy_server import server_description
from tests.profiler.toy_testbed import ToyTestbed, description

CORES, QUOTA = (1, 2, 4), 150
COUNTS = [{"name": "counter", "cores": 2, "core_counts": [1, 2, 4]}, {"name": "other", "cores": 1}]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    out = tmp_path_factory.mktemp("cores") / "p"
    return read_profile(profile(SimulatedTestbed(), out, nfs=["PacketFilter", "NAT"], quota=QUOTA, cores=CORES))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    out = tmp_path_factory.mktemp("alone") / "p"
    return read_profile(profile(SimulatedTestbed(), out, nfs=["NAT"], quota=QUOTA, cores=CORES))


def lines(folder: Path, file: str) -> list[str]:
    return (folder / file).read_text().splitlines()


@pytest.mark.long
def test_further_runs_are_added_to_those_of_the_default_number(several: Profile, tmp_path: Path) -> None:
    """Two thirds of the quota without `cores` is the same profile, but for cells of the new columns; `cores` adds to it
    afterwards as if it had been given at once."""
    plain = profile(SimulatedTestbed(), tmp_path / "p", nfs=["PacketFilter", "NAT"], quota=QUOTA * 2 // 3)
    before = bytes_of(plain)
    for file in ("NAT/solo.csv", "NAT/memory.csv", "PacketFilter/regex.csv", "NAT/co-locations.csv"):
        old, new = lines(plain, file), lines(several.source, file)
        added = new[0].removeprefix(old[0])
        default = ",2" if added == ",cores" else ",,"
        assert added in (",cores", ",rate_kpps,cores")
        assert new[1 : len(old)] == [line + default for line in old[1:]] and len(new) > len(old)
    assert all(file in before for file in ("PacketFilter/pattern.csv", "benches.csv"))
    profile(SimulatedTestbed(), tmp_path / "p", nfs=["PacketFilter", "NAT"], quota=QUOTA, cores=CORES)
    assert bytes_of(tmp_path / "p") == bytes_of(several.source)


@pytest.mark.long
def test_the_quota_is_over_all_numbers_of_cores(several: Profile) -> None:
    """Each further number has half of its runs alone, the others beside mem-bench and accelerator benches."""
    shares = divide_cores(QUOTA, paced=True)
    assert (shares.cores, shares.loads) == (35, 15)
    for nf in several.nfs.values():
        for cores in (1, 4):
            found = nf.on_cores(cores)
            benches = (len(found.memory) - len(set_of(found.solo) & set_of(found.memory))) + sum(
                int((table["competitor_service_ms"] > 0).sum()) for table in found.accelerators.values()
            )
            assert (len(found.solo), benches) == (9, 8)
        assert nf.loads["run"].nunique() == shares.loads
    assert (several.nfs["PacketFilter"].on_cores(4).accelerators["regex"]["competitor_service_ms"] > 0).sum() == 4


def set_of(table: pd.DataFrame) -> set[tuple[float, ...]]:
    return set(table[["flows", "packet_size", "mtbr", "throughput_kpps"]].itertuples(index=False, name=None))


def test_by_default_the_default_number_has_what_it_has_without_others() -> None:
    """400 of 600 runs; the other cores 140, and 60 at rates; all 200 go to cores where no rates are offered."""
    assert divide("a", CORES_QUOTA, 30, further=True) == divide("a", 400, 30)
    assert (divide_cores(None, paced=True).cores, divide_cores(None, paced=True).loads) == (140, 60)
    assert (divide_cores(None, paced=False).cores, divide_cores(None, paced=False).loads) == (200, 0)
    with pytest.raises(InputError, match=r"(?s)60 runs are too few for a.*at least 86$"):
        divide("a", 60, 30, further=True)


def test_rates_are_shares_of_what_an_nf_carries_on_its_cores(several: Profile) -> None:
    """About four of five NFs have one, of 5 to 110 % of what they carry alone, nearly; the cores fit the card."""
    loads = pd.concat([nf.loads.assign(run=name + nf.loads["run"]) for name, nf in several.nfs.items()])
    paced = loads[loads["rate_kpps"] < np.inf]
    assert 0.65 < len(paced) / len(loads) < 0.95 and {0, 1, 4} == set(loads["cores"])
    assert (loads["throughput_kpps"] <= loads["rate_kpps"]).all()
    assert (loads["cores"].replace(0, 2).groupby(loads["run"]).sum() <= 8).all()
    alone = SimulatedTestbed().run_many(
        [
            [Workload(row.nf, TrafficProfile(row.flows, row.packet_size, row.mtbr), cores=row.cores)]
            for row in paced.itertuples()
        ],
        noise=False,
    )
    shares = paced["rate_kpps"].to_numpy() / [run.measurements[0].throughput_kpps for run in alone]
    assert np.median(abs(shares - 0.55)) < 0.4 and 0.02 < shares.min() < 0.3 and 0.8 < shares.max() < 4


@pytest.mark.long
def test_the_runs_of_an_nf_do_not_depend_on_the_others_that_are_profiled(several: Profile, alone: Profile) -> None:
    nat, beside = alone.nfs["NAT"], several.nfs["NAT"]
    pd.testing.assert_frame_equal(nat.on_cores(4).memory, beside.on_cores(4).memory)
    pd.testing.assert_frame_equal(nat.loads.drop(columns="run"), beside.loads.drop(columns="run"))


@pytest.mark.long
def test_the_same_call_resumes(alone: Profile, tmp_path: Path) -> None:
    """A testbed that ends on further cores, and then at rates, loses nothing; the bytes are those of one call."""

    class Ending(SimulatedTestbed):
        def __init__(self, most: int) -> None:
            super().__init__()
            self.left = most

        def run_many(
            self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
        ) -> list[Run]:
            loads = [load for loads in co_locations for load in loads if isinstance(load, Workload)]
            self.left -= sum(bool(load.cores) or not load.is_saturated for load in loads)
            if self.left < 0:
                raise TestbedError("the cable is out")
            return super().run_many(co_locations, noise=noise, seed=seed)

    arguments = {"nfs": ["NAT"], "quota": QUOTA, "cores": CORES}
    for most in (20, 50):
        with pytest.raises(TestbedError, match="the cable is out"):
            profile(Ending(most), tmp_path / "p", **arguments)  # type: ignore[arg-type]
        assert journal_of(tmp_path / "p").exists() and not (tmp_path / "p").exists()
    status = {part.name: part for part in read_status(journal_of(tmp_path / "p")).parts}
    assert status["further cores"].done and status["offered loads"].left
    profile(SimulatedTestbed(), tmp_path / "p", **arguments)  # type: ignore[arg-type]
    assert read_status(journal_of(tmp_path / "p")).left == 0
    assert bytes_of(tmp_path / "p") == bytes_of(alone.source)


def test_a_recorded_profile_replays_cores_and_rates(several: Profile) -> None:
    """Alone on each number of cores, and co-located at rates; the default number may be named."""
    replay = ReplayTestbed(several.source)
    nat = several.nfs["NAT"]
    for cores in CORES:
        row = nat.on_cores(cores).solo.iloc[1]
        load = Workload("NAT", TrafficProfile(row.flows, row.packet_size, row.mtbr), cores=cores)
        assert replay.run([load]).measurements[0].throughput_kpps == row.throughput_kpps
    first = nat.loads[nat.loads["run"] == nat.loads["run"].iloc[0]]
    loads = [
        Workload(row.nf, TrafficProfile(row.flows, row.packet_size, row.mtbr), row.rate_kpps, cores=row.cores)
        for row in first.itertuples()
    ]
    assert [one.throughput_kpps for one in replay.run(loads).measurements] == first["throughput_kpps"].tolist()
    with pytest.raises(TestbedError, match=r"NAT \(.*rate_kpps 1\).*no such run is recorded"):
        replay.run([Workload("NAT", several.default_traffic(), 1.0)])


def test_numbers_of_cores_that_cannot_be_given_are_left_out_or_refused() -> None:
    messages: list[str] = []
    described = description(nfs=COUNTS)
    assert choose_counts(described, described.nfs, [4, 1], messages.append) == {"counter": [2, 1, 4], "other": [1]}
    assert messages == ["other: not measured on 4 cores, which cannot be given"]
    with pytest.raises(InputError, match="--cores: toy gives no NF 3 cores"):
        choose_counts(described, described.nfs, [1, 3], messages.append)


def test_attributes_without_effect_on_the_default_number_are_not_varied(several: Profile) -> None:
    """Matches are nothing to NAT and much to PacketFilter; packet size may matter on more cores."""
    described = SimulatedTestbed().describe()
    assert set(find_mattering(described, several.nfs["NAT"].solo)) == {"flows", "packet_size"}
    assert set(find_mattering(described, several.nfs["PacketFilter"].solo)) == {"packet_size", "mtbr"}
    assert set(several.nfs["NAT"].on_cores(4).solo["mtbr"]) == {600.0}


def test_the_capacity_is_that_at_the_nearest_traffic_on_as_many_cores() -> None:
    """Flows are near by their logarithm where their range is wide."""
    carried = {
        Workload("a", TrafficProfile(flows, 100), cores=cores): kpps
        for flows, cores, kpps in ((10, 0, 1.0), (10_000, 0, 2.0), (10_000, 4, 3.0))
    }
    capacities = Capacities({"flows": (1, 100_000)}, carried)
    assert [capacities.estimate(Workload("a", TrafficProfile(flows, 99))) for flows in (200, 1000)] == [1.0, 2.0]
    assert capacities.estimate(Workload("a", TrafficProfile(1, 99), cores=4)) == 3.0


COUNTERS = Counters(1, 1, 1, 1, 1, 1, 1)
CAPACITY = 1000.0


class ToyQueue(Testbed):
    """NFs carry 1,000 kpps less 100 per neighbour; a p99 is 10 us at no load, and grows as a queue does."""

    def __init__(self, *, most: float = 1.0, fails_after: int = 10**9, **changes: object) -> None:
        self.most, self.left = most, fails_after
        self.described = server_description(**{"chains": False, "paced": True} | changes)
        self.asked: list[tuple[Load, ...]] = []

    def describe(self) -> TestbedDescription:
        return self.described

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if not self.left:
            raise TestbedError("the cable is out")
        self.left -= 1
        self.asked.append(tuple(loads))
        capacity = CAPACITY - 100 * (len(loads) - 1)
        return Run(tuple(self._measured(load, capacity) for load in loads))

    def _measured(self, load: Load, capacity: float) -> Measurement:
        rate = load.rate_kpps if isinstance(load, Workload | ChainLoad) else 0.0
        if rate in (0.0, inf):
            return Measurement(capacity, COUNTERS)
        p99 = 10 / (1 - min(rate / capacity, 0.999))
        latency = PacketLatency(p99 / 4, p99 / 5, p99, 2 * p99)
        return Measurement(min(rate, self.most * capacity), COUNTERS, latency_us=latency)


def measured(testbed: Testbed, out: Path, nf: str = "gate") -> pd.DataFrame:
    return read_profile(profile_latency(testbed, out, nfs=[nf])).nfs[nf].latency


def test_rates_are_shares_of_what_the_nf_carries_in_the_same_co_location(tmp_path: Path) -> None:
    """Alone and beside others, each rate with its latency, by hand."""
    table = measured(ToyQueue(), tmp_path / "p")
    assert len(table) == (SETTINGS_ALONE + SETTINGS_BESIDE) * len(OFFERED_SHARES)
    neighbours = [len(names.split(";")) if names else 0 for names in table.competitors]
    assert table.capacity_kpps.tolist() == [CAPACITY - 100 * number for number in neighbours]
    assert (table.rate_kpps / table.capacity_kpps).round(6).tolist() == list(OFFERED_SHARES) * (
        SETTINGS_ALONE + SETTINGS_BESIDE
    )
    assert table.p99_us.to_numpy() == pytest.approx(10 / (1 - table.rate_kpps / table.capacity_kpps))
    assert (table.repeats == 2).all() and (table.spread_us == 0).all()
    assert neighbours.count(0) == SETTINGS_ALONE * len(OFFERED_SHARES) and max(neighbours) == 3


def test_neighbours_are_as_fast_as_they_go(tmp_path: Path) -> None:
    """Only the NF itself has a rate; the null NF is nobody's neighbour."""
    testbed = ToyQueue()
    measured(testbed, tmp_path / "p")
    assert all(isinstance(load, Workload) and load.is_saturated for loads in testbed.asked for load in loads[1:])
    assert not any(load.label == "Null" for loads in testbed.asked for load in loads)


def test_rates_that_are_not_carried_are_left_out(tmp_path: Path) -> None:
    """An NF whose packets are lost at more than 70 % of its throughput has no latency there."""
    messages: list[str] = []
    out = profile_latency(ToyQueue(most=0.7), tmp_path / "p", nfs=["gate"], notify=messages.append)
    table = read_profile(out).nfs["gate"].latency
    assert (table.rate_kpps / table.capacity_kpps).max() < 0.7
    assert f"{3 * (SETTINGS_ALONE + SETTINGS_BESIDE)} offered rates were not carried; left out" in messages


def test_where_only_chains_have_rates_an_nf_is_one_of_one_stage(tmp_path: Path) -> None:
    """In the closed loop, too, so that its utilisation is one of the same program."""
    testbed = ToyQueue(paced=False, chains=True)
    assert len(measured(testbed, tmp_path / "p")) == (SETTINGS_ALONE + SETTINGS_BESIDE) * len(OFFERED_SHARES)
    target = [loads[0] for loads in testbed.asked if loads[0].label == "gate"]
    assert any(isinstance(load, ChainLoad) and load.rate_kpps for load in target)
    assert any(isinstance(load, ChainLoad) and not load.rate_kpps for load in target)


def test_a_testbed_without_rates_is_refused(tmp_path: Path) -> None:
    """And one that has rates, yet no latency."""
    with pytest.raises(InputError, match="--latency: toy offers packets at no given rate"):
        profile_latency(ToyTestbed(), tmp_path / "p")
    with pytest.raises(InputError, match="--latency: simulated-bluefield-2 measures no latency of FlowStats"):
        profile_latency(SimulatedTestbed(), tmp_path / "p")


def test_the_same_call_resumes_latency(tmp_path: Path) -> None:
    """After a failure, the rest is measured; then nothing; the bytes are those of one call."""
    with pytest.raises(TestbedError):
        profile_latency(ToyQueue(fails_after=60), tmp_path / "p", nfs=["gate"])
    status = read_status(journal_of(tmp_path / "p"))
    assert status.left and "latency" in as_text(status)
    testbed = ToyQueue()
    profile_latency(testbed, tmp_path / "p", nfs=["gate"])
    whole = ToyQueue()
    profile_latency(whole, tmp_path / "whole", nfs=["gate"])
    assert 0 < len(testbed.asked) < len(whole.asked)
    assert bytes_of(tmp_path / "p") == bytes_of(tmp_path / "whole")
    messages: list[str] = []
    profile_latency(ToyQueue(fails_after=0), tmp_path / "p", nfs=["gate"], notify=messages.append)
    assert any(message.startswith("nothing to measure") for message in messages)


def test_latency_and_contention_are_profiled_into_one_folder(tmp_path: Path) -> None:
    """In either order; neither removes the files of the other."""
    server = ToyQueue()
    one = profile(server, profile_latency(server, tmp_path / "p", nfs=["gate"]), nfs=["gate"], quota=40)
    other = profile_latency(server, profile(server, tmp_path / "q", nfs=["gate"], quota=40), nfs=["gate"])
    assert bytes_of(one) == bytes_of(other)
    assert len(read_profile(one).nfs["gate"].latency) and len(read_profile(one).nfs["gate"].memory)


def test_settings_depend_on_the_seed_and_not_on_other_nfs() -> None:
    """The same seed, the same settings; the NF is always among the cores that the NIC has."""
    described = server_description()
    gate = described.nfs[1]
    one, again, other = (draw_settings(described, gate, seed) for seed in (1, 1, 2))
    assert one == again != other and all(len(setting.others) < described.nic.cores for setting in one)
