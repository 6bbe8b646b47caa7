"""Instances at rates and the NICs that they share, as a search moves them: with cores to choose, during their stays.

Of all moments, those right before a departure are enough, and the end: between two of them instances are only added. A
trace without departures has one moment."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from placer.model.arrival import Arrival
from placer.model.constraints import kind_allows
from placer.model.day import gbps_over_day
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.plan import events_of
from placer.optimal.planned.chances import LIKELIEST_VIOLATION
from placer.optimal.planned.judges import Judge
from placer.optimal.planned.rate_bound import LeastNeed
from profiles import Workload

MOST_MOMENTS = 1_000  # with more, neighbouring ones are taken for one, at which everybody is present who is at either


@dataclass(frozen=True)
class KnownKind:
    """A kind of NIC, and what a search knows of it.

    `judge`: what its co-locations cost. `shares`: the share of each of its resources that a workload takes alone.
    `alone`: what workloads could carry alone on it, kpps.
    """

    kind: NicKind
    judge: Judge
    shares: Callable[[Workload], dict[str, float]]
    alone: Callable[[Sequence[Workload]], Sequence[float]]


@dataclass(eq=False)
class Choice:
    """An instance with, per kind of NIC, each number of cores on which it keeps its SLA alone there, the fewest first.

    `room`: what it could carry alone on each, relative to what its SLA requires. `gbps`: what is offered to it in each
    part of the day. `first`, `last`: its first moment, and the one after its last, of those that a search looks at;
    `stay`: the same of all moments. `at`: which of them it has now, per kind. `stays`: whether it already runs where it
    is.
    """

    tenants: tuple[list[Tenant], ...]
    cores: tuple[list[int], ...]
    room: tuple[list[float], ...]
    gbps: tuple[float, ...]
    first: int = 0
    last: int = 1
    stay: tuple[int, int] = (0, 1)
    stays: bool = False
    at: list[int] = field(default_factory=list)

    @property
    def id(self) -> str:
        return next(found[0].id for found in self.tenants if found)

    def on(self, kind: int, more: int = 0) -> Tenant:
        """The instance on a kind of NIC, with the cores that it has there now, or the next `more` number of them."""
        return self.tenants[kind][self.at[kind] + more]

    def taken(self, kind: int) -> int:
        """The cores that it has there now."""
        return self.cores[kind][self.at[kind]]

    @property
    def need(self) -> LeastNeed:
        """What it takes at least, of all moments: two that merged ones hold need not be there together."""
        return LeastNeed(tuple(found[0] if found else 0 for found in self.cores), self.gbps, *self.stay)


@dataclass(eq=False)
class RateNic:
    """A NIC with its instances, and what each costs there."""

    kind: int
    choices: list[Choice] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    @property
    def running(self) -> bool:
        """Whether some instances already run here."""
        return any(choice.stays for choice in self.choices)

    @property
    def cost(self) -> float:
        return sum(self.costs)

    @property
    def filled(self) -> int:
        """The cores of its instances, each as often as there are moments of its stay."""
        return sum(choice.taken(self.kind) * (choice.last - choice.first) for choice in self.choices)

    @property
    def movable(self) -> list[Choice]:
        """The instances that do not already run here."""
        return [choice for choice in self.choices if not choice.stays]

    @property
    def worst(self) -> Choice:
        """Of those the one that costs most."""
        costs = zip(self.costs, self.choices, strict=True)
        return max(((cost, choice) for cost, choice in costs if not choice.stays), key=lambda of: of[0])[1]


def stays_of(arrivals: Sequence[Arrival]) -> list[tuple[int, int]]:
    """Per arrival its first moment, and the one after its last."""
    first, last, moments, rising = [0] * len(arrivals), [0] * len(arrivals), 0, False
    for event in events_of(arrivals):
        if event.departs:
            moments += rising
            last[event.index] = moments
        else:
            first[event.index] = moments
        rising = not event.departs
    moments += rising
    return [(begin, end or moments) for begin, end in zip(first, last, strict=True)]


class RateNics:
    """What all NICs of these kinds may carry, and what it costs; `moments`, `parts`: how many there are, of all stays
    and of the day. Of more than `MOST_MOMENTS`, `step` of them are merged each."""

    def __init__(self, known: Sequence[KnownKind], moments: int, parts: int = 1) -> None:
        self.step = math.ceil(moments / MOST_MOMENTS) or 1
        self.known, self.moments, self.parts = known, math.ceil(moments / self.step), parts
        self.judged = 0  # instances in co-locations that were judged so far

    def choices_of(self, arrivals: Sequence[Arrival], stays: Sequence[tuple[int, int]]) -> list[Choice | None]:
        """Per arrival what may be chosen; None where it keeps its SLA on no kind of NIC."""
        able = [self._able_on(number, arrivals) for number in range(len(self.known))]
        found: list[Choice | None] = []
        kinds = [known.kind for known in self.known]
        for place, (arrival, stay) in enumerate(zip(arrivals, stays, strict=True)):
            tenants = tuple(of[place] for of in able)
            if not any(tenants):
                found.append(None)
                continue
            cores = tuple(
                [kind.cores_for(tenant.workload) for tenant in of] for kind, of in zip(kinds, tenants, strict=True)
            )
            gbps = gbps_over_day(kinds[0], arrival.tenant, self.parts)
            room = tuple(self._room(number, of) for number, of in enumerate(tenants))
            found.append(Choice(tenants, cores, room, gbps, *self._merge(stay), stay, at=[0] * len(kinds)))
        return found

    def _merge(self, stay: tuple[int, int]) -> tuple[int, int]:
        """The first moment of a stay, and the one after its last, of the merged ones."""
        return stay[0] // self.step, (stay[1] - 1) // self.step + 1

    def _able_on(self, number: int, arrivals: Sequence[Arrival]) -> list[list[Tenant]]:
        kind, judge = self.known[number].kind, self.known[number].judge
        asked = [
            (place, replace(arrival.tenant, workload=workload))
            for place, arrival in enumerate(arrivals)
            if kind.hosts(arrival.workload) and kind_allows(kind, arrival)
            for workload in kind.choices(arrival.workload)
        ]
        able: list[list[Tenant]] = [[] for _ in arrivals]
        for (place, tenant), (cost,) in zip(asked, judge.costs([[tenant] for _, tenant in asked]), strict=True):
            if cost <= LIKELIEST_VIOLATION:
                able[place].append(tenant)
        return able

    def _room(self, number: int, tenants: Sequence[Tenant]) -> list[float]:
        alone = self.known[number].alone([tenant.workload for tenant in tenants])
        return [kpps / max(tenant.required_kpps(kpps), 1e-9) for tenant, kpps in zip(tenants, alone, strict=True)]

    def running(self, tenant: Tenant, number: int, stay: tuple[int, int]) -> Choice:
        """An instance that already runs on a NIC of that kind."""
        none: list[list[Tenant]] = [[] for _ in self.known]
        none[number] = [tenant]
        kind = self.known[number].kind
        cores = tuple([kind.cores_for(of.workload) for of in found] for found in none)
        room = tuple([1.0] * len(found) for found in none)
        gbps = gbps_over_day(kind, tenant, self.parts)
        return Choice(tuple(none), cores, room, gbps, *self._merge(stay), stay, stays=True, at=[0] * len(none))

    def fits(self, number: int, choices: Sequence[Choice], larger: Choice | None = None) -> bool:
        """Whether a NIC of that kind has the cores and the line rate for all of these, whenever they are there.

        `larger` is one that gets its next number of cores.
        """
        kind = self.known[number].kind
        if not all(choice.cores[number] for choice in choices):
            return False
        taken = [choice.cores[number][choice.at[number] + (choice is larger)] for choice in choices]
        if sum(taken) <= kind.cores and (
            kind.line_rate_gbps == math.inf
            or all(sum(of) <= kind.line_rate_gbps for of in zip(*(choice.gbps for choice in choices), strict=True))
        ):
            return True
        if self.moments == 1:
            return False
        cores, gbps = np.zeros(self.moments), np.zeros((self.moments, self.parts))
        for choice, count in zip(choices, taken, strict=True):
            cores[choice.first : choice.last] += count
            gbps[choice.first : choice.last] += choice.gbps
        return bool(cores.max() <= kind.cores and gbps.max() <= kind.line_rate_gbps)

    def judge(self, nics: Sequence[RateNic]) -> None:
        """Find what the instances of these cost now."""
        for nic, costs in zip(nics, self.costs([(nic.kind, nic.choices, None) for nic in nics]), strict=True):
            nic.costs = costs

    def costs(self, asked: Sequence[tuple[int, Sequence[Choice], Choice | None]]) -> list[list[float]]:
        """Per kind of NIC and instances, what each of these costs there, at its worst moment.

        The last of each is an instance that gets its next number of cores, if any.
        """
        found = [[0.0] * len(choices) for _, choices, _ in asked]
        for number, known in enumerate(self.known):
            where, groups = [], []
            for at, (kind, choices, larger) in enumerate(asked):
                if kind == number:
                    for places in self._together(choices):
                        where.append((at, places))
                        groups.append([choices[place].on(number, choices[place] is larger) for place in places])
            self.judged += sum(map(len, groups))
            for (at, places), costs in zip(where, known.judge.costs(groups), strict=True):
                for place, cost in zip(places, costs, strict=True):
                    found[at][place] = max(found[at][place], cost)
        return found

    def _together(self, choices: Sequence[Choice]) -> list[list[int]]:
        """The largest sets of instances that are there at one moment, by their places."""
        if self.moments == 1:
            return [[*range(len(choices))]] if choices else []
        sets = {
            tuple(place for place, choice in enumerate(choices) if choice.first < end <= choice.last): None
            for end in sorted({choice.last for choice in choices})
        }
        return [[*found] for found in sets if not any(set(found) < set(other) for other in sets)]
