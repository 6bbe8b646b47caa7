"""Waste: the room that idles at the fleet's fullest moment, by what keeps it from being used.

Idle cores are counted as shares of a NIC, so that what is wasted is the NICs in use less what their tenants' cores
would fill.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from placer.model.arrival import Arrival
from placer.model.fleet import Fleet, Nic, NicKind, Tenant
from placer.model.oracle import CoLocation, Oracle, co_location_of
from placer.model.replay import events_of
from placer.policy.rules import Rule
from placer.policy.selector import Selector
from profiles import Workload

CORES, TIGHT, ORDER = "cores", "SLA too tight to share", "order of arrival"
"""Too few cores left for any NF; a tenant that bears nobody beside it; and room that one of the arrivals could use."""


@dataclass(frozen=True)
class Waste:
    """Idle room at the fullest moment.

    Parameters
    ----------
    nics
        NICs in use.
    filled
        NICs that the tenants' cores would fill.
    idle
        The difference in NICs by cause: `cores`, a resource on which a tenant would lose too much, `SLA too tight to
        share`, or `order of arrival`.
    """

    nics: int
    filled: float
    idle: dict[str, float]


def waste_of(arrivals: Sequence[Arrival], kinds: Sequence[NicKind], oracles: Sequence[Oracle], rule: Rule) -> Waste:
    """Place the arrivals as the rule says, and split what idles when most NICs are in use."""
    fleet = Fleet(kinds)
    in_use = [(0, 0), *_play(fleet, Selector(fleet, oracles, rule), arrivals)]
    peak = max(range(len(in_use)), key=in_use.__getitem__)
    fleet = Fleet(kinds)
    _play(fleet, Selector(fleet, oracles, rule), arrivals, peak)
    loosest = [_loosest(arrivals, oracle, kind) for kind, oracle in zip(kinds, oracles, strict=True)]
    idle: dict[str, float] = defaultdict(float)
    filled = 0.0
    for nic in fleet.nics.values():
        free = nic.kind.cores - nic.kind.cores_taken(nic.co_location)
        filled += 1 - free / nic.kind.cores
        if free:
            idle[_cause(nic, free, loosest[nic.kind.index], oracles[nic.kind.index])] += free / nic.kind.cores
    return Waste(len(fleet.nics), filled, dict(sorted(idle.items(), key=lambda one: -one[1])))


def _play(
    fleet: Fleet, selector: Selector, arrivals: Sequence[Arrival], events: int | None = None
) -> list[tuple[int, int]]:
    """Let the first events happen, all for None; NICs in use and tenants after each."""
    counts: list[tuple[int, int]] = []
    for event in events_of(arrivals):
        if len(counts) == events:
            break
        arrival = arrivals[event.index]
        if event.departs:
            if fleet.nic_of(arrival.id) is not None:
                fleet.remove(arrival.id)
        else:
            selector.observe(arrival.tenant)
            choice = selector.choose(arrival.tenant)
            nic = fleet.open(choice) if isinstance(choice, NicKind) else choice
            if nic is not None:
                fleet.place(arrival.tenant, nic)
        counts.append((len(fleet.nics), fleet.tenants))
    return counts


def _loosest(arrivals: Sequence[Arrival], oracle: Oracle, kind: NicKind) -> list[Tenant]:
    """Of each workload that the kind hosts, the arrival that bears most."""
    loosest: dict[Workload, tuple[float, Tenant]] = {}
    for arrival in arrivals:
        if kind.hosts(arrival.workload):
            required = arrival.sla.required_kpps(oracle.solo(arrival.workload))
            if arrival.workload not in loosest or required < loosest[arrival.workload][0]:
                loosest[arrival.workload] = required, arrival.tenant
    return [tenant for _, tenant in loosest.values()]


def _cause(nic: Nic, free: int, arriving_tenants: Sequence[Tenant], oracle: Oracle) -> str:
    """Why the free cores of a NIC idle: the mildest thing that somebody of the trace would have broken there."""
    small = [tenant for tenant in arriving_tenants if nic.kind.cores_of[tenant.workload.nf] <= free]
    if not small:
        return CORES
    co_locations = [co_location_of((*nic.co_location, tenant.workload)) for tenant in small]
    oracle.throughput(co_locations)
    mildest: tuple[float, Tenant, CoLocation] | None = None
    for arriving, co_location in zip(small, co_locations, strict=True):
        margins = [(_margin(oracle, co_location, tenant), tenant) for tenant in (*nic.tenants, arriving)]
        worst, tenant = min(margins, key=lambda one: one[0])
        if worst >= 0:
            return ORDER
        if mildest is None or worst > mildest[0]:
            mildest = worst, tenant, co_location
    assert mildest is not None
    _, tenant, co_location = mildest
    return TIGHT if _bears_nobody(tenant, arriving_tenants, oracle) else oracle.bottleneck(co_location, tenant.workload)


def _bears_nobody(tenant: Tenant, arriving_tenants: Sequence[Tenant], oracle: Oracle) -> bool:
    pairs = [co_location_of((tenant.workload, other.workload)) for other in arriving_tenants]
    oracle.throughput(pairs)
    return all(_margin(oracle, pair, tenant) < 0 for pair in pairs)


def _margin(oracle: Oracle, co_location: CoLocation, tenant: Tenant) -> float:
    """How far the tenant is above its SLA in the company, as a share of what it requires."""
    required = tenant.sla.required_kpps(oracle.solo(tenant.workload))
    return oracle.by_workload(co_location)[tenant.workload] / required - 1.0 if required else float("inf")
