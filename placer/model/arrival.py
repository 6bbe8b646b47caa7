"""An arrival: an NF instance that needs a NIC from some time on, or already runs on one."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from placer.model.fleet import Fleet
from placer.model.groups import UNCONSTRAINED, Constraints
from placer.model.nic import NUMBERED_NIC_ID, Tenant, number_in
from placer.model.nic_kind import NicKind
from placer.model.sla import Sla
from profiles import Workload
from profiles.faults import MOST_SHOWN_FAULTS, suggestion


@dataclass(frozen=True, slots=True)
class Arrival:
    """An NF instance that is to be placed, or that already runs and stays where it is.

    `id`: the instance. `time`: when it arrives, seconds; of an instance that already runs it has no effect. `workload`:
    what it runs, with the rate that is offered to it and the latency that its packets are promised, if any. `sla`: its
    SLA. `departure`: when it leaves, seconds; None for never. `nic`: the NIC on which it already runs, from before the
    first arrival; None where it is to be placed. `day`: per part of the day, the share of its rate that is offered to
    it; empty for the whole rate all day. `constraints`: what it demands of its place beside throughput. `priority`: how
    much it matters where NICs are too few, the higher the more."""

    id: str
    time: float
    workload: Workload
    sla: Sla
    departure: float | None = None
    nic: str | None = None
    day: tuple[float, ...] = ()
    constraints: Constraints = UNCONSTRAINED
    priority: int = 0

    @property
    def begins(self) -> float:
        """When its stay begins, seconds: at its arrival, or before all events."""
        return self.time if self.nic is None else -math.inf

    def required_kpps(self, solo_kpps: float) -> float:
        """As of `Tenant`."""
        return self.sla.required_kpps(solo_kpps, self.workload.rate_kpps)

    @property
    def tenant(self) -> Tenant:
        """The instance as a tenant of a NIC."""
        return Tenant(
            self.id, self.workload, self.sla, day=self.day, constraints=self.constraints, priority=self.priority
        )


def have_priorities(arrivals: Iterable[Arrival | Tenant]) -> bool:
    """Whether instances differ in priority."""
    return len({arrival.priority for arrival in arrivals}) > 1


def losses_of(rejected: Iterable[Arrival | Tenant]) -> list[int]:
    """The priorities of those without a NIC, the highest first: of two plans for a trace, the lower one loses less."""
    return sorted((tenant.priority for tenant in rejected), reverse=True)


def loses_no_more(rejected: Iterable[Arrival | Tenant], others: Iterable[Arrival | Tenant]) -> bool:
    """Whether no priority has more rejected than others, so that a bound with these others holds."""
    return not Counter(tenant.priority for tenant in rejected) - Counter(tenant.priority for tenant in others)


def have_loads(arrivals: Iterable[Arrival]) -> bool:
    """Whether an instance has an offered rate."""
    return any(not arrival.workload.is_saturated for arrival in arrivals)


# Instances that already run: the NIC of each, and what no fleet can have.
#
# They are on their NICs before the first event of a trace, and nobody moves them. SLAs that they break among themselves
# are reported, and no further arrival joins them there.


@dataclass(frozen=True, slots=True)
class RunningNic:
    """A NIC on which instances already run: its name, its kind, and those instances."""

    id: str
    kind: NicKind
    tenants: tuple[Tenant, ...]


class NamedNics:
    """The kind of each NIC that a trace may name: NICs with a name, and others in a fleet of one kind."""

    def __init__(self, kinds: Sequence[NicKind]) -> None:
        self.by_name = {name: kind for kind in kinds for name in kind.names}
        self._only = kinds[0] if len(kinds) == 1 else None

    def kind_of(self, nic_id: str) -> NicKind | None:
        """The kind of the NIC; None where the fleet does not say. Where NICs have names, the others are numbered."""
        named = self.by_name.get(nic_id)
        if named is None and (not self.by_name or NUMBERED_NIC_ID.fullmatch(nic_id)):
            return self._only
        return named

    def like(self, nic_id: str) -> str:
        """What to do about a name that no NIC has."""
        if not self.by_name:
            return "give NICs names in the fleet file: names = [...]"
        found = suggestion(nic_id, self.by_name)
        few = len(self.by_name) <= MOST_SHOWN_FAULTS or found.startswith("did")
        return found if few else f"the fleet file has {len(self.by_name):,} names"


def running_nics(arrivals: Sequence[Arrival], kinds: Sequence[NicKind]) -> list[RunningNic]:
    """The NICs of all instances that already run, in the order in which the trace names them."""
    tenants: dict[str, list[Tenant]] = defaultdict(list)
    for arrival in arrivals:
        if arrival.nic is not None:
            tenants[arrival.nic].append(arrival.tenant)
    named, found = NamedNics(kinds), []
    for nic_id, on_nic in tenants.items():
        kind = named.kind_of(nic_id)
        if kind is None:
            raise ValueError(f"The fleet does not say of which kind {nic_id} is.")
        found.append(RunningNic(nic_id, kind, tuple(on_nic)))
    return found


def settle_running(arrivals: Sequence[Arrival], fleet: Fleet) -> None:
    """Place the instances that already run, before the first event of the trace.

    NICs called `nic-N` come first: they have the number N, which others then do not get.
    """
    for nic in sorted(running_nics(arrivals, fleet.kinds), key=lambda nic: number_in(nic.id) is None):
        opened = fleet.open(nic.kind, nic.id)
        for tenant in nic.tenants:
            fleet.place(tenant, opened)


def running_faults(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind], where: Callable[[Arrival], str]
) -> Iterator[tuple[Arrival, str, str | None]]:
    """What is wrong with the NICs that the trace names: the instance, the message, and what to do about it.

    `where` says in messages which instance is meant.
    """
    named = NamedNics(kinds)
    on_nic: dict[str, list[Arrival]] = defaultdict(list)
    numbered: Counter[int] = Counter()
    unknown = 0
    for arrival in arrivals:
        nic_id = arrival.nic
        if nic_id is None:
            continue
        kind = named.kind_of(nic_id)
        if kind is None:
            unknown += 1
            hint = named.like(nic_id) if unknown <= MOST_SHOWN_FAULTS else None
            yield arrival, f"'{nic_id}' is no NIC of the fleet", hint
            continue
        if nic_id not in on_nic and nic_id not in named.by_name:
            numbered[kind.index] += 1
            if kind.count is not None and numbered[kind.index] > kind.count - len(kind.names):
                message = f"'{nic_id}' would be one NIC more than the {kind.count:,} of the fleet"
                yield arrival, message, "raise count in the fleet file"
        if not kind.hosts(arrival.workload):
            yield arrival, f"'{arrival.workload.nf}' does not run on '{nic_id}', a {kind.model}", None
            continue
        before, taken = on_nic[nic_id], kind.cores_for(arrival.workload)
        used = kind.cores_taken(other.workload for other in before)
        if used + taken > kind.cores and used <= kind.cores:
            others = ", ".join(where(other) for other in before)
            message = f"'{nic_id}' has {kind.cores} cores, and {used + taken} are taken together with {others}"
            yield arrival, message, None
        before.append(arrival)
