"""Waste: the capacity that is unused when most NICs are in use, by cause. Idle cores are counted as shares of a NIC:
the waste is the number of NICs in use, less the number that the cores of their tenants would fill."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from placer.explain.candidates import RuleChoice
from placer.model.arrival import Arrival, settle_running
from placer.model.feasibility import fits, tenant_margin
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, co_location_of
from placer.model.plan import replay
from placer.policy.rejection import Cause
from placer.policy.rules import Rule, length_of
from profiles import CoLocation, Workload


@dataclass(frozen=True)
class Waste:
    """Unused capacity at the peak. `nics`: NICs in use. `filled`: the used cores, counted in NICs. `idle`: the
    difference in NICs by cause: `Cause.CORES`, the resource on which an NF would lose too much, `Cause.LINE_RATE`,
    `Cause.TIGHT_SLA`, or `Cause.ORDER`."""

    nics: int
    filled: float
    idle: dict[str, float]


def waste_of(arrivals: Sequence[Arrival], kinds: Sequence[NicKind], oracles: Sequence[Oracle], rule: Rule) -> Waste:
    """Place the arrivals by the rule, and split by cause what is unused when most NICs are in use."""
    in_use = [(len(fleet.nics), fleet.tenants) for fleet in _fleets(arrivals, kinds, oracles, rule)]
    peak = max(range(len(in_use)), key=in_use.__getitem__)
    fleet = next(islice(_fleets(arrivals, kinds, oracles, rule), peak, None))
    candidates = [arrival for arrival in arrivals if arrival.nic is None] or arrivals
    loosest = [_loosest(candidates, oracle, kind) for kind, oracle in zip(kinds, oracles, strict=True)]
    idle: dict[str, float] = defaultdict(float)
    filled = 0.0
    for nic in fleet.nics.values():
        free = nic.kind.cores - nic.kind.cores_taken(nic.co_location)
        filled += 1 - free / nic.kind.cores
        if free:
            idle[_cause(nic, free, loosest[nic.kind.index], oracles[nic.kind.index])] += free / nic.kind.cores
    return Waste(len(fleet.nics), filled, dict(sorted(idle.items(), key=lambda one: -one[1])))


def _fleets(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind], oracles: Sequence[Oracle], rule: Rule
) -> Iterator[Fleet]:
    """The same fleet before the first event of the trace, and after each."""
    fleet = Fleet(kinds)
    settle_running(arrivals, fleet)
    placing = RuleChoice(fleet, oracles, rule, length_of(arrivals))
    arrivals = list(arrivals)

    def choose(index: int) -> Nic | NicKind | None:
        choice, workload = placing.choose(arrivals[index].tenant)
        arrivals[index] = replace(arrivals[index], workload=workload)
        return choice

    yield fleet
    for _ in replay(arrivals, fleet, choose):
        yield fleet


def _loosest(arrivals: Sequence[Arrival], oracle: Oracle, kind: NicKind) -> list[Tenant]:
    """Of each workload that the kind hosts, on each number of cores, the arrival with the loosest SLA."""
    loosest: dict[Workload, tuple[float, Tenant]] = {}
    for arrival in arrivals:
        for workload in kind.choices(arrival.workload) if kind.hosts(arrival.workload) else ():
            required = arrival.required_kpps(oracle.solo(workload))
            if workload not in loosest or required < loosest[workload][0]:
                loosest[workload] = required, replace(arrival.tenant, workload=workload)
    return [tenant for _, tenant in loosest.values()]


def _cause(nic: Nic, free: int, candidates: Sequence[Tenant], oracle: Oracle) -> str:
    """Why free cores are unused: the smallest violation that one of the candidates would have caused there."""
    small = [tenant for tenant in candidates if nic.kind.cores_for(tenant.workload) <= free]
    if not small:
        return Cause.CORES
    small = [tenant for tenant in small if fits(nic.kind, (*nic.co_location, tenant.workload))]
    if not small:
        return Cause.LINE_RATE
    co_locations = [co_location_of((*nic.co_location, tenant.workload)) for tenant in small]
    oracle.throughput(co_locations)
    smallest: tuple[float, Tenant, CoLocation] | None = None
    for candidate, co_location in zip(small, co_locations, strict=True):
        margins = [(tenant_margin(oracle, co_location, tenant), tenant) for tenant in (*nic.tenants, candidate)]
        worst, tenant = min(margins, key=lambda one: one[0])
        if worst >= 0:
            return Cause.ORDER
        if smallest is None or worst > smallest[0]:
            smallest = worst, tenant, co_location
    assert smallest is not None
    _, tenant, co_location = smallest
    tight = _cannot_share(tenant, candidates, oracle)
    return Cause.TIGHT_SLA if tight else oracle.bottleneck(co_location, tenant.workload)


def _cannot_share(tenant: Tenant, candidates: Sequence[Tenant], oracle: Oracle) -> bool:
    """Whether the SLA of the tenant is violated next to every single candidate."""
    pairs = [co_location_of((tenant.workload, other.workload)) for other in candidates]
    oracle.throughput(pairs)
    return all(tenant_margin(oracle, pair, tenant) < 0 for pair in pairs)
