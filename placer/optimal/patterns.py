"""Co-location patterns: the co-locations that fit a NIC, and the tenants that each slot is good enough for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from placer.model.constraints import are_constrained, kind_allows
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from profiles import CoLocation, Workload
from profiles.arrays import Floats, Ints
from profiles.shown import Shown

ASKED_PER_CO_LOCATION = 3
"""Co-locations of a GPU that are asked for at once, at most, in multiples of those that may be listed."""

Members = tuple[int, ...]  # a co-location as numbers of tenant groups, ascending

NO_SLOT = np.iinfo(np.int64).max
"""Level where a co-location has no slot of a group, while the lowest levels are searched."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """Columns of the pattern program, one per row of every array.

    Any slots of a *loose* pattern may be empty: its levels hold for the tenants in the others. The levels of a *strict*
    pattern hold only when every slot is taken. Strict patterns are needed because an oracle need not be monotone: where
    a tenant departs, the throughput of the others may fall.

    `kind`: number of the NIC kind, shape (patterns,). `slots`: slots offered to each group, shape (patterns, groups).
    `levels`: level of those slots (`TenantGroup.levels`), shape (patterns, groups); 0 where there are none. `strict`:
    whether all slots must be taken, shape (patterns,).
    """

    kind: Ints
    slots: Ints
    levels: Ints
    strict: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, which: npt.NDArray[np.bool_] | Ints) -> Patterns:
        return Patterns(self.kind[which], self.slots[which], self.levels[which], self.strict[which])


def join(parts: Sequence[Patterns]) -> Patterns:
    """Patterns of several NIC kinds as one."""
    return Patterns(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.slots for part in parts]),
        np.concatenate([part.levels for part in parts]),
        np.concatenate([part.strict for part in parts]),
    )


def co_locations_within(kind: NicKind, groups: Sequence[TenantGroup]) -> Iterator[Members]:
    """Every non-empty co-location of the groups' tenants that fits the cores and the port, each once."""
    hosted = [i for i, group in enumerate(groups) if group.required[kind.index] is not None]
    cores = {i: kind.cores_for(groups[i].workload) for i in hosted}

    def grow(members: Members, position: int, free: int) -> Iterator[Members]:
        for place in range(position, len(hosted)):
            i = hosted[place]
            left = len(groups[i].tenants) - (members.count(i) if place == position else 0)
            if cores[i] <= free and left > 0:
                larger = (*members, i)
                if kind.has_port_for(groups[member].workload for member in larger):
                    yield larger
                    yield from grow(larger, place, free - cores[i])

    return grow((), 0, kind.cores)


def co_locations_on(kind: NicKind, groups: Sequence[TenantGroup], oracle: Oracle, most: int) -> list[Members]:
    """The co-locations of which patterns are made, or more than `most` of them: those within the cores and the port.

    Of GPUs they are only those that the admission test admits. Every part of one is admitted, too, so they are found
    from smaller ones (as of `PatternTable`): within the workers alone there would be far too many.
    """
    if not kind.paced:
        return list(islice(co_locations_within(kind, groups), most + 1))
    alone = list(co_locations_within(replace(kind, cores=1), groups))
    found: dict[Members, None] = {}
    level = _admit(alone, groups, oracle)
    while level and len(found) <= most:
        found |= dict.fromkeys(level)
        larger = [(*members, i) for members in level for (i,) in alone if i >= members[-1]]
        if len(larger) > ASKED_PER_CO_LOCATION * most:
            return [*found, *larger]
        level = _admit([pattern for pattern in larger if _is_candidate(pattern, kind, groups, found)], groups, oracle)
    return list(found)


def _is_candidate(
    members: Members, kind: NicKind, groups: Sequence[TenantGroup], smaller: Mapping[Members, None]
) -> bool:
    """Whether there are workers and tenants for it, and all of its parts are admitted."""
    if len(members) > kind.cores or members.count(members[-1]) > len(groups[members[-1]].tenants):
        return False
    return all(members[:at] + members[at + 1 :] in smaller for at in range(len(members)))


def _admit(co_locations: Sequence[Members], groups: Sequence[TenantGroup], oracle: Oracle) -> list[Members]:
    answers = oracle.throughput([workloads_of(members, groups) for members in co_locations])
    return [members for members, answer in zip(co_locations, answers, strict=True) if min(answer) > 0]


def workloads_of(members: Members, groups: Sequence[TenantGroup]) -> CoLocation:
    """The workloads of a co-location, sorted because the groups are sorted by workload."""
    return tuple(groups[i].workload for i in members)


def slots_and_levels(
    kind: int, co_locations: Sequence[Members], groups: Sequence[TenantGroup], oracle: Oracle
) -> tuple[Ints, Ints]:
    """Slots and levels, each of shape (co-locations, groups), of co-locations on NIC kind number `kind`.

    Where an oracle returns different throughputs for equal workloads, the lowest counts for all of them.
    """
    answers = oracle.throughput([workloads_of(members, groups) for members in co_locations])
    sizes = np.array([len(members) for members in co_locations], dtype=np.int64)
    row = np.repeat(np.arange(len(co_locations)), sizes)
    member = np.array([i for members in co_locations for i in members], dtype=np.int64)
    throughput = np.array([value for answer in answers for value in answer], dtype=np.float64)
    first = {group.workload: i for i, group in reversed(list(enumerate(groups)))}
    twin = np.array([first[group.workload] for group in groups], dtype=np.int64)
    lowest = np.full((len(co_locations), len(groups)), np.inf)
    np.minimum.at(lowest, (row, twin[member]), throughput)
    slots = np.zeros((len(co_locations), len(groups)), dtype=np.int64)
    np.add.at(slots, (row, member), 1)
    levels = np.zeros_like(slots)
    for i, group in enumerate(groups):
        rows = np.flatnonzero(slots[:, i])
        levels[rows, i] = group.levels(kind, lowest[rows, twin[i]])
    return slots, levels


def patterns_of(kind: int, co_locations: Sequence[Members], slots: Ints, levels: Ints) -> Patterns:
    """The patterns of these co-locations that no other dominates; every part of one of them must be among them.

    A co-location makes a loose pattern with the lowest levels that its slots have in any part of it, and a strict
    pattern where its own levels are higher than that. With a monotone oracle there is no strict pattern. A loose
    pattern is dominated by a co-location with one more member that offers the same levels to the others: an empty slot
    costs nothing. No larger ones need be compared, because loose levels never rise from a co-location to a larger one.
    """
    smaller_of = _without_one(co_locations)
    loose = np.where(slots > 0, levels, NO_SLOT)
    order = np.argsort(slots.sum(axis=1), kind="stable")
    sizes = slots.sum(axis=1)[order]
    for size in range(2, int(sizes.max(initial=0)) + 1):
        rows = order[sizes == size]
        for smaller in smaller_of[rows].T:
            known = smaller >= 0
            loose[rows[known]] = np.minimum(loose[rows[known]], loose[smaller[known]])
    loose[slots == 0] = 0
    useful = np.all((loose > 0) | (slots == 0), axis=1)
    dominated = np.zeros(len(co_locations), dtype=bool)
    for smaller in smaller_of.T:
        larger = np.flatnonzero((smaller >= 0) & useful)
        rows = smaller[larger]
        same = np.all((loose[larger] >= loose[rows]) | (slots[rows] == 0), axis=1)
        dominated[rows[same]] = True
    keep = useful & ~dominated
    strict = np.all((levels > 0) | (slots == 0), axis=1) & np.any(levels > loose, axis=1)
    chosen = np.concatenate([np.flatnonzero(keep), np.flatnonzero(strict)])
    is_strict = np.arange(len(chosen)) >= np.count_nonzero(keep)
    return Patterns(
        kind=np.full(len(chosen), kind, dtype=np.int64),
        slots=slots[chosen],
        levels=np.where(is_strict[:, None], levels[chosen], loose[chosen]),
        strict=is_strict,
    )


def _without_one(co_locations: Sequence[Members]) -> Ints:
    """For every co-location the numbers of those with one member less, padded with -1."""
    number = {members: i for i, members in enumerate(co_locations)}
    width = max((len(members) for members in co_locations), default=0)
    smaller = np.full((len(co_locations), width), -1, dtype=np.int64)
    for i, members in enumerate(co_locations):
        if len(members) > 1:
            for j in range(len(members)):
                if j == 0 or members[j] != members[j - 1]:
                    smaller[i, j] = number[members[:j] + members[j + 1 :]]
    return smaller


# Tenant groups: tenants of one workload, in order of how much throughput they require.


@dataclass(frozen=True, eq=False, repr=False)
class TenantGroup(Shown):
    """Tenants of one workload that the same kinds may carry, sorted so that every slot is good enough for the first.

    The *level* of a slot is the number of tenants, the least demanding first, whose SLA it meets. Levels compare slots
    of different NIC kinds, and two throughputs between which no tenant's requirement lies have the same level.

    `tenants`: the least demanding first. `required`: by NIC kind, the throughput (kpps) that each of `tenants` requires
    there, ascending; None where the kind cannot run the workload, or is of another pool.
    """

    workload: Workload
    tenants: tuple[Tenant, ...]
    required: tuple[Floats | None, ...]

    def levels(self, kind: int, throughputs: Floats) -> Ints:
        """For each of `throughputs` (kpps) on NIC kind number `kind`, how many of the tenants it is enough for."""
        required = self.required[kind]
        if required is None:
            return np.zeros(len(throughputs), dtype=np.int64)
        return np.searchsorted(required, throughputs, side="right")


def group_tenants(
    tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle], *, by_priority: bool = False
) -> list[TenantGroup]:
    """The tenants as groups, sorted by workload; each of one priority with `by_priority`.

    One group per workload and set of kinds that may carry it, unless drops and throughputs order its tenants
    differently on two NIC kinds: then tenants with `max_drop` and tenants with `min_kpps` are two groups, each of which
    has the same order on all kinds.
    """
    alike: defaultdict[tuple[Workload, tuple[bool, ...], int], list[Tenant]] = defaultdict(list)
    constrained = are_constrained(tenants, kinds)
    for tenant in tenants:
        allowed = tuple(kind_allows(kind, tenant) for kind in kinds) if constrained else ()
        alike[tenant.workload, allowed, tenant.priority if by_priority else 0].append(tenant)
    groups = []
    for key in sorted(alike):
        workload, members = key[0], alike[key]
        group = _sorted_group(workload, members, kinds, oracles)
        if group is not None:
            groups.append(group)
            continue
        for by_drop in (True, False):
            half = [tenant for tenant in members if (tenant.sla.max_drop is not None) is by_drop]
            group = _sorted_group(workload, half, kinds, oracles)
            if group is None:
                raise AssertionError(f"Tenants of {workload} with one kind of SLA have one order on every NIC.")
            groups.append(group)
    return groups


def _sorted_group(
    workload: Workload, members: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]
) -> TenantGroup | None:
    """The tenants as one group, or None when no order of them is ascending on every kind."""
    required: list[Floats | None] = []
    for kind, oracle in zip(kinds, oracles, strict=True):
        if kind.hosts(workload) and kind_allows(kind, members[0]):
            solo = oracle.solo(workload)
            required.append(np.array([tenant.required_kpps(solo) for tenant in members], dtype=np.float64))
        else:
            required.append(None)
    keys = [values for values in required if values is not None]
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(members))
    ascending = tuple(None if values is None else values[order] for values in required)
    if any(values is not None and np.any(np.diff(values) < 0) for values in ascending):
        return None
    return TenantGroup(workload, tuple(members[i] for i in order.tolist()), ascending)
