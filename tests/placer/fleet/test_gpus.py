"""NICs and GPUs in one running fleet: what `run` decides, and events on GPUs. The GPU is that of `toy_gpu`."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line
from placer.fleet.event_shapes import Malformed
from placer.fleet.events import Arrive, Change, Depart, Fail, Rebalance, Return, Where
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.service.opening import take_over
from placer.fleet.state.store import State
from placer.fleet.what_if import WhatIf, complete
from placer.model.arrival import Arrival
from placer.model.fleet import Fleet
from placer.model.oracle import Oracle
from placer.model.plan import Placement, Plan
from placer.model.sla import Sla
from placer.policy.selector import Selector
from placer.strategies.contention_aware import ContentionAware
from placer.testing.strategies import TOY_TRAFFIC
from profiles import Workload
from tests.placer.fleet.loaded_oracle import LoadedOracle, loaded_kind
from tests.placer.toy_gpu import MixedCatalogue, mixed, promised


class LoadedCatalogue(MixedCatalogue):
    """NICs on which NFs have several numbers of cores, beside toy GPUs."""

    def oracles(self, predictor: str) -> tuple[Oracle, ...]:
        return tuple(self.gpus.get(kind.index) or LoadedOracle() for kind in self.kinds)


def loaded(nics: int | None = None, gpus: int | None = 2) -> LoadedCatalogue:
    gpu = mixed(gpus)
    return LoadedCatalogue((loaded_kind(0, nics), gpu.kinds[1]), (), (), gpus=gpu.gpus)


def engine(catalogue: MixedCatalogue, **options: object) -> Engine:
    return Engine(Fleet(catalogue.kinds), catalogue.oracles("toy"), **options)  # type: ignore[arg-type]


def saturated(identity: str, nf: str, time: float) -> Arrival:
    return Arrival(identity, time, Workload(nf, TOY_TRAFFIC), Sla(max_drop=0.1))


def offered(identity: str, nf: str, rate: float, time: float = 0.0) -> Arrival:
    """An instance with a rate and no promised latency, all of whose packets must be carried."""
    return Arrival(identity, time, Workload(nf, TOY_TRAFFIC, rate), Sla(max_drop=0.0))


def draw(seed: int, latencies: bool) -> list[Arrival]:
    chance = random.Random(seed)
    found = []
    for at in range(40):
        name, time = str(at), float(at)
        if latencies and chance.random() < 0.4:
            found.append(saturated(name, chance.choice("abcd"), time))
        elif latencies:
            rate, latency = chance.choice([50.0, 200.0, 300.0]), chance.choice([30.0, 45.0, 60.0, 90.0])
            found.append(promised(name, chance.choice("ac"), rate, latency, time))
        else:
            found.append(offered(name, chance.choice("ab"), chance.choice([40.0, 95.0, 130.0, 180.0]), time))
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("latencies", [True, False])
def test_a_running_fleet_decides_as_run_does(seed: int, latencies: bool) -> None:
    """NIC and cores of each arrival, where the fleet predicts co-locations before it decides, as `run` does."""
    catalogue = mixed(2, nics=6) if latencies else loaded(6)
    trace = draw(seed, latencies)
    planned = ContentionAware(catalogue, "toy", catalogue.oracles("toy")).place(trace).placements
    one = engine(catalogue)
    one.selector = Selector(one.fleet, one.oracles)
    for arrival in trace:
        one.handle(Arrive(arrival.tenant))
    homes = {arrival.id: one.fleet.nic_of(arrival.id) for arrival in trace}
    found = {name: (nic and nic.id, nic and nic.tenants_by_id[name].workload.cores) for name, nic in homes.items()}
    assert found == {each.arrival.id: (each.nic, each.nic and each.arrival.workload.cores) for each in planned}
    assert {nic.kind.model for nic in homes.values() if nic} == {kind.model for kind in catalogue.kinds}


def test_an_instance_has_the_same_cores_before_and_after_a_gpu() -> None:
    """180 kpps take 2 cores with room to spare; the GPU takes the instance when its NIC fails, and gives it back."""
    one = engine(loaded(1, 1), when_full=QUEUE)
    one.handle(Arrive(offered("1", "a", 180.0).tenant))
    nic = one.fleet.nic_of("1")
    assert nic is not None
    assert (nic.kind.index, nic.tenants_by_id["1"].workload.cores) == (0, 2)
    homes, cores = [], []
    for failed, back in (("nic-1", "nic-2"), ("nic-2", "nic-1")):
        homes += [(move.source, move.target) for move in one.handle(Fail(failed)).moves]
        cores.append(one.handle(Where("1")).cores)
        one.handle(Return(failed))
        assert one.fleet.nic_of("1") is one.fleet.nics[back]
    assert homes == [("nic-1", "nic-2"), ("nic-2", "nic-1")]
    assert cores == [1, 2]  # on the GPU, its worker
    assert one.fleet.cores_taken(one.fleet.kinds[0]) == 2


def test_a_rebalance_empties_a_nic_onto_a_gpu() -> None:
    """The GPU carries 1000 kpps: three `b` leave no room for `a`, which has to open a NIC, and one does."""
    one = engine(mixed(1))
    for name in "123":
        one.handle(Arrive(promised(name, "b", 330.0, 90.0).tenant))
    opened = one.handle(Arrive(promised("4", "a", 50.0, 90.0).tenant)).nic
    assert [nic.kind.model for nic in one.fleet.nics.values()] == ["toy-gpu", "toy"]
    for name in "12":
        one.handle(Depart(name))
    moves = one.handle(Rebalance(5)).moves
    assert [(move.id, move.source, move.target) for move in moves] == [("4", opened, "nic-1")]


def test_what_is_asked_names_the_gpu_that_is_taken() -> None:
    """A GPU in use, with its score, before one that would be opened."""
    one = engine(mixed(2, gpu_cost=0.5))
    one.handle(Arrive(promised("1", "a", 200.0, 90.0).tenant))
    arriving = promised("2", "a", 200.0, 90.0).tenant
    places = complete(WhatIf(one).places(arriving, top=2))
    assert [(place.nic, place.opens) for place in places] == [("nic-1", False), ("nic-2", True)]
    assert places[0].score is not None
    assert one.handle(Arrive(arriving)).nic == "nic-1"


def test_a_promise_that_the_gpu_does_not_keep_moves_the_instance_and_one_that_nothing_keeps_puts_it_at_risk() -> None:
    """The GPU takes 30 us; a NIC takes 10 us, and 10 more at a tenth of its capacity."""
    one = engine(mixed(1, gpu_cost=0.5, nics=1))
    tenant = promised("1", "a", 10.0, 35.0).tenant
    one.handle(Arrive(tenant))
    found = []
    for latency in (32.0, 29.0, 19.0, 40.0):
        workload = replace(tenant.workload, latency_us=latency)
        decision = one.handle(Change("1", workload, None, ("sla_latency_us",)))
        home = one.fleet.nic_of("1")
        found.append((decision.status, home and home.kind.model, decision.at_risk))
    assert found == [("kept", "toy-gpu", ()), ("moved", "toy", ()), ("at-risk", "toy", ("1",)), ("kept", "toy", ())]


def test_cores_of_a_plan_are_taken_and_are_chosen_anew_with_the_rate(tmp_path: Path) -> None:
    """The plan gives 4 cores where 1 would do; with another rate they fall to what is needed, also by the log."""
    kinds = loaded().kinds
    trace = [offered("1", "a", 40.0), offered("2", "a", 40.0)]
    sized = [
        replace(arrival, workload=replace(arrival.workload, cores=cores))
        for arrival, cores in zip(trace, (4, 2), strict=True)
    ]
    plan = Plan("by hand", None, tuple(Placement(arrival, "nic-1", kinds[0]) for arrival in sized), 0.0)
    with State(tmp_path / "s.db", kinds) as state:
        one = engine(loaded())
        assert take_over(plan, one, state, trace) == 0
        assert [one.handle(Where(name)).cores for name in "12"] == [4, 2]
        again = engine(loaded())
        reader = Reader(TOY_TRAFFIC, lambda workload: (), again.workload_of, of_log=True)
        for line, answer in state.log():
            event = reader.read(line)
            assert decision_line(event, again.handle(event)) == answer
    for each in (one, again):
        changed = each.handle(Change("1", replace(trace[0].workload, rate_kpps=39.0), None, ("rate_kpps",)))
        assert (changed.status, changed.cores) == ("resized", 1)


def test_only_a_plan_says_that_cores_were_chosen() -> None:
    """A client that did would have them changed."""
    reader = Reader(TOY_TRAFFIC, lambda workload: (), lambda identity: None)
    line = {"event": "arrive", "id": "1", "nf": "a", "rate_kpps": 40, "cores": 4, "free_cores": True}
    with pytest.raises(Malformed, match="free_cores: unknown key"):
        reader.read(json.dumps(line))
