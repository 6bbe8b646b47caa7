"""Checkers: one per constraint, which knows plans and arrivals but no strategy.

Each returns a sentence per fault; none shares code with what it checks. `placer run` checks every plan before it
reports a figure of it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import fsum, inf

from placer.model.arrival import Arrival
from placer.model.constraints import CONSTRAINTS
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, co_location_of
from placer.model.plan import Placement, Plan
from placer.model.sla import Sla
from profiles import Workload

ROUNDING = 1e-9  # a sum of rates may exceed a limit by so much of it, for the order in which they are added


class InvalidPlan(Exception):
    """A plan that violates a constraint: a fault of the strategy, never of the input."""


def check_plan(plan: Plan, arrivals: Sequence[Arrival], kinds: Sequence[NicKind]) -> None:
    """Hold a plan to every constraint that does not depend on throughput. Raises `InvalidPlan` with every fault."""
    faults = [
        *decide_once(plan, arrivals), *workloads_kept(plan, arrivals), *running_kept(plan, kinds),
        *one_kind_per_nic(plan), *cores_kept(plan), *line_rate_kept(plan), *counts_kept(plan, kinds),
        *constraints_kept(plan),
    ]  # fmt: skip
    if faults:
        raise InvalidPlan(f"strategy {plan.strategy} violates its constraints:\n" + "\n".join(faults))


def decide_once(plan: Plan, arrivals: Sequence[Arrival]) -> Iterator[str]:
    """Every arrival is placed or rejected exactly once, and no other instance is."""
    decided = Counter(placement.arrival.id for placement in plan.placements)
    known = {arrival.id for arrival in arrivals}
    for identity in sorted(known | set(decided)):
        times = decided[identity]
        if times != 1 or identity not in known:
            where = "in the trace" if identity in known else "not in the trace"
            yield f"{identity}, {where}: decided {times} times"


def workloads_kept(plan: Plan, arrivals: Sequence[Arrival]) -> Iterator[str]:
    """Every arrival is the one of the trace, but for cores that were to be chosen: those are a number of its NF."""
    known = {arrival.id: arrival for arrival in arrivals}
    for placement in plan.placements:
        given, asked, kind = placement.arrival, known.get(placement.arrival.id), placement.kind
        if asked is None or given is asked or given == asked:
            continue
        cores = given.workload.cores
        if replace(given, workload=replace(given.workload, cores=asked.workload.cores)) != asked:
            yield f"{given.id}: is another arrival in the plan than in the trace"
        elif asked.workload.cores or asked.workload.is_saturated:
            yield f"{given.id}: has {cores or 'default'} cores in the plan, and they were not to be chosen"
        elif kind is not None and not kind.paced and cores not in _core_counts(kind, given.workload.nf):
            yield f"{given.id}: {given.workload.nf} cannot have {cores} cores on a {kind.model}"


def _core_counts(kind: NicKind, nf: str) -> Sequence[int]:
    return kind.core_counts.get(nf) or [kind.cores_of[nf]]


def running_kept(plan: Plan, kinds: Sequence[NicKind]) -> Iterator[str]:
    """What already runs stays on its NIC, and every NIC with a name is of the kind that has the name."""
    kind_of_name = {name: kind for kind in kinds for name in kind.names}
    for placement in plan.placements:
        stays_on, found = placement.arrival.nic, placement.nic
        if stays_on is not None and found != stays_on:
            yield f"{placement.arrival.id} already runs on {stays_on}, and is on {found or 'no NIC'} in the plan"
        elif found is not None and kind_of_name.get(found, placement.kind) is not placement.kind:
            yield f"{found}: is a {kind_of_name[found].model} in the fleet, and another kind of NIC in the plan"


def one_kind_per_nic(plan: Plan) -> Iterator[str]:
    """A NIC is of one kind, and a placement names both or neither."""
    kinds: dict[str, NicKind] = {}
    for placement in plan.placements:
        if (placement.nic is None) != (placement.kind is None):
            yield f"arrival {placement.arrival.id}: a NIC without a kind, or a kind without a NIC"
        elif placement.nic is not None and placement.kind is not None:
            first = kinds.setdefault(placement.nic, placement.kind)
            if first is not placement.kind:
                yield f"{placement.nic}: is both {first.model} and {placement.kind.model}"


def cores_kept(plan: Plan) -> Iterator[str]:
    """At no time do the tenants of a NIC take more cores than it has."""
    for nic, stays in _stays(plan).items():
        for moment in sorted({placement.arrival.begins for placement in stays}):
            present = [placement for placement in stays if _present(placement.arrival, moment)]
            kind = present[0].kind
            taken = sum(kind.cores_for(placement.arrival.workload) for placement in present) if kind else 0
            if kind and taken > kind.cores:
                yield f"{nic}: {taken} of {kind.cores} cores taken {_at(moment)}"


def line_rate_kept(plan: Plan) -> Iterator[str]:
    """At no time do the packets that are offered to the tenants of a NIC exceed its line rate."""
    for nic, stays in _stays(plan).items():
        for moment in sorted({placement.arrival.begins for placement in stays}):
            present = [placement for placement in stays if _present(placement.arrival, moment)]
            kind = present[0].kind
            for part in range(_count_parts(present)):
                # a packet has 20 bytes on the wire besides
                gbps = fsum(
                    _offered_kpps(p.arrival, part) * (p.arrival.workload.traffic.packet_size + 20.0) * 8e-6
                    for p in present
                    if p.arrival.workload.rate_kpps < inf
                )
                if kind and gbps > kind.line_rate_gbps * (1.0 + ROUNDING):
                    yield f"{nic}: {gbps:g} of {kind.line_rate_gbps:g} Gb/s offered {_at(moment)}"


def counts_kept(plan: Plan, kinds: Sequence[NicKind]) -> Iterator[str]:
    """At no time are more NICs of a kind in use than there are."""
    for kind in kinds:
        if kind.count is not None:
            peak = peak_nics(plan, kind)
            if peak > kind.count:
                yield f"{kind.model}: {peak} NICs in use, there are {kind.count}"


def constraints_kept(plan: Plan) -> Iterator[str]:
    """Every constraint of the arrivals holds; instances that already ran may violate theirs among themselves."""
    if any(p.arrival.constraints.values or (p.kind and p.kind.pool) for p in plan.placements):
        for constraint in CONSTRAINTS.values():
            yield from constraint.faults(plan)


def slas_kept(plan: Plan, oracles: Sequence[Oracle]) -> Iterator[str]:
    """At no time does an oracle expect a tenant below its SLA, except on a NIC of which all tenants already run."""
    for nic, stays in _stays(plan).items():
        moments = {p.arrival.begins for p in stays} | {p.arrival.departure for p in stays if p.arrival.departure}
        for moment in sorted(moments):
            present = [placement for placement in stays if _present(placement.arrival, moment)]
            if all(placement.arrival.nic is not None for placement in present):
                continue
            for part in range(_count_parts(present)):
                carrying = [(p, _workload_in(p.arrival, part)) for p in present if _offered_kpps(p.arrival, part) > 0]
                co_location = co_location_of(workload for _, workload in carrying)
                for placement, workload in carrying:
                    if placement.kind is None:
                        continue
                    oracle, arrival = oracles[placement.kind.index], placement.arrival
                    answers = zip(co_location, oracle.throughput([co_location])[0], strict=True)
                    got = min(kpps for other, kpps in answers if other == workload)
                    alone = oracle.throughput([(workload,)])[0][0]
                    sla, offered = arrival.sla, workload.rate_kpps
                    if arrival.day and sla.min_kpps is not None and offered < sla.min_kpps:
                        sla = Sla(max_drop=0.0)  # then it must carry all
                    if got < sla.required_kpps(alone, offered):
                        yield f"{arrival.id} on {nic}: {got:g} of {alone:g} kpps {_at(moment)}"


def _count_parts(present: Sequence[Placement]) -> int:
    """Parts of the day in which another load may be offered to these."""
    return max([1, *(len(placement.arrival.day) for placement in present)])


def _offered_kpps(arrival: Arrival, part: int) -> float:
    return arrival.workload.rate_kpps * (arrival.day[part] if arrival.day else 1.0)


def _workload_in(arrival: Arrival, part: int) -> Workload:
    return replace(arrival.workload, rate_kpps=_offered_kpps(arrival, part)) if arrival.day else arrival.workload


def peak_nics(plan: Plan, kind: NicKind | None = None) -> int:
    """Most NICs in use at one time, of one kind or of all."""
    changes: list[tuple[float, int]] = []
    for stays in _stays(plan).values():
        if kind is None or stays[0].kind is kind:
            changes += _busy(stays)
    peak = in_use = 0
    for _, change in sorted(changes):
        in_use += change
        peak = max(peak, in_use)
    return peak


def peak_cost(plan: Plan, kinds: Sequence[NicKind]) -> float:
    """Cost of the NICs of a plan: per kind its peak, times the cost of one."""
    return fsum(kind.cost * peak_nics(plan, kind) for kind in kinds)


def _busy(stays: Sequence[Placement]) -> Iterator[tuple[float, int]]:
    """When a NIC gets its first tenant (+1) and loses its last (-1); sorted, what ends goes before what begins."""
    begun, end = stays[0].arrival.begins, stays[0].arrival.departure
    for placement in stays[1:]:
        if end is not None and placement.arrival.begins >= end:
            yield from ((begun, 1), (end, -1))
            begun, end = placement.arrival.begins, placement.arrival.departure
        elif end is not None:
            leaves = placement.arrival.departure
            end = None if leaves is None else max(end, leaves)
    yield begun, 1
    if end is not None:
        yield end, -1


def _stays(plan: Plan) -> dict[str, list[Placement]]:
    """Placements by NIC, in the order in which they begin."""
    stays: dict[str, list[Placement]] = defaultdict(list)
    running = [placement for placement in plan.placements if placement.arrival.nic is not None]
    arriving = (placement for placement in plan.placements if placement.arrival.nic is None)
    for placement in chain(running, arriving):
        if placement.nic is not None:
            stays[placement.nic].append(placement)
    return stays


def _present(arrival: Arrival, moment: float) -> bool:
    return arrival.begins <= moment and (arrival.departure is None or moment < arrival.departure)


def _at(moment: float) -> str:
    return "before the first arrival" if moment == -inf else f"at {moment:g} s"
