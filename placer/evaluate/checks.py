"""Checkers: one per constraint, which knows plans and arrivals but no strategy.

Each returns a sentence per fault; none shares code with what it checks. `placer run` checks every plan before it
reports a figure of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from placer.model.arrival import Arrival
from placer.model.fleet import NicKind
from placer.model.oracle import Oracle, co_location_of
from placer.model.plan import Placement, Plan


class InvalidPlan(Exception):
    """A plan that violates a constraint: a fault of the strategy, never of the input."""


def check_plan(plan: Plan, arrivals: Sequence[Arrival], kinds: Sequence[NicKind]) -> None:
    """Hold a plan to every constraint that does not depend on throughput.

    Raises
    ------
    InvalidPlan
        With every fault.
    """
    faults = [*decided_once(plan, arrivals), *one_kind_per_nic(plan), *cores_kept(plan), *counts_kept(plan, kinds)]
    if faults:
        raise InvalidPlan(f"strategy {plan.strategy} violates its constraints:\n" + "\n".join(faults))


def decided_once(plan: Plan, arrivals: Sequence[Arrival]) -> Iterator[str]:
    """Every arrival is placed or rejected exactly once, and no other instance is."""
    decided = Counter(placement.arrival.id for placement in plan.placements)
    known = {arrival.id for arrival in arrivals}
    for identity in sorted(known | set(decided)):
        times = decided[identity]
        if times != 1 or identity not in known:
            where = "in the trace" if identity in known else "not in the trace"
            yield f"{identity}, {where}: decided {times} times"


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
        for moment in sorted({placement.arrival.time for placement in stays}):
            present = [placement for placement in stays if _present(placement.arrival, moment)]
            kind = present[0].kind
            taken = sum(kind.cores_of[placement.arrival.workload.nf] for placement in present) if kind else 0
            if kind and taken > kind.cores:
                yield f"{nic}: {taken} of {kind.cores} cores taken at {moment:g} s"


def counts_kept(plan: Plan, kinds: Sequence[NicKind]) -> Iterator[str]:
    """At no time are more NICs of a kind in use than there are."""
    for kind in kinds:
        if kind.count is not None:
            peak = peak_nics(plan, kind)
            if peak > kind.count:
                yield f"{kind.model}: {peak} NICs in use, there are {kind.count}"


def slas_kept(plan: Plan, oracles: Sequence[Oracle]) -> Iterator[str]:
    """At no time does an oracle expect a tenant below its SLA."""
    for nic, stays in _stays(plan).items():
        moments = {p.arrival.time for p in stays} | {p.arrival.departure for p in stays if p.arrival.departure}
        for moment in sorted(moments):
            present = [placement for placement in stays if _present(placement.arrival, moment)]
            co_location = co_location_of(placement.arrival.workload for placement in present)
            for placement in present:
                if placement.kind is None:
                    continue
                oracle = oracles[placement.kind.index]
                answers = zip(co_location, oracle.throughput([co_location])[0], strict=True)
                got = min(kpps for workload, kpps in answers if workload == placement.arrival.workload)
                alone = oracle.throughput([(placement.arrival.workload,)])[0][0]
                if not placement.arrival.sla.is_met(got, alone):
                    yield f"{placement.arrival.id} on {nic}: {got:g} of {alone:g} kpps at {moment:g} s"


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


def _busy(stays: Sequence[Placement]) -> Iterator[tuple[float, int]]:
    """When a NIC gets its first tenant (+1) and loses its last (-1); sorted, what ends goes before what begins."""
    begun, end = stays[0].arrival.time, stays[0].arrival.departure
    for placement in stays[1:]:
        if end is not None and placement.arrival.time >= end:
            yield from ((begun, 1), (end, -1))
            begun, end = placement.arrival.time, placement.arrival.departure
        elif end is not None:
            leaves = placement.arrival.departure
            end = None if leaves is None else max(end, leaves)
    yield begun, 1
    if end is not None:
        yield end, -1


def _stays(plan: Plan) -> dict[str, list[Placement]]:
    """Placements by NIC, in order of arrival."""
    stays: dict[str, list[Placement]] = defaultdict(list)
    for placement in plan.placements:
        if placement.nic is not None:
            stays[placement.nic].append(placement)
    return stays


def _present(arrival: Arrival, moment: float) -> bool:
    return arrival.time <= moment and (arrival.departure is None or moment < arrival.departure)
