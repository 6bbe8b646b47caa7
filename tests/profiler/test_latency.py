"""Profiling of latency: what is run, what is kept, and what resumes."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

import pandas as pd
import pytest

from profiler.journal.status import as_text, read_status
from profiler.latency import OFFERED_SHARES, SETTINGS_ALONE, SETTINGS_BESIDE, draw_settings, profile_latency
from profiler.profiling import journal_of, profile
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Measurement, PacketLatency, Run, Testbed, TestbedError
from profiles import ChainLoad, Counters, InputError, Load, TestbedDescription, Workload
from profiles.profile import read_profile
from tests.profiler.foreign import bytes_of
from tests.profiler.toy_server import server_description
from tests.profiler.toy_testbed import ToyTestbed

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


def test_the_same_call_resumes(tmp_path: Path) -> None:
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
