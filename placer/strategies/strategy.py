"""What a strategy is, and how one drives a trace of arrivals."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet, Nic, NicKind, Tenant
from placer.model.oracle import Oracle
from placer.model.plan import Placement, Plan
from placer.model.replay import events_of

Progress = Callable[[int, int], None]
"""Told how many of how many steps are done."""

registered: dict[str, type[Strategy]] = {}


class Strategy(ABC):
    """A way to place arrivals.

    Parameters
    ----------
    catalogue
        The kinds of NIC and what is known of them.
    predictor
        The name of the predictor to look at, where `needs_predictor`.
    """

    name: ClassVar[str]
    needs_predictor: ClassVar[bool] = False

    def __init__(self, catalogue: Catalogue, predictor: str | None = None) -> None:
        self.catalogue = catalogue
        self.predictor = predictor if self.needs_predictor else None

    @abstractmethod
    def place(self, arrivals: Sequence[Arrival], progress: Progress | None = None) -> Plan:
        """A plan for all arrivals."""


class OnlineStrategy(Strategy):
    """A strategy that decides one arrival at a time and never moves what it placed. It keeps no fleet state."""

    @abstractmethod
    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        """The NIC in use on which to put the tenant, the kind of which to open another NIC, or None to reject it."""

    def reason(self, tenant: Tenant) -> str:
        """What there is to choose from for the tenant, in words; empty where nobody can tell."""
        return ""

    def begin(self, fleet: Fleet) -> None:
        """Prepare for an empty fleet, before the first arrival."""

    def place(self, arrivals: Sequence[Arrival], progress: Progress | None = None) -> Plan:
        fleet = Fleet(self.catalogue.kinds)
        self.begin(fleet)
        placements = [Placement(arrival) for arrival in arrivals]
        begun = time.perf_counter()
        for event in events_of(arrivals):
            arrival = arrivals[event.index]
            if event.departs:
                if fleet.home_of(arrival.id):
                    fleet.remove(arrival.id)
                continue
            choice, reason = self.choose(fleet, arrival.tenant), self.reason(arrival.tenant)
            placements[event.index] = Placement(arrival, reason=reason)
            if choice is not None:
                nic = fleet.open(choice) if isinstance(choice, NicKind) else choice
                fleet.place(arrival.tenant, nic)
                placements[event.index] = Placement(arrival, nic.id, nic.kind, reason)
            if progress:
                progress(event.index + 1, len(arrivals))
        return Plan(self.name, self.predictor, tuple(placements), time.perf_counter() - begun)

    def cheapest_new(self, fleet: Fleet, tenant: Tenant, oracles: Sequence[Oracle] | None = None) -> NicKind | None:
        """The cheapest kind that can be opened, hosts the NF and, told by the oracles if given, meets its SLA alone."""
        for kind in fleet.available():
            if kind.hosts(tenant.workload):
                if oracles is None:
                    return kind
                solo = oracles[kind.index].solo(tenant.workload)
                if tenant.sla.is_met(solo, solo):
                    return kind
        return None


_S = TypeVar("_S", bound=type[Strategy])


def register(strategy: _S) -> _S:
    """Make the strategy known under its name."""
    registered[strategy.name] = strategy
    return strategy
