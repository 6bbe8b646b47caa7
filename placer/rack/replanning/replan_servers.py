"""Replanning on many servers: the servers that a change touches first, then these with one other each.

Where every chain stays, regions (`regions.py`) are independent, and equal ones are solved once. A region that cannot
keep its SLOs is repaired: by moves inside it, or together with others.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

from placer.rack.chain import Chain, TableId
from placer.rack.plan import SWITCH_SITE, ChainPlan, RackPlan, Status
from placer.rack.rack import Rack
from placer.rack.replanning.moves import NEW_SITE
from placer.rack.replanning.regions import Region, Regions
from placer.rack.replanning.replan_search import Fewest, Replanning
from placer.rack.search.fleet_bound import fleet_bound

FEW_MOVES = 2  # for so many, chains may also be split over servers, and that fewer are not enough can be proven
OTHER_REGIONS = 8  # regions that one to repair is joined with, those with the most spare cores of each kind
HOME_REGIONS = 16  # regions that are tried for a chain that has no place
MOST_JOINED = 3
PROVEN_GAP = 1e-9
LOOSE_GAP = 0.01  # relative; a bound this far from a plan is compared with that of all plans, which takes longer


@dataclass(frozen=True)
class _Try:
    """A region that may be put in place of others, and its best plan."""

    region: Region
    replaced: tuple[Region, ...]
    plan: RackPlan


@dataclass(frozen=True)
class _Repair:
    """A region that was put in place of others."""

    region: Region
    replaced: tuple[Region, ...]
    found: Fewest
    gain: float


class ServerReplanning:
    """Finds a plan with few moves for many servers.

    `kept`: per chain and NF, as `kept_sites` returns them. `until`: when to end, on the monotonic clock.
    """

    def __init__(
        self,
        chains: Sequence[Chain],
        rack: Rack,
        kept: Sequence[Sequence[int]],
        until: float,
        notify: Callable[[str], None],
    ) -> None:
        self.chains, self.rack, self.kept, self.until, self.notify = chains, rack, kept, until, notify
        self.regions = Regions(chains, rack, kept)
        self.known: dict[object, RackPlan] = {}
        self.limits: dict[object, float] = {}
        self.plans: dict[Region, RackPlan] = {}

    def fewest(self) -> Fewest:
        """A plan with few moves, its bound, and how many moves are needed at least."""
        regions, loose = self.regions.every()
        broken = [region for region in regions if region.chains and not self._staying(region).chains]
        staying = {region: self._staying(region) for region in regions if region not in broken}
        self.notify(f"{len(regions):,} regions of servers, {len(broken)} cannot keep all SLOs without moves")
        found = self._with_repairs(staying, broken, loose)
        if not found.plan.chains and len(broken) > 1:
            all_broken = self.regions.join(broken)
            found = replace(self._with_repairs(staying, [all_broken], loose), least=found.least)
        return found

    def _with_repairs(self, staying: dict[Region, RackPlan], broken: Sequence[Region], loose: Sequence[int]) -> Fewest:
        """Repair one region after the other, then find places for the chains that have none."""
        self.plans = dict(staying)
        free = any(NEW_SITE in kept for kept in self.kept)
        self.alone = len(broken) == 1 and not free
        bound = sum(plan.bound_mbps or 0.0 for plan in staying.values())
        moves = least = 0
        items: list[Region | int] = [*broken, *loose]
        for item in items:
            homes = self._homes(item) if isinstance(item, int) else [item]
            placed = isinstance(item, Region) and not any(NEW_SITE in self.kept[chain] for chain in item.chains)
            repair, needed, limit = self._repair(homes, placed=placed)
            least += needed
            if repair is None:
                return self._without_plan(least)
            moves += repair.found.moves
            bound += limit
            for region in repair.replaced:
                self.plans.pop(region)
            self.plans[repair.region] = repair.found.plan
        return self._plan(moves, least, bound if not free and moves == least else None)

    def _plan(self, moves: int, least: int, bound: float | None) -> Fewest:
        placed: dict[int, ChainPlan] = {}
        for region, plan in self.plans.items():
            placed |= self.regions.placed(region, plan)
        chains = tuple(placed[number] for number in range(len(self.chains)))
        plan = RackPlan(self.rack, Status.FEASIBLE, chains)
        if bound is None or bound > plan.marginal_mbps * (1 + LOOSE_GAP):
            bound = min(fleet_bound(self.chains, self.rack), bound or float("inf"))
        proven = moves == least and bound <= plan.marginal_mbps * (1 + PROVEN_GAP)
        bound = max(bound, plan.marginal_mbps)
        return Fewest(replace(plan, bound_mbps=bound, status=Status.OPTIMAL if proven else plan.status), moves, least)

    def _without_plan(self, least: int) -> Fewest:
        bound = fleet_bound(self.chains, self.rack)
        status = Status.INFEASIBLE if bound == float("-inf") else Status.UNKNOWN
        return Fewest(RackPlan(self.rack, status, bound_mbps=None if status is Status.INFEASIBLE else bound), 0, least)

    def _instance(self, region: Region, *, split: bool = True) -> Replanning:
        return self.regions.instance(region, self._others(region), split=split)

    def _others(self, region: Region) -> frozenset[TableId]:
        """Tables on the switch of chains outside a region, as planned so far or as before."""
        if self.rack.switch.usable_stages is None:
            return frozenset()
        sites = dict(enumerate(self.kept))
        for one, plan in self.plans.items():
            sites |= {number: placed.layout.sites for number, placed in zip(one.chains, plan.chains, strict=True)}
        return frozenset(
            (chain, nf)
            for chain in sites.keys() - set(region.chains)
            for nf, site in enumerate(sites[chain])
            if site == SWITCH_SITE
        )

    def _staying(self, region: Region) -> RackPlan:
        """The best plan of a region where every chain stays; new chains may go anywhere in it."""
        if not region.chains:
            return RackPlan(self.rack, Status.OPTIMAL, bound_mbps=0.0)
        key = self.regions.key(region)
        if key not in self.known or self._depends_on_switch(region):
            self.known[key] = self._instance(region).within(0, until=self.until)
        return self.known[key]

    def _depends_on_switch(self, region: Region) -> bool:
        """Whether the best plan of a region changes with what others have on the switch."""
        free = any(NEW_SITE in self.kept[chain] for chain in region.chains)
        return free and self.rack.switch.usable_stages is not None

    def _homes(self, chain: int) -> list[Region]:
        """Regions with a chain that has no place yet, one of each kind."""
        return [
            self.regions.of(region.servers, [*region.chains, chain])
            for region in [*self._distinct(self.plans, HOME_REGIONS), Region((), ())]
        ]

    def _distinct(self, regions: Sequence[Region] | dict[Region, RackPlan], most: int) -> list[Region]:
        """One region with servers of each kind, those with the most spare cores first."""
        first: dict[object, Region] = {}
        for region in regions:
            if region.servers:
                first.setdefault(self.regions.key(region), region)
        return sorted(first.values(), key=lambda region: -self._spare(region))[:most]

    def _spare(self, region: Region) -> int:
        """Cores of a region beyond those that its chains need for their least rates."""
        spare = sum(self.rack.devices[device].cores for device in self.regions.devices(region.servers))
        for chain, one in zip(region.chains, self.plans[region].chains, strict=True):
            least = self.chains[chain].slo.t_min_mbps
            for group in one.layout.subgroups:
                rate = group.rate(1, one.layout.rack.devices[group.device], one.chain.packet_bits)
                spare -= max(ceil(least / rate), 1) if rate else 1
        return spare

    def _repair(self, homes: Sequence[Region], *, placed: bool) -> tuple[_Repair | None, int, float]:
        """The best repair with the fewest moves; the least number that is proven, and a bound for that number.

        `placed`: whether there is one home, with no NF that may go anywhere.
        """
        least = int(placed and self._relax(homes[0], 0).status is Status.INFEASIBLE)
        for moves in range(least, FEW_MOVES + 1):
            tries = self._try_out(homes, moves)
            repairs = [
                _Repair(attempt.region, attempt.replaced, Fewest(attempt.plan, moves, least), self._gain(attempt))
                for attempt in tries
                if attempt.plan.chains
            ]
            if repairs:
                limit = self._limit(homes[0], moves, tries) if placed and least == moves else 0.0
                return max(repairs, key=lambda repair: repair.gain), least, limit
            if placed and least == moves and self._impossible(homes[0], moves, tries):
                least += 1
        return self._repair_by_many(homes, least), least, 0.0

    def _try_out(self, homes: Sequence[Region], moves: int) -> list[_Try]:
        """Plans for homes, and for homes joined with another region where that may be better."""
        alone = self._best_first([(home, self._inside(home)) for home in homes], moves, float("-inf"))
        best = max((self._gain(attempt) for attempt in alone if attempt.plan.chains), default=float("-inf"))
        if best > float("-inf") and not moves:
            return alone
        return [*alone, *self._best_first(list(self._pairs(homes)), moves, best)]

    def _best_first(
        self, candidates: Sequence[tuple[Region, tuple[Region, ...]]], moves: int, best: float
    ) -> list[_Try]:
        """A plan for each region that may give more than the best, those first that promise most."""
        waiting = []
        for region, replaced in candidates:
            bound = self._relaxation(region, moves)
            waiting.append((bound - self._worth(replaced), bound, region, replaced))
        tries = []
        for limit, bound, region, replaced in sorted(waiting, key=lambda one: -one[0]):
            if limit == float("-inf"):
                plan = RackPlan(self.rack, Status.INFEASIBLE)
            elif limit <= best or time.monotonic() > self.until:
                plan = RackPlan(self.rack, Status.UNKNOWN, bound_mbps=bound)
            else:
                plan = self._instance(region).within(moves, until=self.until)
            tries.append(_Try(region, replaced, plan))
            best = max(best, self._gain(tries[-1])) if plan.chains else best
        return tries

    def _relaxation(self, region: Region, moves: int) -> float:
        """A quick bound of a region, which does not depend on what others have on the switch."""
        key = self.regions.key(region), moves
        if key not in self.limits:
            if time.monotonic() > self.until:
                return float("inf")
            self.limits[key] = self._instance(region).limit(moves)
        return self.limits[key]

    def _worth(self, regions: Sequence[Region]) -> float:
        return sum(self.plans[region].marginal_mbps for region in regions)

    def _gain(self, one: _Try) -> float:
        return one.plan.marginal_mbps - self._worth(one.replaced)

    def _all_tried(self, moves: int, tries: Sequence[_Try]) -> bool:
        """Whether one NF has nowhere else to go: with one move, only one other region changes."""
        return moves == 1 and self.alone and len(tries) <= OTHER_REGIONS and self.rack.switch.usable_stages is None

    def _impossible(self, home: Region, moves: int, tries: Sequence[_Try]) -> bool:
        """Whether so many moves are proven to be too few for a region."""
        if self._all_tried(moves, tries):
            return all(attempt.plan.status is Status.INFEASIBLE for attempt in tries)
        return self._relax(home, moves).status is Status.INFEASIBLE

    def _limit(self, home: Region, moves: int, tries: Sequence[_Try]) -> float:
        """By how much a region's repair can at most raise the marginal throughput, with so many moves."""
        if self._all_tried(moves, tries):
            possible = [attempt for attempt in tries if attempt.plan.bound_mbps is not None]
            return max((attempt.plan.bound_mbps or 0.0) - self._worth(attempt.replaced) for attempt in possible)
        return self._relax(home, moves).bound_mbps or 0.0

    def _repair_by_many(self, homes: Sequence[Region], least: int) -> _Repair | None:
        """The best repair with more moves, where each chain is on one server."""
        repairs = []
        alone = [(home, self._inside(home)) for home in homes]
        for region, replaced in [*alone, *self._pairs(homes), *self._larger(homes)]:
            if time.monotonic() > self.until:
                break
            found = self._instance(region, split=False).fewest(first=FEW_MOVES + 1, until=self.until)
            if found.plan.chains:
                gain = self._gain(_Try(region, replaced, found.plan))
                repairs.append(_Repair(region, replaced, replace(found, least=least), gain))
        return max(repairs, key=lambda repair: (-repair.found.moves, repair.gain), default=None)

    def _pairs(self, homes: Sequence[Region]) -> Iterator[tuple[Region, tuple[Region, ...]]]:
        """Each home joined with another region, and the regions that this replaces."""
        for home in homes[:OTHER_REGIONS]:
            outside = [region for region in self.plans if region not in self._inside(home)]
            for other in self._distinct(outside, OTHER_REGIONS):
                yield self._join(home, [other])

    def _larger(self, homes: Sequence[Region]) -> Iterator[tuple[Region, tuple[Region, ...]]]:
        """Homes joined with several regions, those with the most spare cores."""
        for home in homes[:OTHER_REGIONS]:
            outside = [region for region in self.plans if region.servers and region not in self._inside(home)]
            outside.sort(key=lambda region: -self._spare(region))
            yield from (self._join(home, outside[:number]) for number in range(2, min(len(outside), MOST_JOINED) + 1))

    def _inside(self, home: Region) -> tuple[Region, ...]:
        return tuple(region for region in self.plans if set(region.servers) & set(home.servers))

    def _join(self, home: Region, others: Sequence[Region]) -> tuple[Region, tuple[Region, ...]]:
        return self.regions.join([home, *others]), (*self._inside(home), *others)

    def _relax(self, region: Region, moves: int) -> RackPlan:
        """A region with empty servers, as many of each kind as there are moves, and with the switch to itself.

        No plan of the rack with so many moves is better for these chains.
        """
        return self.regions.instance(region, frozenset(), self.regions.empty(moves)).within(moves, until=self.until)
