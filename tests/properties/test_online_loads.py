"""Instances with rates and cores, in any order of events: what is used is added up, and a restart changes nothing."""

import tempfile
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, event_line
from placer.fleet.events import Arrive, Change, Depart, Drain, Fail, FleetEvent, Rebalance, Refused, Return
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import WHEN_FULL
from placer.fleet.state.store import State
from placer.fleet.what_if import WhatIf, complete
from placer.model.fleet import Fleet
from placer.model.gpu_oracle import GpuOracle
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.sla import Sla
from placer.policy.rules import RULES_BY_NAME
from profiles import TrafficProfile, Workload
from tests.effort import examples
from tests.placer.fleet.loaded_oracle import CORE_COUNTS, DEFAULT_CORES, PORT_GBPS, LoadedOracle, loaded_kind
from tests.placer.toy_gpu import WORKERS, ToyAdmission, mixed

TRAFFIC = TrafficProfile(1e3, 1500.0)
RATES = st.sampled_from([inf, 30.0, 45.0, 90.0, 95.0, 130.0, 190.0, 260.0, 380.0])
SLAS = st.sampled_from([0.0, 0.05, 0.2, 0.6]).map(lambda drop: Sla(max_drop=drop))
FLEETS = st.sampled_from([((None, 8),), ((2, 8),), ((1, 4), (2, 8)), ((2, 6), (None, 4))])
LATENCIES = st.sampled_from([inf, inf, 90.0, 35.0])


class OnlineLoads(RuleBasedStateMachine):
    """A fleet of NICs and GPUs, whose log is decided on once more now and then."""

    @initialize(
        fleet=FLEETS,
        gpus=st.sampled_from([0, 1, 3]),
        rule=st.sampled_from(list(RULES_BY_NAME.values())),
        when_full=st.sampled_from(WHEN_FULL),
    )
    def begin(self, fleet: tuple[tuple[int | None, int], ...], gpus: int, rule: object, when_full: str) -> None:
        self.kinds = [loaded_kind(index, count, cores) for index, (count, cores) in enumerate(fleet)]
        self.kinds += [replace(mixed(gpus).kinds[1], index=len(fleet))] if gpus else []
        self.options: dict[str, Any] = {"rule": rule, "when_full": when_full}
        self.folder = tempfile.TemporaryDirectory()
        self.state = State(Path(self.folder.name) / "state.db", self.kinds)
        self.engine = self.new_engine()
        self.log: list[tuple[str, str]] = []
        self.given: dict[str, int] = {}
        self.at_risk: set[str] = set()
        self.arrivals = 0

    def new_engine(self) -> Engine:
        return Engine(Fleet(self.kinds), list(map(_oracle, self.kinds)), **self.options)

    def tenants(self) -> dict[str, Tenant]:
        return {**{tenant.id: tenant for tenant in self.engine.fleet.all_tenants()}, **self.engine.waiting}

    def handle(self, event: FleetEvent) -> None:
        """Decide; only the instance of the event, and those that waited for their first cores, may get other cores."""
        before = self.tenants()
        try:
            decision = self.engine.handle(event)
        except Refused:
            assert self.tenants() == before
            return
        self.state.record(event, decision, self.engine.fleet)
        self.log.append((event_line(event), decision_line(event, decision)))
        own = event.tenant.id if isinstance(event, Arrive) else event.id if isinstance(event, Change) else None
        for identity, tenant in self.tenants().items():
            if identity != own and before[identity] != tenant:
                assert before[identity] == tenant.asked
        assert isinstance(event, Change) or decision.status != "resized"
        self.at_risk |= set(decision.at_risk)

    @rule(
        nf=st.sampled_from("ab"), rate=RATES, cores=st.sampled_from([0, 0, 1, 2]), latency=LATENCIES, sla=SLAS,
        ask=st.booleans(),
    )  # fmt: skip
    def arrive(self, nf: str, rate: float, cores: int, latency: float, sla: Sla, ask: bool) -> None:
        """What is asked before is what is decided then."""
        self.arrivals += 1
        latency = latency if rate < inf else inf
        workload = Workload(nf, TRAFFIC, rate, cores=cores, latency_us=latency)
        tenant = Tenant(f"nf-{self.arrivals}", workload, sla)
        places = complete(WhatIf(self.engine).places(tenant)) if ask else []
        if cores:
            self.given[tenant.id] = cores
        self.handle(Arrive(tenant))
        home = self.engine.fleet.nic_of(tenant.id)
        if places:
            assert home is not None and places[0].nic == home.id

    @precondition(lambda self: self.tenants())
    @rule(data=st.data(), rate=RATES | st.none(), cores=st.sampled_from([0, 0, 0, 1, 2]), sla=SLAS | st.none())
    def change(self, data: st.DataObject, rate: float | None, cores: int, sla: Sla | None) -> None:
        """Its new number of cores is not given, unless it is now or was before."""
        chosen = data.draw(st.sampled_from(sorted(self.tenants())))
        before = self.engine.workload_of(chosen)
        assert before is not None
        given = (*(("rate_kpps",) if rate is not None else ()), *(("cores",) if cores else ()))
        after = replace(before, rate_kpps=rate or before.rate_kpps, cores=cores or before.cores)
        if after.promises_latency and after.is_saturated:
            return  # the service refuses a promised latency without a rate
        event = Change(chosen, after if given else None, sla, given)
        if given or sla is not None:
            count = len(self.log)
            self.handle(event)
            if cores and len(self.log) > count:
                self.given[chosen] = cores

    @precondition(lambda self: self.tenants())
    @rule(data=st.data())
    def depart(self, data: st.DataObject) -> None:
        self.handle(Depart(data.draw(st.sampled_from(sorted(self.tenants())))))

    @precondition(lambda self: len(self.engine.fleet.nics))
    @rule(data=st.data(), fails=st.booleans())
    def withdraw(self, data: st.DataObject, fails: bool) -> None:
        nic = data.draw(st.sampled_from(sorted(nic.id for nic in self.engine.fleet.nics.values())))
        self.handle(Fail(nic) if fails else Drain(nic))

    @precondition(lambda self: self.engine.fleet.out_of_service)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        self.handle(Return(data.draw(st.sampled_from(sorted(self.engine.fleet.out_of_service)))))

    @rule()
    def rebalance(self) -> None:
        self.handle(Rebalance(3))

    @rule()
    def restart(self) -> None:
        """The log leads to the same answers and the same fleet, and so does the file."""
        again = self.new_engine()
        reader = Reader(TRAFFIC, lambda workload: (), again.workload_of, of_log=True)
        for line, answer in self.log:
            event = reader.read(line)
            assert decision_line(event, again.handle(event)) == answer
        self.state.close()
        self.state = State(Path(self.folder.name) / "state.db", self.kinds)
        for fleet, waiting in ((again.fleet, again.waiting), (self.state.fleet, {t.id: t for t in self.state.waiting})):
            assert _homes(fleet) == _homes(self.engine.fleet) and waiting == self.engine.waiting
        self.engine = again

    @invariant()
    def nothing_is_exceeded(self) -> None:
        """Cores and ports are as large as what is on them, and cores that were given are those that are there."""
        for nic in self.engine.fleet.nics.values() if hasattr(self, "engine") else ():
            workloads = [tenant.workload for tenant in nic.tenants]
            if nic.kind.paced:
                assert len(workloads) <= WORKERS
                continue
            cores = [one.cores or DEFAULT_CORES[one.nf] for one in workloads]
            assert sum(cores) <= nic.kind.cores
            assert sum(one.rate_kpps * 1520 * 8e-6 for one in workloads if one.rate_kpps < inf) <= PORT_GBPS * (
                1 + 1e-9
            )
            for tenant, count in zip(nic.tenants, cores, strict=True):
                assert count == self.given.get(tenant.id, count)
                assert count in CORE_COUNTS[tenant.workload.nf]

    @invariant()
    def slas_are_met(self) -> None:
        """Of all but those that an answer said to be at risk."""
        below = (
            {one for nic in self.engine.fleet.nics.values() for one in _below(nic)}
            if hasattr(self, "engine")
            else set()
        )
        assert below <= getattr(self, "at_risk", set())
        self.at_risk = below

    def teardown(self) -> None:
        if hasattr(self, "state"):
            self.state.close()
            self.folder.cleanup()


def _homes(fleet: Fleet) -> dict[str, tuple[str, Tenant]]:
    return {tenant.id: (nic.id, tenant) for nic in fleet.nics.values() for tenant in nic.tenants}


def _oracle(kind: NicKind) -> Oracle:
    return GpuOracle(ToyAdmission()) if kind.paced else LoadedOracle()


def _below(nic: Nic) -> list[str]:
    """Tenants whose SLA is violated."""
    co_location = tuple(tenant.workload for tenant in nic.tenants)
    oracle = _oracle(nic.kind)
    (together,) = oracle.throughput([co_location])
    found = zip(nic.tenants, together, [oracle.solo(workload) for workload in co_location], strict=True)
    return [tenant.id for tenant, kpps, solo in found if not tenant.is_met(kpps, solo)]


TestOnlineLoads = OnlineLoads.TestCase
TestOnlineLoads.settings = settings(max_examples=examples(25), stateful_step_count=30)
