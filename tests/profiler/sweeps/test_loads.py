"""Which loads run at a point, and what a testbed does not accept."""

from typing import Any

import pytest

from profiler.sweeps.loads import KeyTarget, faults_on_testbed, loads_at, target_of
from profiler.sweeps.spec import SweepSpec
from profiles import BenchLoad, ConfiguredWorkload, TestbedDescription, TrafficProfile, Workload
from tests.profiler.toy_testbed import description

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
