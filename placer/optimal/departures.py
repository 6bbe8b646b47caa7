"""The optimum of a trace with departures: a bound over its moments, and a plan that knows the whole trace.

The tenants present at a moment need NICs at that moment, so the static optimum of any moment is a bound. The moments
just before a departure are enough: between two of them, tenants are only added."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from placer.model.arrival import Arrival, running_nics, settle_running
from placer.model.constraints import CONSTRAINTS, GroupConstraint, kind_allows
from placer.model.feasibility import feasible
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Placement, events_of
from placer.optimal import Optimum, optimal_plan
from placer.optimal.program import exact_cost

TIME_PARTS = 8  # one moment gets at most the time divided by this number


@dataclass(frozen=True)
class BoundOverTime:
    """Lower bounds on the cost and on the NICs of every plan that places all of these arrivals.

    They are from the `examined` fullest of all `moments`.
    """

    lower_bound: float
    nics_lower_bound: int
    examined: int
    moments: int
    seconds: float
    oracle_seconds: float


def bound_over_time(
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    fullest: Optimum,
    *,
    enough: float,
    seconds: float,
    solver: str,
) -> BoundOverTime:
    """The highest static optimum of all moments that precede a departure, the fullest first.

    The NICs on which instances already run are in use at one moment, before the first arrival.

    `fullest`: the static optimum of the fullest moment. `enough`: the cost of the best plan: with a bound that high, no
    other moment is examined. `seconds`: seconds after which no other moment is examined. `solver`: as of
    `optimal_plan`.
    """
    deadline = time.monotonic() + seconds
    moments = peaks(arrivals, kinds)
    running = running_nics(arrivals, kinds)
    at_first = float(sum((exact_cost(nic.kind) for nic in running), start=Fraction(0)))
    found = [fullest]
    for moment in moments[1:]:
        if time.monotonic() >= deadline or max(at_first, *map(_cost_bound, found)) >= enough - 1e-9:
            break
        found.append(_static_optimum(arrivals, moment, kinds, oracles, time_limit=seconds / TIME_PARTS, solver=solver))
    return BoundOverTime(
        lower_bound=max(at_first, *map(_cost_bound, found)),
        nics_lower_bound=max(len(running), *(0 if optimum.unplaced else optimum.nics_lower_bound for optimum in found)),
        examined=len(found),
        moments=len(moments),
        seconds=sum(optimum.seconds for optimum in found),
        oracle_seconds=sum(optimum.oracle_seconds for optimum in found),
    )


def fullest_moment(
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    *,
    seconds: float,
    solver: str,
    departure_safe: bool = False,
) -> Optimum:
    """The static optimum of the tenants present when most cores are taken; `departure_safe` as of `optimal_plan`."""
    moment = next(iter(peaks(arrivals, kinds)), -1)
    return _static_optimum(
        arrivals, moment, kinds, oracles, time_limit=seconds, solver=solver, departure_safe=departure_safe
    )


def _static_optimum(
    arrivals: Sequence[Arrival],
    moment: int,
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    *,
    time_limit: float,
    solver: str,
    departure_safe: bool = False,
) -> Optimum:
    """The optimum of the tenants present after event number `moment`; what already runs then stays on its NIC."""
    present = [arrivals[index] for index in present_at(arrivals, moment)]
    return optimal_plan(
        [arrival.tenant for arrival in present if arrival.nic is None],
        kinds,
        oracles,
        time_limit=time_limit,
        solver=solver,
        departure_safe=departure_safe,
        running=running_nics(present, kinds),
    )


def _cost_bound(optimum: Optimum) -> float:
    return 0.0 if optimum.unplaced else optimum.lower_bound


def peaks(arrivals: Sequence[Arrival], kinds: Sequence[NicKind]) -> list[int]:
    """Numbers of the events right before a departure or the end of the trace, most cores taken first."""
    cores_of = {nf: min(k.cores_of[nf] for k in kinds if nf in k.cores_of) for k in kinds for nf in k.cores_of}
    found: list[tuple[int, int]] = []
    cores = 0
    rising = False
    number = -1
    for number, event in enumerate(events_of(arrivals)):
        if event.departs and rising:
            found.append((-cores, number - 1))
        rising = not event.departs
        cores += cores_of.get(arrivals[event.index].workload.nf, 0) * (-1 if event.departs else 1)
    if rising:
        found.append((-cores, number))
    return [moment for _, moment in sorted(found)]


def present_at(arrivals: Sequence[Arrival], moment: int) -> list[int]:
    """Places in the trace of the arrivals that are present after event number `moment`."""
    present: dict[int, None] = {}
    for number, event in enumerate(events_of(arrivals)):
        if number > moment:
            break
        if event.departs:
            del present[event.index]
        else:
            present[event.index] = None
    return list(present)


class _NicOverTime:
    """A NIC over time: the arrivals that it carries, each during its stay; and its name, if some already run there."""

    def __init__(self, kind: NicKind, id: str | None = None) -> None:
        self.kind = kind
        self.id = id
        self.arrivals: list[Arrival] = []

    def co_locations_with(self, arrival: Arrival) -> Iterator[list[Arrival]]:
        neighbours = [other for other in self.arrivals if _overlap(other, arrival)]
        changes = {
            arrival.begins,
            *(neighbour.begins for neighbour in neighbours),
            *(neighbour.departure for neighbour in neighbours if neighbour.departure),
        }
        for moment in sorted(changes):
            if _is_present(arrival, moment):
                yield [other for other in [*neighbours, arrival] if _is_present(other, moment)]

    def free_cores(self, arrival: Arrival) -> int:
        """The cores that are free throughout the stay of one more arrival."""
        most = max(
            self.kind.cores_taken(workload.workload for workload in co_location)
            for co_location in self.co_locations_with(arrival)
        )
        return self.kind.cores - most + self.kind.cores_for(arrival.workload)

    def busy_throughout(self, arrival: Arrival) -> bool:
        """Whether the NIC is in use throughout the stay of one more arrival, which then costs nothing."""
        return all(len(co_location) > 1 for co_location in self.co_locations_with(arrival))


class _GroupsOverTime:
    """Where the members of each group are that have a NIC."""

    def __init__(self) -> None:
        self._members: defaultdict[tuple[str, str], list[tuple[Arrival, _NicOverTime]]] = defaultdict(list)

    def join(self, arrival: Arrival, nic: _NicOverTime) -> None:
        """Put the arrival on the NIC."""
        nic.arrivals.append(arrival)
        for key in arrival.constraints.values:
            self._members[key].append((arrival, nic))

    def allow(self, arrival: Arrival, nic: _NicOverTime) -> bool:
        """Whether the arrival may be on the NIC during its whole stay, by its groups and pools."""
        for name, value in arrival.constraints.values:
            constraint = CONSTRAINTS[name]
            if not issubclass(constraint, GroupConstraint):
                continue
            apart, together = 0, 0
            for other, home in self._members[name, value]:
                near = bool(nic.kind.domain) and home.kind.domain == nic.kind.domain
                if _overlap(other, arrival):
                    shared = home is nic or (constraint.by_domain and near)
                    apart, together = apart + (not shared), together + shared
            if apart > 0 if constraint.same else together >= constraint.most(value):
                return False
        return kind_allows(nic.kind, arrival)


def plan_over_time(
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    fullest: Optimum,
    *,
    deadline: float,
    by_priority: bool = False,
) -> list[Placement] | None:
    """A plan without migration, made from the fullest moment outwards; None where the deadline is earlier.

    What already runs is on its NIC. The tenants of the fullest moment are placed as in its static optimum. Then the
    other tenants of every further moment are placed, fullest moment first and most demanding tenant first: on the NIC
    with the fewest free cores that meets every SLA during the whole stay, preferably one in use throughout the stay;
    else on a new NIC; else rejected. With `by_priority`, all of a higher priority come first.
    """
    by_id = {arrival.id: arrival for arrival in arrivals}
    nics: list[_NicOverTime] = []
    nic_of: dict[str, int] = {}
    groups = _GroupsOverTime()
    for number, running in enumerate(running_nics(arrivals, kinds)):
        nics.append(_NicOverTime(running.kind, running.id))
        for tenant in running.tenants:
            groups.join(by_id[tenant.id], nics[-1])
        nic_of |= dict.fromkeys((tenant.id for tenant in running.tenants), number)
    for number, tenants in _nics_of_fullest(nics, nic_of, fullest):
        for tenant in tenants:
            arrival = by_id[tenant.id]
            if tenant.id in nic_of or not _can_stay(nics[number], arrival, oracles, groups):
                continue
            groups.join(arrival, nics[number])
            nic_of[tenant.id] = number
    in_turn = (index for moment in peaks(arrivals, kinds) for index in _most_demanding_first(arrivals, moment, kinds))
    for index in sorted(in_turn, key=lambda index: -arrivals[index].priority) if by_priority else in_turn:
        arrival = arrivals[index]
        if arrival.id in nic_of:
            continue
        if time.monotonic() >= deadline:
            return None
        place = _place(nics, arrival, kinds, oracles, groups)
        if place is None:
            continue
        groups.join(arrival, nics[place])
        nic_of[arrival.id] = place
    fleet = Fleet(kinds)
    settle_running(arrivals, fleet)
    names = [nic.id or fleet.open(nic.kind).id for nic in nics]
    placed = {identity: (names[number], nics[number].kind) for identity, number in nic_of.items()}
    return [Placement(arrival, *placed.get(arrival.id, (None, None))) for arrival in arrivals]


def _nics_of_fullest(
    nics: list[_NicOverTime], nic_of: Mapping[str, int], fullest: Optimum
) -> Iterator[tuple[int, tuple[Tenant, ...]]]:
    """The number of each NIC of the fullest moment, and its tenants; a new one unless tenants of it already run.

    Where the kind has no other NIC, it is one whose tenants that already ran are gone at that moment.
    """
    homes = {nic_of[tenant.id] for _, tenants in fullest.nics for tenant in tenants if tenant.id in nic_of}
    left = [number for number in range(len(nics)) if number not in homes]
    for kind, tenants in fullest.nics:
        number = next((nic_of[tenant.id] for tenant in tenants if tenant.id in nic_of), None)
        if number is None and sum(nic.kind is kind for nic in nics) == kind.count:
            number = next(number for number in left if nics[number].kind is kind)
            left.remove(number)
        if number is None:
            number = len(nics)
            nics.append(_NicOverTime(kind))
        yield number, tenants


def _most_demanding_first(arrivals: Sequence[Arrival], moment: int, kinds: Sequence[NicKind]) -> list[int]:
    """The arrivals present at a moment, most cores first, of equal cores the smallest allowed drop first."""

    def key(index: int) -> tuple[int, float, int]:
        cores = max(kind.cores_of.get(arrivals[index].workload.nf, 0) for kind in kinds)
        drop = arrivals[index].sla.max_drop
        return -cores, 0.0 if drop is None else drop, index

    return sorted(present_at(arrivals, moment), key=key)


def _place(
    nics: list[_NicOverTime],
    arrival: Arrival,
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    groups: _GroupsOverTime,
) -> int | None:
    """The number of the NIC for one more arrival, which may be a new one; None where there is none."""
    with_room = [
        (not nic.busy_throughout(arrival), free, number)
        for number, nic in enumerate(nics)
        if nic.kind.hosts(arrival.workload)
        and (free := nic.free_cores(arrival)) >= nic.kind.cores_for(arrival.workload)
    ]
    for _, _, number in sorted(with_room):
        if _can_stay(nics[number], arrival, oracles, groups):
            return number
    used = Counter(nic.kind.index for nic in nics)
    for kind in sorted(kinds, key=lambda kind: (kind.cost, used[kind.index] >= (kind.owned or 0), kind.index)):
        opened = used[kind.index]
        new = _NicOverTime(kind)
        if kind.hosts(arrival.workload) and opened != kind.count and _can_stay(new, arrival, oracles, groups):
            nics.append(new)
            return len(nics) - 1
    return None


def _can_stay(nic: _NicOverTime, arrival: Arrival, oracles: Sequence[Oracle], groups: _GroupsOverTime) -> bool:
    if not groups.allow(arrival, nic):
        return False
    together = [[other.tenant for other in co_location] for co_location in nic.co_locations_with(arrival)]
    return all(feasible(nic.kind, oracles[nic.kind.index], together))


def _overlap(one: Arrival, other: Arrival) -> bool:
    starts_before_end = other.departure is None or one.begins < other.departure
    return starts_before_end and (one.departure is None or other.begins < one.departure)


def _is_present(arrival: Arrival, moment: float) -> bool:
    return arrival.begins <= moment and (arrival.departure is None or moment < arrival.departure)
