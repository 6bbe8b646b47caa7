"""Plans: where a strategy put every arrival."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from placer.model.arrival import Arrival
from placer.model.fleet import Fleet
from placer.model.nic import Nic
from placer.model.nic_kind import NicKind
from profiles.shown import Shown

OPTIMAL = "optimal"
"""The strategy of plans that know all arrivals and the ground truth."""
PLANNED = "planned"
"""The strategy of plans that know all arrivals, and throughputs by a predictor."""


@dataclass(frozen=True, slots=True)
class Placement:
    """One arrival and its NIC; no NIC means that it was rejected. Not every strategy gives a reason."""

    arrival: Arrival
    nic: str | None = None
    kind: NicKind | None = None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class BudgetProof:
    """Prices that prove a bound: no tenants that a NIC can carry are worth more than it costs.

    Parameters
    ----------
    of_tenants
        Per tenant, by id.
    of_kinds
        Of a NIC of each kind, beyond its cost; 0 where there is no limit.
    of_violations
        Of an expected violation; 0 where the bound is that of cores alone.
    over_cores
        Whether every set of tenants that fits the cores was taken for one that a NIC can carry.
    """

    of_tenants: Mapping[str, float]
    of_kinds: tuple[float, ...]
    of_violations: float
    over_cores: bool


@dataclass(frozen=True)
class Within:
    """What is known of a plan that was made for a budget of SLA violations.

    Parameters
    ----------
    reserve_pct
        What was kept back of the budget for errors that repeat and were selected, per 100 instances placed.
    lower_bound
        No plan within the budget, reserve aside, that rejects as few costs less.
    nics_lower_bound
        No such plan uses fewer NICs.
    proven
        Whether none rejects fewer, and none that rejects as many costs less.
    scope
        Which plans the bound covers, in words.
    proof
        What proves the bound; None where instances leave.
    """

    reserve_pct: float
    lower_bound: float
    nics_lower_bound: int
    proven: bool
    scope: str
    proof: BudgetProof | None = None


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """What a strategy decided for a trace.

    Parameters
    ----------
    strategy
        Its name.
    predictor
        The predictor it used; None for strategies that use none.
    placements
        One per arrival, in order of arrival.
    seconds
        Time for all decisions.
    risk
        The share of cases that fall short of the predictions it used; None where it used none, or the median.
    within
        For a plan made for a budget of SLA violations by a strategy that knows all arrivals, what is known of it.
    peak_nics, peak_rejected
        Where loads change over the day and the strategy knows how: the NICs of its plan as if all had their peak all
        day, and the arrivals that this one rejects. None and 0 elsewhere.
    """

    strategy: str
    predictor: str | None
    placements: tuple[Placement, ...]
    seconds: float
    risk: float | None = None
    within: Within | None = None
    peak_nics: int | None = None
    peak_rejected: int = 0

    @property
    def placed(self) -> list[Placement]:
        """The placements that have a NIC."""
        return [placement for placement in self.placements if placement.nic is not None]

    @property
    def rejected(self) -> int:
        """How many arrivals have no NIC."""
        return len(self.placements) - len(self.placed)

    @property
    def rejected_by_priority(self) -> dict[int, int]:
        """How many arrivals of each priority in the trace have no NIC, the highest priority first."""
        rejected = dict.fromkeys(sorted({p.arrival.priority for p in self.placements}, reverse=True), 0)
        for placement in self.placements:
            rejected[placement.arrival.priority] += placement.nic is None
        return rejected

    @property
    def losses(self) -> tuple[int, ...]:
        """The values of `rejected_by_priority`: of two plans for a trace, the lower one rejects less."""
        return tuple(self.rejected_by_priority.values())


# Replay: the events of a trace in order of time, and the one loop that lets them happen to a fleet.
#
# Events at one time form a moment: departures come first, and a co-location counts only if it stands when the moment is
# over. The constraint checkers, the evaluation and the optimum all mean this. Instances that already run begin at one
# moment before all others.


Choose = Callable[[int], Nic | NicKind | None]
"""For the arrival at this place of the trace: a NIC in use, the kind of a NIC to open, or None to reject."""


@dataclass(frozen=True, slots=True)
class Event:
    """An arrival, or its departure; `index` is the arrival's place in the trace."""

    time: float
    index: int
    departs: bool


def events_of(arrivals: Sequence[Arrival]) -> Iterator[Event]:
    """Arrivals and departures in order of time; at one time departures come first, so that they free their cores.

    Instances that already run come before all.
    """
    leaving: list[tuple[float, int]] = []
    running = [index for index, arrival in enumerate(arrivals) if arrival.nic is not None]
    arriving = (index for index, arrival in enumerate(arrivals) if arrival.nic is None)
    for index in chain(running, arriving):
        arrival = arrivals[index]
        while leaving and leaving[0][0] <= arrival.begins:
            yield Event(*heapq.heappop(leaving), departs=True)
        yield Event(arrival.begins, index, departs=False)
        if arrival.departure is not None:
            heapq.heappush(leaving, (arrival.departure, index))
    while leaving:
        yield Event(*heapq.heappop(leaving), departs=True)


def replay(arrivals: Sequence[Arrival], fleet: Fleet, choose: Choose) -> Iterator[tuple[Event, Nic | None]]:
    """Let every event of the trace happen to the fleet; yields each with the NIC that changed, None if none did.

    Nothing is chosen for instances that the fleet has (`settle_running`). `choose` may replace an arrival by one with a
    number of cores.
    """
    for event in events_of(arrivals):
        arrival = arrivals[event.index]
        tenant = arrival.tenant
        if event.departs:
            yield event, fleet.remove(tenant.id) if fleet.nic_of(tenant.id) is not None else None
            continue
        settled = None if arrival.nic is None else fleet.nic_of(tenant.id)
        if settled is not None:
            yield event, settled
            continue
        choice = choose(event.index)
        nic = fleet.open(choice) if isinstance(choice, NicKind) else choice
        if nic is not None:
            fleet.place(arrivals[event.index].tenant, nic)  # who chooses may have given it cores
        yield event, nic


def replay_plan(plan: Plan, fleet: Fleet) -> Iterator[tuple[float, list[Nic]]]:
    """Let a plan happen to an empty fleet; yields each moment (s) with the NICs that changed, as they stand after it.

    A NIC without tenants is out of use, but still yielded.
    """

    def choose(index: int) -> Nic | None:
        placement = plan.placements[index]
        if placement.nic is None or placement.kind is None:
            return None
        return fleet.nics.get(placement.nic) or fleet.open(fleet.kinds[placement.kind.index], placement.nic)

    arrivals = [placement.arrival for placement in plan.placements]
    following = chain((event.time for event in islice(events_of(arrivals), 1, None)), [None])
    changed: dict[str, Nic] = {}
    for (event, nic), next_time in zip(replay(arrivals, fleet, choose), following, strict=False):
        if nic is not None:
            changed[nic.id] = nic
        if next_time != event.time:
            yield event.time, list(changed.values())
            changed = {}
