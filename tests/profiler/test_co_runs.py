"""Co-locations of NFs at random traffic: drawn, run twice, and left out where they do not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from profiler.contention import MemoryContention
from profiler.runs.co_runs import draw_co_locations
from profiler.runs.nf_runs import NfRuns
from profiler.runs.outliers import ConfirmedTestbed
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Run, RunRefused, TestbedError
from profiles import Load, NfDescription, Workload


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
