"""A testbed that answers from a recorded profile."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from profiler.profiling import profile
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Run, RunRefused, TestbedError
from profiler.testbeds import open_testbed
from profiler.testbeds.replay import ReplayTestbed
from profiles import BenchLoad, ChainLoad, ConfiguredWorkload, InputError, Load, TrafficProfile, Workload
from profiles.profile import read_profile
from tests.profiler.toy_testbed import ToyTestbed


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profile of the toy."""
    return profile(ToyTestbed(), tmp_path_factory.mktemp("replay") / "p", quota=80)


def test_every_recorded_solo_run_is_answered(recorded: Path) -> None:
    """NFs and benches alone, and `describe`, have the answers of the toy."""
    toy = ToyTestbed()
    with open_testbed(f"replay:{recorded}") as replay:
        assert replay.describe() == toy.describe()
        written = read_profile(recorded)
        loads = [
            *(
                Workload("counter", TrafficProfile.from_mapping(row))
                for _, row in written.nfs["counter"].solo.iterrows()
            ),
            *(BenchLoad.of("mem-bench", row[["wss_mb", "access_mops"]]) for _, row in written.benches.iterrows()),
        ]
        for load in loads:
            there, here = replay.run([load]).measurements[0], toy.run([load]).measurements[0]
            assert there.throughput_kpps == pytest.approx(here.throughput_kpps)
            assert there.counters.irt == pytest.approx(here.counters.irt)


def test_a_run_that_is_not_recorded_is_refused_with_the_nearest(recorded: Path) -> None:
    """Other traffic, other co-locations, and NFs never measured; the last have no nearest run."""
    replay = ReplayTestbed(recorded)
    near = Workload("counter", TrafficProfile(1001, 512))
    with pytest.raises(
        TestbedError, match=r"no such run is recorded; the nearest recorded is counter \(flows 1000, pac"
    ):
        replay.run([near])
    with pytest.raises(TestbedError, match=r"no such run is recorded.*counter \(flows 1000, packet_size 512.* alone"):
        replay.run([near, near])
    with pytest.raises(TestbedError, match="nothing is recorded of"):
        replay.run([Workload("NAT", TrafficProfile(1, 64))])


def test_chains_and_parameters_are_refused(recorded: Path) -> None:
    """A profile does not hold the answers to them."""
    replay, traffic = ReplayTestbed(recorded), TrafficProfile(1000, 512)
    counter = ConfiguredWorkload.of(Workload("counter", traffic), {"rules": 1})
    for load in (counter, ChainLoad.of(["counter", "counter"], [[0, 1]], traffic)):
        with pytest.raises(RunRefused, match=f"{load.label}: neither chains nor NFs with parameters are replayed"):
            replay.run([load])


@pytest.mark.long
def test_every_recorded_co_run_is_answered(tmp_path: Path) -> None:
    """With memory benches, accelerator benches and both, found by their summed contention; and with other NFs."""
    requested: list[tuple[list[Load], float]] = []

    class RecordingTestbed(SimulatedTestbed):
        def run_many(
            self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
        ) -> list[Run]:
            runs = super().run_many(co_locations, noise=noise, seed=0)
            if seed == 0:
                requested.extend(
                    (list(loads), run.measurements[0].throughput_kpps)
                    for loads, run in zip(co_locations, runs, strict=True)
                    if len(loads) > 1 and not all(isinstance(load, Workload) for load in loads)
                )
            return runs

    out = profile(RecordingTestbed(), tmp_path / "p", nfs=["IPCompGateway"], quota=120)
    replay = ReplayTestbed(out)
    assert len(requested) > 60
    for loads, kpps in requested:
        assert replay.run(loads).measurements[0].throughput_kpps == pytest.approx(kpps, rel=1e-6)
    recorded = read_profile(out).nfs["IPCompGateway"].co_locations
    first = recorded[recorded["run"] == "0"]
    co_location = [Workload(row.nf, TrafficProfile(row.flows, row.packet_size, row.mtbr)) for row in first.itertuples()]
    answered = [one.throughput_kpps for one in replay.run(co_location[::-1]).measurements][::-1]
    assert answered == pytest.approx(first["throughput_kpps"].to_list(), rel=0.05)
    loads, _ = requested[0]
    with pytest.raises(
        TestbedError, match=r"the nearest recorded is IPCompGateway \(.*with benches that sum up to ipc"
    ):
        replay.run([*loads, loads[-1]])


def test_a_profile_without_description_is_refused(recorded: Path, tmp_path: Path) -> None:
    """Measurements without a description cannot serve as a testbed, nor can an empty folder."""
    (tmp_path / "p" / "counter").mkdir(parents=True)
    (tmp_path / "p" / "counter" / "memory.csv").write_bytes((recorded / "counter" / "memory.csv").read_bytes())
    with pytest.raises(InputError, match=r"no testbed\.json"):
        ReplayTestbed(tmp_path / "p")
    with pytest.raises(InputError, match="is not a profile directory"):
        ReplayTestbed(tmp_path / "nowhere")
