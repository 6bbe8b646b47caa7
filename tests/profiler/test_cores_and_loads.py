"""Profiling of further numbers of cores, and of NFs at rates."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from profiler.cores_and_loads import Capacities, choose_counts, find_mattering
from profiler.journal.status import read_status
from profiler.profiling import journal_of, profile
from profiler.quota import CORES_QUOTA, divide, divide_cores
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Run, TestbedError
from profiler.testbeds.replay import ReplayTestbed
from profiles import InputError, Load, TrafficProfile, Workload
from profiles.profile import Profile, read_profile
from tests.profiler.foreign import bytes_of
from tests.profiler.toy_testbed import description

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


def test_the_runs_of_an_nf_do_not_depend_on_the_others_that_are_profiled(several: Profile, alone: Profile) -> None:
    nat, beside = alone.nfs["NAT"], several.nfs["NAT"]
    pd.testing.assert_frame_equal(nat.on_cores(4).memory, beside.on_cores(4).memory)
    pd.testing.assert_frame_equal(nat.loads.drop(columns="run"), beside.loads.drop(columns="run"))


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
