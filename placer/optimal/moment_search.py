"""Exhaustive search of all plans for a trace, by dynamic programming over its moments.

No tenant moves, and every SLA is met after every moment: all departures and arrivals at one time form one moment. The
state after a moment is the list of NICs in use with their tenants. Two sequences of decisions that lead to the same
state differ only in the arrivals rejected and in the peaks of NICs in use. Only those are kept that reject the fewest
and, of these, have peaks that no other is below. Tenants with the same workload, SLA and departure are interchangeable.

A long trace has too many states: the search gives up after a number of decisions, and then proves nothing."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from placer.model.arrival import Arrival, RunningNic, running_nics, settle_running
from placer.model.constraints import (
    CONSTRAINTS,
    GroupConstraint,
    by_pool_only,
    kind_allows,
    may_share_nic,
    sharing_values,
)
from placer.model.feasibility import feasible
from placer.model.fleet import Fleet
from placer.model.groups import UNCONSTRAINED
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Event, Placement, events_of
from placer.optimal.merged_kinds import MergedKinds
from placer.optimal.program import exact_cost

MOST_STEPS = 100_000  # the search gives up after this many decisions

CarriedNic = tuple[int, tuple[int, ...]]
"""A NIC in use: the number of its kind, and the classes of its tenants, ascending."""

State = tuple[CarriedNic, ...]
Losses = tuple[int, ...]  # arrivals rejected of each priority in the trace, the highest first
PlanValue = tuple[Losses, Fraction, int]
"""Arrivals rejected, cost, and NICs to buy where some are owned; the lower the better."""


@dataclass(frozen=True)
class Exhausted:
    """The end of a complete search: the best plan, or None where none is better than the one to beat."""

    placements: list[Placement] | None


class SearchStep(NamedTuple):
    """A sequence of decisions: arrivals rejected, peaks of NICs in use, the last decision, and the step before.

    The decision is the NIC that an arrival joins, with its tenants before that (none for a new NIC); None where the
    arrival is rejected. A peak is that of one kind of NIC, or of all where the number of NICs is minimised.
    """

    rejected: Losses
    peaks: tuple[int, ...]
    joined: CarriedNic | None
    before: SearchStep | None


class _GaveUp(Exception):
    """Too many decisions, or the deadline is over."""


def search_moments(
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    *,
    better_than: PlanValue,
    deadline: float,
    fewest_nics: bool = False,
) -> Exhausted | None:
    """The plan that rejects fewest of the highest priority, then of the next, then costs least; None where it gives up.

    Of plans that cost the same it is one with fewest NICs to buy, where some are owned.

    `better_than`: plans that are no better are not looked at. `deadline`: of `time.monotonic`. `fewest_nics`: whether
    to minimise the peak number of NICs of all kinds together instead of the cost.
    """
    by_domain = {name for name, constraint in CONSTRAINTS.items() if getattr(constraint, "by_domain", False)}
    apart = any(name in by_domain for arrival in arrivals for name, _ in arrival.constraints.values)
    merged = MergedKinds.of(kinds, oracles, keep_domains=apart or not by_pool_only(arrivals))
    running = running_nics(arrivals, kinds)
    search = _MomentSearch(arrivals, merged, running, better_than, deadline, fewest_nics)
    try:
        best = search.best()
    except _GaveUp:
        return None
    return Exhausted(None if best is None else _placements(arrivals, merged, running, search.class_of, best))


class _MomentSearch:
    """The layers of states, one a moment; parameters as of `search_moments`."""

    def __init__(
        self,
        arrivals: Sequence[Arrival],
        merged: MergedKinds,
        running: Sequence[RunningNic],
        better_than: PlanValue,
        deadline: float,
        fewest_nics: bool,
    ) -> None:
        self.arrivals = arrivals
        self._have_owners = any(any(sharing_values(arrival)) for arrival in arrivals)
        self.kinds = kinds = merged.kinds
        self.without_pools = [replace(kind, pool="") for kind in kinds]
        self.oracles = merged.oracles
        self.better_than = better_than
        self.deadline = deadline
        self.counted = (
            [range(len(kinds))] if fewest_nics else [range(number, number + 1) for number in range(len(kinds))]
        )
        self.priorities = sorted({arrival.priority for arrival in arrivals}, reverse=True)
        self.costs = [Fraction(1)] if fewest_nics else [exact_cost(kind) for kind in kinds]
        self.owned = [0 if fewest_nics else kind.owned or 0 for kind in kinds]
        self.class_of, self.example = _classes(arrivals)
        place_of = {arrival.id: place for place, arrival in enumerate(arrivals)}
        self.begun: State = tuple(
            sorted(
                (
                    merged.number_of(nic.kind),
                    tuple(sorted(self.class_of[place_of[tenant.id]] for tenant in nic.tenants)),
                )
                for nic in running
            )
        )
        self.feasible: dict[CarriedNic, bool] = {}
        self.steps = 0

    def best(self) -> SearchStep | None:
        """The last step of the best plan; None where none is better than the one to beat."""
        in_use = self._in_use(self.begun) or ()
        layer: dict[State, list[SearchStep]] = {
            self.begun: [SearchStep((0,) * len(self.priorities), tuple(in_use), None, None)]
        }
        arriving = (event for event in events_of(self.arrivals) if event.time > -math.inf)
        for _, moment in groupby(arriving, key=lambda event: event.time):
            layer = self._after(layer, list(moment))
        ends = [step for steps in layer.values() for step in steps]
        return min(ends, key=self._value, default=None)

    def _after(self, layer: dict[State, list[SearchStep]], moment: Sequence[Event]) -> dict[State, list[SearchStep]]:
        """The states after a moment in which every SLA is met; departures come before arrivals."""
        gone = {self.class_of[event.index] for event in moment if event.departs}
        following: dict[State, list[SearchStep]] = {}
        for state, steps in layer.items():
            self._add(following, _without(state, gone), steps)
        for event in moment:
            if not event.departs:
                following = self._with_arrival(following, event.index)
        self._query(following)
        counted: dict[State, list[SearchStep]] = {}
        for state, steps in following.items():
            if all(map(self.feasible.__getitem__, state)) and (in_use := self._in_use(state)) is not None:
                raised = [step._replace(peaks=tuple(map(max, step.peaks, in_use))) for step in steps]
                self._add(counted, state, [step for step in raised if self._value(step) < self.better_than])
        return counted

    def _with_arrival(self, layer: dict[State, list[SearchStep]], index: int) -> dict[State, list[SearchStep]]:
        """The states after every decision about an arrival."""
        following: dict[State, list[SearchStep]] = {}
        for state, steps in layer.items():
            for joined, larger in self._choices(state, index):
                self._add(following, larger, [SearchStep(*step[:2], joined, step) for step in steps])
            lost = tuple(int(priority == self.arrivals[index].priority) for priority in self.priorities)
            rejecting = [
                SearchStep(tuple(map(int.__add__, step.rejected, lost)), step.peaks, None, step) for step in steps
            ]
            if rejecting := [step for step in rejecting if step.rejected <= self.better_than[0]]:
                self._add(following, state, rejecting)
        return following

    def _choices(self, state: State, index: int) -> Iterator[tuple[CarriedNic, State]]:
        """Each different NIC with enough free cores, or a new one, for an arrival; and the state that follows."""
        arrival = self.arrivals[index]
        new: list[CarriedNic] = [(kind.index, ()) for kind in self.kinds if kind.count != 0]
        for nic in dict.fromkeys([*state, *new]):
            kind = self.kinds[nic[0]]
            taken = kind.cores_taken(self.example[member].workload for member in nic[1])
            if not kind.hosts(arrival.workload) or not kind_allows(kind, arrival):
                continue
            if taken + kind.cores_for(arrival.workload) > kind.cores:
                continue
            if self._have_owners and not may_share_nic([arrival, *(self.example[member] for member in nic[1])]):
                continue
            rest = list(state)
            if nic[1]:
                rest.remove(nic)
            if all(self._allows(name, value, nic, rest) for name, value in arrival.constraints.values):
                larger = nic[0], tuple(sorted((*nic[1], self.class_of[index])))
                yield nic, tuple(sorted([*rest, larger]))

    def _allows(self, name: str, value: str, nic: CarriedNic, rest: Sequence[CarriedNic]) -> bool:
        """Whether a member of a group may join the NIC, beside the others in use."""
        constraint = CONSTRAINTS[name]
        if not issubclass(constraint, GroupConstraint):
            return True
        domain = self.kinds[nic[0]].domain
        near = [nic]
        if constraint.same:
            near = list(rest)
        elif constraint.by_domain and domain:
            near += [other for other in rest if self.kinds[other[0]].domain == domain]
        met = sum(self.example[member].constraints.of(name) == value for _, members in near for member in members)
        return met == 0 if constraint.same else met < constraint.most(value)

    def _add(self, layer: dict[State, list[SearchStep]], state: State, steps: Sequence[SearchStep]) -> None:
        """Add the steps that no known step to the state dominates, and drop those that they dominate."""
        known = layer.get(state, [])
        for step in steps:
            self.steps += 1
            if not any(_dominates(other, step) for other in known):
                known = [*(other for other in known if not _dominates(step, other)), step]
        if self.steps > MOST_STEPS or time.monotonic() >= self.deadline:
            raise _GaveUp
        if known:
            layer[state] = known

    def _query(self, layer: dict[State, list[SearchStep]]) -> None:
        """Find out which NICs of these states are feasible; one batch of queries per kind.

        Where all of a NIC's tenants already run, nothing was decided that could be wrong.
        """
        unknown = [nic for nic in dict.fromkeys(nic for state in layer for nic in state) if nic not in self.feasible]
        self.feasible |= {
            nic: True for nic in unknown if all(self.example[member].nic is not None for member in nic[1])
        }
        unknown = [nic for nic in unknown if nic not in self.feasible]
        for kind, oracle in zip(self.kinds, self.oracles, strict=True):
            nics = [nic for nic in unknown if nic[0] == kind.index]
            groups = [
                [replace(self.example[member].tenant, constraints=UNCONSTRAINED) for member in members]
                for _, members in nics
            ]
            able = feasible(self.without_pools[kind.index], oracle, groups)
            self.feasible |= dict(zip(nics, able, strict=True))

    def _in_use(self, state: State) -> list[int] | None:
        """NICs in use by kind, or of all; None where there are more of a kind than there are."""
        by_kind = Counter(number for number, _ in state)
        if any(kind.count is not None and by_kind[kind.index] > kind.count for kind in self.kinds):
            return None
        return [sum(by_kind[number] for number in together) for together in self.counted]

    def _value(self, step: SearchStep) -> PlanValue:
        """What the step has come to: rejections, the cost of the peaks, and what of them must be bought."""
        cost = sum(map(Fraction.__mul__, self.costs, map(Fraction, step.peaks)), start=Fraction(0))
        if not any(self.owned):
            return step.rejected, cost, 0
        return step.rejected, cost, sum(max(peak - own, 0) for peak, own in zip(step.peaks, self.owned, strict=True))


def _classes(arrivals: Sequence[Arrival]) -> tuple[list[int], list[Arrival]]:
    """The class of each arrival, and an arrival of each class.

    Those of a class are equal in workload, SLA, departure, constraints and priority, and all may move or none.
    """
    numbers: dict[object, int] = {}
    example: list[Arrival] = []
    class_of = []
    for arrival in arrivals:
        key = (
            arrival.workload, arrival.sla, arrival.departure, arrival.nic is not None, arrival.constraints,
            arrival.priority,
        )  # fmt: skip
        if key not in numbers:
            numbers[key] = len(numbers)
            example.append(arrival)
        class_of.append(numbers[key])
    return class_of, example


def _without(state: State, gone: set[int]) -> State:
    """The state without the tenants of these classes, all of which depart at once."""
    if not gone:
        return state
    left = ((kind, tuple(member for member in members if member not in gone)) for kind, members in state)
    return tuple(sorted(nic for nic in left if nic[1]))


def _dominates(one: SearchStep, other: SearchStep) -> bool:
    """Whether every sequel of the other step is as good after this one."""
    if one.rejected != other.rejected:
        return one.rejected < other.rejected
    return all(a <= b for a, b in zip(one.peaks, other.peaks, strict=True))


def _placements(
    arrivals: Sequence[Arrival],
    merged: MergedKinds,
    running: Sequence[RunningNic],
    class_of: Sequence[int],
    last: SearchStep,
) -> list[Placement]:
    """The plan of these decisions; a NIC that is no longer in use is the next to be used."""
    decisions = iter(_decisions(last))
    fleet = Fleet(sorted((kind for members in merged.members for kind in members), key=lambda kind: kind.index))
    settle_running(arrivals, fleet)
    place_of = {arrival.id: place for place, arrival in enumerate(arrivals)}
    nics = [(fleet.nics[nic.id], [place_of[tenant.id] for tenant in nic.tenants]) for nic in running]
    on_nic = {place: places for _, places in nics for place in places}
    placements = [Placement(arrival) for arrival in arrivals]
    for nic, places in nics:
        for place in places:
            placements[place] = Placement(arrivals[place], nic.id, nic.kind)
    for event in events_of(arrivals):
        if event.departs:
            if event.index in on_nic:
                on_nic[event.index].remove(event.index)
            continue
        joined = None if arrivals[event.index].nic is not None else next(decisions)
        if joined is None:
            continue
        kind, members = joined
        like = (
            (nic, places)
            for nic, places in nics
            if merged.number_of(nic.kind) == kind and tuple(sorted(class_of[place] for place in places)) == members
        )
        found = next(like, None)
        if found is None:
            used = Counter(nic.kind.index for nic, _ in nics)
            found = fleet.open(merged.next_kind(kind, used)), []
            nics.append(found)
        nic, places = found
        places.append(event.index)
        on_nic[event.index] = places
        placements[event.index] = Placement(arrivals[event.index], nic.id, nic.kind)
    return placements


def _decisions(last: SearchStep) -> list[CarriedNic | None]:
    """The decision about each arrival that did not already run, in order of the trace."""
    decisions = []
    step = last
    while step.before is not None:
        decisions.append(step.joined)
        step = step.before
    return decisions[::-1]
