"""Exhaustive search of all plans for a trace, by dynamic programming over its moments.

No tenant moves, and every SLA is met after every moment: all departures and arrivals at one time form one moment. The
state after a moment is the list of NICs in use with their tenants. Two sequences of decisions that lead to the same
state differ only in the arrivals rejected and in the peaks of NICs in use. Only those are kept that reject the fewest
and, of these, have peaks that no other is below. Tenants with the same workload, SLA and departure are interchangeable.

Where numbers of cores are to be chosen, a NIC is carried with all that its tenants may still have: those with which
every SLA was met so far. Which of them it is, is decided at the end.

A long trace has too many states: the search gives up after a number of decisions, and then proves nothing."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, islice
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
from placer.model.day import parts_of, tenant_at
from placer.model.feasibility import feasible
from placer.model.fleet import Fleet
from placer.model.groups import UNCONSTRAINED
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Event, Placement, events_of
from placer.optimal.merged_kinds import MergedKinds
from placer.optimal.program import exact_cost

MOST_STEPS = 100_000  # the search gives up after this many decisions

Members = tuple[int, ...]  # the classes of the tenants of a NIC, ascending
CarriedNic = tuple[int, tuple[Members, ...]]
"""A NIC in use: the number of its kind, and its tenants on all numbers of cores that they may have, ascending."""

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


@dataclass
class _ReplayedNic:
    """A NIC while its plan is replayed.

    `tenants`: by what may be on it, the class of each arrival that is or was there, by its place in the trace.
    """

    nic: Nic
    kind: int
    tenants: dict[Members, dict[int, int]]

    @property
    def carried(self) -> CarriedNic:
        return self.kind, tuple(sorted(self.tenants))


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
    return Exhausted(None if best is None else search.placements(best))


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
        self.merged = merged
        self.running = running
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
        self.options, self.example = _classes(arrivals, kinds)
        place_of = {arrival.id: place for place, arrival in enumerate(arrivals)}
        self.carried = [
            (number, tuple(sorted(self.options[place_of[tenant.id]][number][0] for tenant in nic.tenants)))
            for nic in running
            for number in [merged.number_of(nic.kind)]
        ]
        self.begun: State = tuple(sorted((number, (members,)) for number, members in self.carried))
        self.feasible: dict[tuple[int, Members], bool] = {}
        self.steps = 0

    def best(self) -> SearchStep | None:
        """The last step of the best plan; None where none is better than the one to beat."""
        in_use = self._in_use(self.begun) or ()
        layer: dict[State, list[SearchStep]] = {
            self.begun: [SearchStep((0,) * len(self.priorities), tuple(in_use), None, None)]
        }
        for moment in self._moments():
            layer = self._after(layer, moment)
        ends = [step for steps in layer.values() for step in steps]
        return min(ends, key=self._value, default=None)

    def _moments(self) -> Iterator[list[Event]]:
        """The events of each moment after the beginning."""
        coming = (event for event in events_of(self.arrivals) if event.time > -math.inf)
        for _, moment in groupby(coming, key=lambda event: event.time):
            yield list(moment)

    def placements(self, last: SearchStep) -> list[Placement]:
        """The plan of these decisions; a NIC that is no longer in use is the next to be used.

        Of all numbers of cores that its tenants may have, each NIC has the fewest together.
        """
        decisions = iter(_decisions(last))
        kinds = [kind for members in self.merged.members for kind in members]
        fleet = Fleet(sorted(kinds, key=lambda kind: kind.index))
        settle_running(self.arrivals, fleet)
        nics = [
            _ReplayedNic(fleet.nics[nic.id], number, {members: {}})
            for nic, (number, members) in zip(self.running, self.carried, strict=True)
        ]
        for moment in self._moments():
            gone = self._gone(moment)
            for nic in nics:
                nic.tenants = {_staying(members, gone): joined for members, joined in nic.tenants.items()}
            for event in moment:
                if event.departs or (before := next(decisions)) is None:
                    continue
                found = next((nic for nic in nics if nic.carried == before), None)
                if found is None:
                    used = Counter(nic.nic.kind.index for nic in nics)
                    found = _ReplayedNic(fleet.open(self.merged.next_kind(before[0], used)), before[0], {(): {}})
                    nics.append(found)
                found.tenants = {
                    larger: {**found.tenants[members], event.index: option}
                    for larger, (members, option) in self._with_one_more(before, event.index).items()
                }
            for nic in nics:
                nic.tenants = {
                    of: joined for of, joined in nic.tenants.items() if not of or self.feasible[nic.kind, of]
                }
        kind_of = {nic.id: nic.kind for nic in self.running}
        placements = [Placement(arrival, arrival.nic, kind_of.get(arrival.nic or "")) for arrival in self.arrivals]
        for nic in nics:
            joined = min(nic.tenants.values(), key=lambda joined: self._cores(nic.kind, joined.values()))
            for place, option in joined.items():
                arrival = replace(self.arrivals[place], workload=self.example[option].workload)
                placements[place] = Placement(arrival, nic.nic.id, nic.nic.kind)
        return placements

    def _cores(self, kind: int, members: Iterable[int]) -> int:
        return self.kinds[kind].cores_taken(self.example[member].workload for member in members)

    def _after(self, layer: dict[State, list[SearchStep]], moment: Sequence[Event]) -> dict[State, list[SearchStep]]:
        """The states after a moment in which every SLA is met; departures come before arrivals."""
        gone = self._gone(moment)
        following: dict[State, list[SearchStep]] = {}
        for state, steps in layer.items():
            self._add(following, _without(state, gone), steps)
        for event in moment:
            if not event.departs:
                following = self._with_arrival(following, event.index)
        self._query(following)
        counted: dict[State, list[SearchStep]] = {}
        for state, steps in following.items():
            able = [(kind, tuple(of for of in tenants if self.feasible[kind, of])) for kind, tenants in state]
            if all(tenants for _, tenants in able):
                self._add(counted, tuple(sorted(able)), [raised for _, raised in self._raised(state, steps)])
        return counted

    def _gone(self, moment: Sequence[Event]) -> set[int]:
        """The classes of all that depart at a moment."""
        return {option for event in moment if event.departs for of in self.options[event.index] for option in of}

    def _raised(self, state: State, steps: Sequence[SearchStep]) -> Iterator[tuple[SearchStep, SearchStep]]:
        """Each step, and the same with the peaks of a state, where that is better than the plan to beat."""
        in_use = self._in_use(state)
        for step in steps if in_use is not None else ():
            raised = step._replace(peaks=tuple(map(max, step.peaks, in_use or ())))
            if self._value(raised) < self.better_than:
                yield step, raised

    def _with_arrival(self, layer: dict[State, list[SearchStep]], index: int) -> dict[State, list[SearchStep]]:
        """The states after every decision about an arrival."""
        following: dict[State, list[SearchStep]] = {}
        for state, steps in layer.items():
            for joined, larger in self._choices(state, index):
                # within a moment, no NIC is left any more
                able = [step for step, _ in self._raised(larger, steps)]
                self._add(following, larger, [SearchStep(*step[:2], joined, step) for step in able])
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
        new: list[CarriedNic] = [(kind.index, ((),)) for kind in self.kinds if kind.count != 0]
        for nic in dict.fromkeys([*state, *new]):
            larger = self._with_one_more(nic, index)
            if not larger:
                continue
            present = nic[1][0]
            if self._have_owners and not may_share_nic([arrival, *(self.example[member] for member in present)]):
                continue
            rest = list(state)
            if present:
                rest.remove(nic)
            if all(self._allows(name, value, nic, rest) for name, value in arrival.constraints.values):
                self.steps += len(larger) - 1
                yield nic, tuple(sorted([*rest, (nic[0], tuple(sorted(larger)))]))

    def _with_one_more(self, nic: CarriedNic, index: int) -> dict[Members, tuple[Members, int]]:
        """What may be on the NIC with one more arrival; each with what was on it before, and the class that joined."""
        kind, found = self.kinds[nic[0]], {}
        for members in nic[1]:
            free = kind.cores - self._cores(kind.index, members)
            for option in self.options[index][kind.index]:
                if kind.cores_for(self.example[option].workload) <= free:
                    found[tuple(sorted((*members, option)))] = members, option
        return found

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
        met = sum(self.example[member].constraints.of(name) == value for _, of in near for member in of[0])
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
        nics = dict.fromkeys(nic for state in layer for nic in state)
        asked = dict.fromkeys((kind, members) for kind, tenants in nics for members in tenants)
        unknown = [nic for nic in asked if nic not in self.feasible]
        self.feasible |= {
            nic: True for nic in unknown if all(self.example[member].nic is not None for member in nic[1])
        }
        unknown = [nic for nic in unknown if nic not in self.feasible]
        for kind, oracle in zip(self.kinds, self.oracles, strict=True):
            of_kind = [nic for nic in unknown if nic[0] == kind.index]
            parts = [
                parts_of([replace(self.example[member].tenant, constraints=UNCONSTRAINED) for member in members])
                for _, members in of_kind
            ]
            able = iter(feasible(self.without_pools[kind.index], oracle, [part for of_day in parts for part in of_day]))
            for nic, of_day in zip(of_kind, parts, strict=True):
                self.feasible[nic] = all(list(islice(able, len(of_day))))

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


def _classes(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind]
) -> tuple[list[list[tuple[int, ...]]], list[Arrival]]:
    """Per arrival and kind of NIC the classes that it may have there, and an arrival of each class.

    There is one for every number of cores. Those of a class are equal in workload, load over the day, SLA, departure,
    constraints and priority, and all may move or none.
    """
    numbers: dict[object, int] = {}
    example: list[Arrival] = []
    options = []
    for arrival in arrivals:
        of_arrival = []
        for kind in kinds:
            given = [arrival]
            if arrival.nic is None:
                on_cores = [replace(arrival, workload=workload) for workload in kind.choices(arrival.workload)]
                given = [
                    sized for sized in on_cores if kind.hosts(_busiest(sized).workload) and kind_allows(kind, sized)
                ]
            for sized in given:
                if (key := _class_of(sized)) not in numbers:
                    numbers[key] = len(numbers)
                    example.append(sized)
            of_arrival.append(tuple(numbers[_class_of(sized)] for sized in given))
        options.append(of_arrival)
    return options, example


def _class_of(arrival: Arrival) -> tuple[object, ...]:
    return (
        arrival.workload, arrival.day, arrival.sla, arrival.departure, arrival.nic is not None, arrival.constraints,
        arrival.priority,
    )  # fmt: skip


def _busiest(arrival: Arrival) -> Tenant:
    """The arrival as in the part of the day in which most is offered to it."""
    return tenant_at(arrival.tenant, max(arrival.day)) if arrival.day else arrival.tenant


def _without(state: State, gone: set[int]) -> State:
    """The state without the tenants of these classes, all of which depart at once."""
    if not gone:
        return state
    left = [(kind, tuple(sorted({_staying(members, gone) for members in tenants}))) for kind, tenants in state]
    return tuple(sorted(nic for nic in left if nic[1][0]))


def _staying(members: Members, gone: set[int]) -> Members:
    return tuple(member for member in members if member not in gone)


def _dominates(one: SearchStep, other: SearchStep) -> bool:
    """Whether every sequel of the other step is as good after this one."""
    if one.rejected != other.rejected:
        return one.rejected < other.rejected
    return all(a <= b for a, b in zip(one.peaks, other.peaks, strict=True))


def _decisions(last: SearchStep) -> list[CarriedNic | None]:
    """The decision about each arrival that did not already run, in order of the trace."""
    decisions = []
    step = last
    while step.before is not None:
        decisions.append(step.joined)
        step = step.before
    return decisions[::-1]
