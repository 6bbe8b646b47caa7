"""What a strategy is, and the registry of all strategies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

from placer.model.arrival import Arrival, settle_running
from placer.model.catalogue import Catalogue
from placer.model.constraints import places_for
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Placement, Plan, replay
from placer.policy.cores import choose_with_cores
from placer.progress import Advance
from predictor.regression.compiled import running_s
from profiles import Workload
from profiles.registry import Registry

STRATEGIES: Registry[type[Strategy]] = Registry(
    "strategy",
    room="placer.strategies",
    group="placer.strategies",
    option="--strategy",
    first=("monopolization", "greedy", "contention-aware", "planned"),
)
"""Every strategy by name, each one file of this room, or an entry point of the group in another package."""


class Strategy(ABC):
    """A way to place arrivals.

    Parameters
    ----------
    catalogue
        The kinds of NIC and what is known of them.
    predictor
        The name of the predictor to use, where `needs_predictor`.

    Attributes
    ----------
    variants
        What `--strategy NAME:VARIANT` passes to the constructor, by variant; most strategies have none.
    name
        As on the command line, with the variant where one was named."""

    name: str
    needs_predictor: ClassVar[bool] = False
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def __init__(self, catalogue: Catalogue, predictor: str | None = None) -> None:
        self.catalogue = catalogue
        self.predictor = predictor if self.needs_predictor else None

    @classmethod
    def serves(cls, catalogue: Catalogue, predictor: str) -> bool:
        """Whether it can decide by the predictor; a strategy that needs to know how far one errs cannot by each."""
        return True

    @abstractmethod
    def place(self, arrivals: Sequence[Arrival], progress: Advance | None = None) -> Plan:
        """A plan for all arrivals; those that already run on a NIC are placed there."""


class OnlineStrategy(Strategy):
    """A strategy that decides one arrival at a time and never moves a tenant. It keeps no fleet state."""

    @abstractmethod
    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        """The NIC in use that takes the tenant, the kind of which to open another NIC, or None to reject it."""

    def choose_with_cores(self, fleet: Fleet, tenant: Tenant) -> tuple[Nic | NicKind | None, Workload]:
        """As `choose`, and the workload with the cores that it gets; a NIC in use is taken before one is opened."""
        return choose_with_cores(tenant, self.choices(tenant.workload), partial(self.choose, fleet))

    def choices(self, workload: Workload) -> Sequence[Workload]:
        """The workload on each number of cores that is tried, in order; a NIC in use is taken before one is opened.

        Unless a strategy knows better, it is as many cores as would be requested."""
        return [workload] if workload.is_saturated or workload.cores else [self.catalogue.request(workload)]

    def reason(self, tenant: Tenant) -> str:
        """How many NICs could take the tenant, in words; empty where the strategy does not know."""
        return ""

    def begin(self, fleet: Fleet) -> None:
        """Prepare for a fleet, before the first arrival; it has tenants where some of the trace already run."""

    def place(self, arrivals: Sequence[Arrival], progress: Advance | None = None) -> Plan:
        fleet = Fleet(self.catalogue.kinds)
        settle_running(arrivals, fleet)
        self.begin(fleet)
        placements = [Placement(arrival) for arrival in arrivals]
        reasons = [""] * len(arrivals)
        arrivals = list(arrivals)

        def choose(index: int) -> Nic | NicKind | None:
            arrival = arrivals[index]
            choice, workload = self.choose_with_cores(fleet, arrival.tenant)
            if workload is not arrival.workload:
                arrivals[index] = replace(arrival, workload=workload)
            reasons[index] = self.reason(arrivals[index].tenant)
            return choice

        began = running_s()
        for event, nic in replay(arrivals, fleet, choose):
            if event.departs:
                continue
            nic_id, kind = (nic.id, nic.kind) if nic is not None else (None, None)
            placements[event.index] = Placement(arrivals[event.index], nic_id, kind, reasons[event.index])
            if progress:
                progress(event.index + 1, len(arrivals))
        return Plan(self.name, self.predictor, tuple(placements), running_s() - began)

    def cheapest_new(self, fleet: Fleet, tenant: Tenant, oracles: Sequence[Oracle] | None = None) -> NicKind | None:
        """The cheapest kind that can be opened and runs the NF; with oracles, one on which it meets its SLA alone.

        Without, one on which it keeps the latency that is promised, if any."""
        places = places_for(fleet, tenant)
        for kind in fleet.available():
            if kind.hosts(tenant.workload) and (places is None or kind in places.to_open):
                if oracles is None:
                    if self.catalogue.serves_alone(kind, tenant.workload):
                        return kind
                    continue
                solo = oracles[kind.index].solo(tenant.workload)
                if tenant.is_met(solo, solo):
                    return kind
        return None


_S = TypeVar("_S", bound=type[Strategy])


def register(strategy: _S) -> _S:
    """A decorator that makes a strategy known under its name."""
    STRATEGIES.register(strategy.name)(strategy)
    return strategy
