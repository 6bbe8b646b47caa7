"""A sweep: which loads run at a point, passes, repeats, and what happens when something fails."""

import math
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.journal.journal import Journal
from profiler.profiling import journal_of, merge
from profiler.sweeps.claim import machine_facts
from profiler.sweeps.loads import KeyTarget, faults_on_testbed, loads_at, target_of
from profiler.sweeps.measuring import MeasuredSweep, measure_sweep, table_of
from profiler.sweeps.spec import SweepSpec
from profiler.testbed import TestbedError
from profiles import BenchLoad, ConfiguredWorkload, InputError, TestbedDescription, TrafficProfile, Workload
from tests.profiler.sweeps.curve_testbed import CurveTestbed, flows_sweep
from tests.profiler.toy_testbed import ToyTestbed, description

BEND = 42_000


def bending(flows: float) -> float:
    """Flat up to the bend, then falling."""
    return 1000.0 - max(flows - BEND, 0) / 100


def flat(flows: float) -> float:
    """1,000 kpps."""
    return 1000.0


def swept(testbed: ToyTestbed, out: Path, spec: SweepSpec) -> MeasuredSweep:
    """The sweep, measured."""
    return measure_sweep(testbed, out, spec)


def test_each_point_is_measured_as_often_as_wanted(tmp_path: Path) -> None:
    """Twenty points, three repeats, sixty runs; the ends are among the points."""
    testbed = CurveTestbed(bending, noise=0.01)
    measured = swept(testbed, tmp_path / "s", flows_sweep(points=20, repeats=3))
    assert {len(found) for found in measured.points.values()} == {3}
    assert len(measured.points) == 20 and len(testbed.requests) == 60
    x = [point[0] for point in measured.points]
    assert x == sorted(x) and (x[0], x[-1]) == (1, 100_000)
    assert all([one.repeat for one in found] == [0, 1, 2] for found in measured.points.values())


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_further_points_land_near_the_bend(tmp_path: Path, noise: float) -> None:
    """The gap in which the bend lies is narrower than even points would leave it."""
    measured = swept(CurveTestbed(bending, noise=noise), tmp_path / "s", flows_sweep(points=40, repeats=3))
    x = np.array([point[0] for point in measured.points])
    assert np.diff(x)[np.searchsorted(x, BEND) - 1] < 100_000 / 39 / 2
    assert np.sum(np.abs(x - BEND) < 10_000) >= (12 if noise == 0 else 10)  # of even points, 8


def test_the_order_is_drawn_by_the_seed_anew_for_each_pass(tmp_path: Path) -> None:
    """Neither pass is sorted, and the passes differ, so that drift is noise."""
    runs = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        testbed = CurveTestbed(flat)
        swept(testbed, tmp_path / name, flows_sweep(points=5, repeats=2, seed=seed))
        runs[name] = testbed.flows
    first, second = runs["a"][:5], runs["a"][5:]
    assert sorted(first) == sorted(second) and first != second and first != sorted(first)
    assert runs["a"] == runs["b"] != runs["c"]


def test_drift_does_not_look_like_a_curve(tmp_path: Path) -> None:
    """A testbed that loses 10 % over the sweep: reported, and flows do not explain it."""
    spoken: list[str] = []
    testbed = CurveTestbed(flat, slower=0.1 / 120)
    measured = measure_sweep(testbed, tmp_path / "s", flows_sweep(points=40, repeats=3), notify=spoken.append)
    table = table_of(measured, flows_sweep(points=40, repeats=3))
    assert abs(np.corrcoef(table.flows, table.throughput_kpps)[0, 1]) < 0.25
    assert np.corrcoef(table.run, table.throughput_kpps)[0, 1] < -0.99
    assert [text for text in spoken if text.startswith("testbed drifts: throughput changed by -")]


@pytest.mark.parametrize("after", [0, 1, 17, 59])
def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path, after: int) -> None:
    """After the testbed failed: no run is made twice, and the result is that of an undisturbed sweep."""
    spec = flows_sweep(points=20, repeats=3)
    whole = CurveTestbed(bending, noise=0.01)
    undisturbed = table_of(swept(whole, tmp_path / "whole", spec), spec)
    broken = CurveTestbed(bending, noise=0.01, fails_after=after)
    with pytest.raises(TestbedError):
        swept(broken, tmp_path / "s", spec)
    second = CurveTestbed(bending, noise=0.01)
    assert table_of(swept(second, tmp_path / "s", spec), spec).equals(undisturbed)
    assert Counter([*broken.flows, *second.flows]) == Counter(whole.flows)


def test_a_second_call_measures_nothing(tmp_path: Path) -> None:
    """All is in the journal, and the user is informed."""
    spoken: list[str] = []
    spec = flows_sweep(points=5)
    first = swept(CurveTestbed(bending), tmp_path / "s", spec)
    again = measure_sweep(CurveTestbed(bending, fails_after=0), tmp_path / "s", spec, notify=spoken.append)
    assert again.points == first.points and spoken == ["nothing to measure: 5 runs are recorded"]


def test_a_point_that_is_refused_is_left_out(tmp_path: Path) -> None:
    """With the testbed's reason; the others are measured."""
    spoken: list[str] = []
    spec = flows_sweep(points=5)
    measured = measure_sweep(CurveTestbed(flat, refused=[100_000]), tmp_path / "s", spec, notify=spoken.append)
    assert len(measured.points) == 4 and spoken == ["flows = 100000: left out: no 100000 flows here"]


def test_a_point_that_fails_is_left_out_when_the_testbed_goes_on(tmp_path: Path) -> None:
    """The NF at default traffic shows that it does."""
    testbed = CurveTestbed(flat, failing=[100_000])
    measured = swept(testbed, tmp_path / "s", flows_sweep(points=5))
    assert measured.left_out == {(100_000.0,): "toy fails at 100000 flows"} and testbed.flows.count(1000) == 1


def test_a_measurement_that_cannot_be_one_is_left_out(tmp_path: Path) -> None:
    """A testbed that answers NaN at one point: neither kept nor fitted."""
    testbed = CurveTestbed(lambda flows: math.nan if flows == 100_000 else 1000.0)
    measured = swept(testbed, tmp_path / "s", flows_sweep(points=5, repeats=2))
    assert measured.left_out == {(100_000.0,): "testbed reports a throughput of nan kpps"}
    assert {len(found) for found in measured.points.values()} == {2} and len(measured.points) == 4


def test_a_broken_testbed_is_not_taken_for_broken_points(tmp_path: Path) -> None:
    """Where the NF at default traffic fails, too, the sweep ends, and the same call goes on."""
    spec = flows_sweep(points=5)
    with pytest.raises(TestbedError, match="fails at 1000 flows"):
        swept(CurveTestbed(flat, failing=[1000, 100_000]), tmp_path / "s", spec)
    assert swept(CurveTestbed(flat), tmp_path / "s", spec).left_out == {}


def test_a_testbed_that_refuses_everything_is_reported(tmp_path: Path) -> None:
    """With its reason; it is the sweep that is wrong."""
    testbed = CurveTestbed(flat, refused=range(100_001))
    with pytest.raises(InputError, match=r"runs no point of the sweep: no .* flows here"):
        swept(testbed, tmp_path / "s", flows_sweep(points=5))


def test_a_metric_that_is_not_measured_is_refused_after_one_run(tmp_path: Path) -> None:
    """Latency of a testbed that measures none."""
    testbed = CurveTestbed(flat)
    spec = flows_sweep(measure={"metrics": ["latency_p99_us"]})
    with pytest.raises(InputError, match="--testbed: does not measure latency_p99_us"):
        swept(testbed, tmp_path / "s", spec)
    assert len(testbed.requests) == 1


def test_an_outlier_is_replaced_by_a_further_run(tmp_path: Path) -> None:
    """Three repeats of which one is half of the others: a fourth takes its place."""
    spoken: list[str] = []
    testbed = CurveTestbed(flat, stray=[7])
    measured = measure_sweep(testbed, tmp_path / "s", flows_sweep(points=5, repeats=3), notify=spoken.append)
    assert {one.run.measurements[0].throughput_kpps for found in measured.points.values() for one in found} == {1000.0}
    assert spoken == ["outliers, not confirmed by repeats and replaced by a further run: 1"]
    assert len(testbed.requests) == 16


def test_another_sweep_is_refused_with_what_differs(tmp_path: Path) -> None:
    """Every key that differs, and nothing is measured."""
    swept(CurveTestbed(flat), tmp_path / "s", flows_sweep(points=5))
    other = flows_sweep(points=6, workload={"nf": "counter", "packet_size": 64})
    with pytest.raises(InputError) as refused:
        swept(CurveTestbed(flat, fails_after=0), tmp_path / "s", other)
    assert str(refused.value).startswith(
        "--out: holds another sweep: workload.packet_size was not given, is 64\n"
        "--out: holds another sweep: vary.1.points was 5, is 6\n"
        "hint: choose another --out"
    )


def test_another_card_does_not_continue_a_sweep_whose_folder_was_deleted(tmp_path: Path) -> None:
    """Both describe themselves alike; nothing is measured."""
    spec = flows_sweep(points=5)
    swept(CurveTestbed(flat, card="bf2-a"), tmp_path / "s", spec)
    with pytest.raises(InputError, match="another machine measured: bf2-a, not bf2-b"):
        swept(CurveTestbed(flat, card="bf2-b"), tmp_path / "s", spec)
    assert len(swept(CurveTestbed(flat, card="bf2-a", fails_after=0), tmp_path / "s", spec).points) == 5


def test_a_file_that_ran_nowhere_may_be_corrected(tmp_path: Path) -> None:
    """After a refusal of every point, and after a metric that is not measured, the folder is free."""
    with pytest.raises(InputError):
        swept(CurveTestbed(flat, refused=range(100_001)), tmp_path / "s", flows_sweep(points=5))
    with pytest.raises(InputError):
        swept(CurveTestbed(flat), tmp_path / "s", flows_sweep(points=6, measure={"metrics": ["latency_max_us"]}))
    assert len(swept(CurveTestbed(flat), tmp_path / "s", flows_sweep(points=7)).points) == 7


def test_further_metrics_may_be_added_later(tmp_path: Path) -> None:
    """All of them are in the journal: nothing is measured again."""
    swept(CurveTestbed(flat), tmp_path / "s", flows_sweep(points=5))
    more = flows_sweep(points=5, measure={"repeats": 1, "metrics": ["throughput_kpps", "irt"]})
    assert table_of(swept(CurveTestbed(flat, fails_after=0), tmp_path / "s", more), more).irt.tolist() == [1e9] * 5


def test_the_journal_of_a_sweep_is_not_merged_into_a_profile(tmp_path: Path) -> None:
    """Its runs belong to one sweep."""
    swept(ToyTestbed(), tmp_path / "s", flows_sweep(points=5))
    with Journal(journal_of(tmp_path / "p")) as journal:
        journal.claim(ToyTestbed(), 0)
    with pytest.raises(InputError, match="holds runs of another sweep than"):
        merge(tmp_path / "p", journal_of(tmp_path / "s"))


def test_the_facts_of_the_machine_are_those_of_the_first_call(tmp_path: Path) -> None:
    """A sweep that is resumed has begun when it began."""
    spec = flows_sweep(points=5)
    first = measure_sweep(CurveTestbed(flat), tmp_path / "s", spec, machine={"began": "today"})
    again = measure_sweep(CurveTestbed(flat), tmp_path / "s", spec, machine={"began": "tomorrow"})
    assert first.as_json("toy")["machine"] == again.as_json("toy")["machine"] == {"began": "today"}


def test_every_setting_of_a_further_key_has_its_own_points(tmp_path: Path) -> None:
    """Beside two rates of a bench, whose effect the toy knows; repeats are counted per setting."""
    spec = flows_sweep(
        workload={"nf": "counter", "competitors": [{"bench": "mem-bench", "parameters": {"wss_mb": 1}}]},
        vary=[{"key": "flows", "values": [10, 5000]}, {"key": "mem-bench.access_mops", "values": [40, 100]}],
        measure={"repeats": 2},
    )
    testbed = ToyTestbed()
    table = table_of(swept(testbed, tmp_path / "s", spec), spec)
    assert table.columns.tolist() == ["flows", "mem-bench.access_mops", "repeat", "run", "throughput_kpps"]
    means = table.groupby(["mem-bench.access_mops", "flows"]).throughput_kpps.mean().round(1).to_dict()
    assert means == {(40, 10): 909.1, (40, 5000): 454.5, (100, 10): 800.0, (100, 5000): 400.0}
    ran = {load for run in testbed.requests for load in run}
    assert {BenchLoad.of("mem-bench", {"wss_mb": 1, "access_mops": rate}) for rate in (40, 100)} <= ran


@pytest.mark.parametrize("testbed", ["host", "host:--cores 2-5"])
def test_the_host_is_described(testbed: str) -> None:
    """Cores, memory, kernel, and a time with its zone."""
    facts = machine_facts(testbed)
    assert facts["cores"] >= 1 and facts["memory_mb"] > 100 and facts["kernel"]
    assert datetime.fromisoformat(facts["began"]).tzinfo is not None


@pytest.mark.parametrize("testbed", ["simulated", "exec:ssh host agent", "replay:host", "hosts"])
def test_other_testbeds_say_nothing_of_this_machine(testbed: str) -> None:
    """A simulation has the same files everywhere; another machine is not this one."""
    assert machine_facts(testbed) == {}


DESCRIBED = description(
    nfs=[
        {"name": "counter", "cores": 2},
        {"name": "filter", "cores": 1, "parameters": {"rules": (1, 1000), "flows": (1, 9)}},
    ]
)


def sweep(workload: dict[str, Any], *keys: str, **more: Any) -> SweepSpec:
    """A sweep of that workload over each key from 1 to 9."""
    vary = [{"key": key, "from": 1, "to": 9, "points": 3} for key in keys]
    return SweepSpec.model_validate({"workload": workload, "vary": vary, **more})


def faults(spec: SweepSpec, described: TestbedDescription = DESCRIBED) -> list[str]:
    """The keys and messages of the faults."""
    return [f"{'.'.join(map(str, one.path))}: {one.message}" for one in faults_on_testbed(spec, described)]


def test_traffic_and_parameters_are_set_where_keys_name_them() -> None:
    """What is left out has the testbed's default; parameters that are traffic attributes as well are written out."""
    spec = sweep({"nf": "filter", "packet_size": 64, "parameters": {"rules": 7}}, "flows", "parameters.flows")
    (load,) = loads_at(spec, DESCRIBED, {"flows": 5, "parameters.flows": 3})
    assert load == ConfiguredWorkload.of(Workload("filter", TrafficProfile(5, 64)), {"rules": 7, "flows": 3})
    assert loads_at(sweep({"nf": "counter"}, "flows"), DESCRIBED, {"flows": 5}) == (
        Workload("counter", TrafficProfile(5, 512)),
    )


def test_keys_of_competitors_change_all_of_that_name() -> None:
    """A bench with two copies, and an NF whose traffic is varied."""
    competitors = [
        {"bench": "mem-bench", "count": 2, "parameters": {"wss_mb": 1}},
        {"nf": "counter", "packet_size": 100},
    ]
    spec = sweep({"nf": "filter", "competitors": competitors}, "mem-bench.access_mops", "counter.flows")
    assert faults(spec) == []
    bench = BenchLoad.of("mem-bench", {"wss_mb": 1, "access_mops": 4})
    assert loads_at(spec, DESCRIBED, {"mem-bench.access_mops": 4, "counter.flows": 6}) == (
        Workload("filter", TrafficProfile(1000, 512)), bench, bench, Workload("counter", TrafficProfile(6, 100)),
    )  # fmt: skip


def test_a_dot_in_the_name_of_a_competitor_does_no_harm() -> None:
    """The longest name that a key begins with is its owner."""
    workload = sweep({"nf": "x", "competitors": [{"nf": "v1"}, {"nf": "v1.2"}]}, "flows").workload
    assert target_of("v1.2.flows", workload) == KeyTarget("v1.2", "traffic", "flows")
    assert target_of("v1.rules", workload) == KeyTarget("v1", "parameters", "rules")
    assert target_of("rules", workload) == KeyTarget("", "parameters", "rules")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (sweep({"nf": "count"}, "flows"), "workload.nf: toy has no count"),
        (sweep({"nf": "counter", "mtbr": 5}, "flows"), "workload.mtbr: mtbr 5 is outside [0, 0] of toy"),
        (sweep({"nf": "counter"}, "packet_size"), "vary.0.from: packet_size 1 is outside [64, 1500] of toy"),
        (sweep({"nf": "counter"}, "rules"), "vary.0.key: counter has no rules"),
        (sweep({"nf": "filter"}, "ruls"), "vary.0.key: filter has no ruls"),
        (sweep({"nf": "filter", "parameters": {"rules": 0}}, "flows"),
            "workload.parameters.rules: rules 0 is outside [1, 1000] of toy"),
        (sweep({"nf": "filter"}, "rules", "parameters.rules"), "vary.1.key: parameters.rules is varied twice"),
        (sweep({"nf": "counter", "competitors": [{"nf": "counter", "count": 3}]}, "flows"),
            "workload: needs 8 cores, the NIC of toy has 6"),
        (sweep({"nf": "counter", "competitors": [{"bench": "mem", "parameters": {}}]}, "flows"),
            "workload.competitors.0.bench: toy has no mem"),
        (sweep({"nf": "counter", "competitors": [{"bench": "mem-bench", "parameters": {"wss_mb": 1}}]}, "flows"),
            "workload.competitors.0: mem-bench needs parameter access_mops"),
        (sweep({"nf": "counter"}, "flows", measure={"metrics": ["cycles_per_packet"]}),
            "measure.metrics: cycles_per_packet is not known"),
    ],
)  # fmt: skip
def test_what_the_testbed_does_not_accept_is_named(spec: SweepSpec, message: str) -> None:
    """One fault each, before anything runs."""
    assert faults(spec)[0] == message and len({fault.split(":")[0] for fault in faults(spec)}) <= 2


def test_a_real_testbed_judges_parameters_that_it_does_not_describe() -> None:
    """It may know more than it describes; a simulation does not."""
    assert faults(sweep({"nf": "counter"}, "rules"), description(simulated=False)) == []
