"""What constraints let no fleet of these NICs hold, even empty: found before anything is placed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf

from placer.model.arrival import Arrival
from placer.model.constraints import CONSTRAINTS, GroupConstraint, kind_allows
from placer.model.group_members import is_present
from placer.model.groups import BETWEEN_POOLS
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind


def constraint_faults(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind]
) -> Iterator[tuple[Arrival, str, str, str | None]]:
    """What the whole fleet could not hold, empty and without all other arrivals: the last instance of the smallest
    set that conflicts, the column, the message, and what to do about it."""
    groups: defaultdict[tuple[str, str], list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        for key in arrival.constraints.values:
            groups[key].append(arrival)
        if arrival.nic is None and (fault := pool_fault(arrival, kinds)):
            yield arrival, "pool", *fault
    for (name, value), members in groups.items():
        constraint = CONSTRAINTS[name]
        if issubclass(constraint, GroupConstraint) and (found := _conflicting(members, kinds, constraint, value)):
            ids = ", ".join(f"'{arrival.id}'" for arrival in found)
            message = f"no fleet of these NICs holds {ids} of group '{value}' at the same time"
            yield found[-1], name, message, _hint(constraint, kinds, value)


def pool_fault(arrival: Arrival | Tenant, kinds: Sequence[NicKind]) -> tuple[str, str] | None:
    """What is wrong with the pools that an instance asks for, and what to do about it; None where nothing is."""
    asked, pools = arrival.constraints.of("pool"), sorted({kind.pool for kind in kinds if kind.pool})
    if unknown := [name for name in asked.split(BETWEEN_POOLS) if asked and name not in pools]:
        hint = f"pools are {', '.join(pools)}" if pools else "give NICs a pool in the fleet file: pool = ..."
        return f"no NIC of the fleet is in pool '{unknown[0]}'", hint
    if not asked and pools and all(kind.pool for kind in kinds):
        return "all NICs of the fleet are in pools", f"fill pool: {', '.join(pools)}"
    return None


def _hint(constraint: type[GroupConstraint], kinds: Sequence[NicKind], value: str) -> str:
    if constraint.same:
        return f"one NIC has {max(kind.cores for kind in kinds)} cores"
    places, most = _count_places(kinds, constraint), constraint.most(value)
    each = f", and {most} may be in each" if most > 1 else ""
    return f"there are {places:,.0f} {'domains' if constraint.by_domain else 'NICs'} for them{each}"


def _conflicting(
    members: Sequence[Arrival], kinds: Sequence[NicKind], constraint: type[GroupConstraint], value: str
) -> list[Arrival]:
    """A smallest set of members, present at one time, that does not fit; empty where all do."""
    for moment in sorted({arrival.begins for arrival in members}):
        present = [arrival for arrival in members if is_present(arrival, moment)]
        if all(arrival.nic is not None for arrival in present):
            continue
        if constraint.same:
            found = _too_many_together(present, kinds)
        else:
            found = _too_many_apart(present, kinds, constraint, constraint.most(value))
        if found:
            return found
    return []


def _too_many_together(present: Sequence[Arrival], kinds: Sequence[NicKind]) -> list[Arrival]:
    """Members that no NIC holds together; of few, as few as possible."""
    for size in range(1, len(present) + 1):
        largest = sorted(present, key=lambda arrival: -max(_fewest_cores(kind, arrival) for kind in kinds))[:size]
        if not any(sum(_fewest_cores(kind, arrival) for arrival in largest) <= kind.cores for kind in kinds):
            return largest
    return []


def _fewest_cores(kind: NicKind, arrival: Arrival) -> float:
    if not kind.hosts(arrival.workload) or not kind_allows(kind, arrival):
        return inf
    return min(kind.cores_for(choice) for choice in kind.choices(arrival.workload))


def _count_places(kinds: Iterable[NicKind], constraint: type[GroupConstraint]) -> float:
    named = {kind.domain for kind in kinds if kind.domain} if constraint.by_domain else ()
    others = (kind for kind in kinds if not (constraint.by_domain and kind.domain))
    return len(named) + sum(inf if kind.count is None else kind.count for kind in others)


def _too_many_apart(
    present: Sequence[Arrival], kinds: Sequence[NicKind], constraint: type[GroupConstraint], most: int
) -> list[Arrival]:
    """Members that have too few places among them: of a matching, those that compete with one that has none."""
    room: dict[object, float] = {}
    for kind in kinds:
        if constraint.by_domain and kind.domain:
            room[kind.domain] = float(most) if kind.count != 0 else room.get(kind.domain, 0.0)
        else:
            room[kind] = inf if kind.count is None else kind.count * most
    place_of = {kind: kind.domain if constraint.by_domain and kind.domain else kind for kind in kinds}
    able = [[place_of[kind] for kind in kinds if _fewest_cores(kind, arrival) < inf] for arrival in present]
    at: defaultdict[object, list[int]] = defaultdict(list)

    def place(member: int, seen: set[object]) -> bool:
        for spot in able[member]:
            if spot in seen:
                continue
            seen.add(spot)
            if len(at[spot]) < room[spot]:
                at[spot].append(member)
                return True
            for other in at[spot]:
                if place(other, seen):
                    at[spot].remove(other)
                    at[spot].append(member)
                    return True
        return False

    for member in range(len(present)):
        seen: set[object] = set()
        if able[member] and not place(member, seen):
            return [present[other] for other in sorted({member, *(other for spot in seen for other in at[spot])})]
    return []
