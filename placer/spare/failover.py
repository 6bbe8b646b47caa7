"""The fewest empty NICs with which the tenants of all that fails have a place.

A plan is looked at just before instances leave, and at its end: what has a place among most tenants has one among
fewer. NICs of one kind whose tenants demand the same are alike, so one failure of each class is tried. A search of
places has a limit, so that in large plans one may be overlooked. Then a NIC is added that could be saved."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, count, groupby
from math import comb

from placer.evaluate.checks import peak_nics
from placer.evaluate.spare_checks import Failures, Spare, Takeover
from placer.model.fleet import Fleet
from placer.model.nic import Nic
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan, replay_plan
from placer.spare.takeover import NEW_NIC, Failure, Key, Moment, OccupiedNic, Room, SharingAnswers, SharingRule

MAX_FAILURES = 20_000  # failures of several NICs that are tried at one moment; of more, none counts as survived
MAX_ADDITIONS = 100  # sets of additional NICs that are tried in order of cost; then NICs are added one by one

Homes = dict[str, tuple[str, NicKind]]  # by tenant, the name and kind of a NIC
Added = tuple[int, ...]  # empty NICs beside those of the plan, per kind


@dataclass(frozen=True, eq=False)
class _Unit:
    """What fails as one, `count` times at most: a NIC of a class, an empty NIC of a kind, or a domain."""

    nics: Sequence[Nic]
    count: int
    empty: int | None = None
    domain: str = ""


@dataclass(frozen=True, eq=False)
class _Known:
    """Where tenants go with so many empty NICs, and what that adds to the sum of chances."""

    added: Added
    takeover: Takeover
    more: float
    in_use: frozenset[str]  # NICs of the plan on which they go


class FailoverSearch:
    """Finds the empty NICs that a plan needs beside its own."""

    def __init__(self, plan: Plan, kinds: Sequence[NicKind], rule: SharingRule, failures: Failures) -> None:
        self.kinds, self.failures = kinds, failures
        self.peak = [peak_nics(plan, kind) for kind in kinds]
        domains = any(kind.domain for kind in kinds)
        # without domains each NIC is one of its own
        self._parts = [(False, max(failures.nics, 0 if domains else failures.domains))]
        self._parts += [(True, failures.domains)] * domains
        self.answers = SharingAnswers(rule)
        self._known: dict[tuple[Moment, Failure], _Known] = {}
        self._stuck: list[tuple[Moment, Failure]] = []
        self._moments = list(self._look(plan))

    def find(self) -> tuple[Spare, list[Takeover]]:
        """The cheapest empty NICs, and where the tenants go in each failure that was tried with them."""
        queue, seen = [self._order((0,) * len(self.kinds))], set[Added]()
        stuck: tuple[Moment, Failure] | None = None
        for tried in count(1):
            if not queue:
                break
            added = heapq.heappop(queue)[-1]
            stuck = self._find_stuck(added)
            if stuck is None:
                return self._spare(added)
            if tried == MAX_ADDITIONS:
                return self._climb(added, stuck)
            if self._is_hopeless(*stuck):
                break
            for kind in self._helpful(*stuck, added):
                more = _with(added, kind, 1)
                if more not in seen:
                    seen.add(more)
                    heapq.heappush(queue, self._order(more))
        return Spare(self.failures, None, tuple(nic.id for nic in stuck[1].nics) if stuck else ()), []

    def _order(self, added: Added) -> tuple[float, int, int, Added, Added]:
        """Cheaper NICs come first, then those that are paid for, then fewer, then those of kinds listed first."""
        cost = sum(number * kind.cost for number, kind in zip(added, self.kinds, strict=True))
        needed = (peak + number for peak, number in zip(self.peak, added, strict=True))
        buys = sum(max(of - (kind.owned or 0), 0) for of, kind in zip(needed, self.kinds, strict=True))
        return cost, buys, sum(added), tuple(-number for number in added), added

    def _spare(self, added: Added) -> tuple[Spare, list[Takeover]]:
        kinds = [kind for number, kind in zip(added, self.kinds, strict=True) for _ in range(number)]
        takeovers = [known.takeover for known in self._known.values() if _is_within(known.added, added)]
        return Spare(self.failures, tuple(kinds)), takeovers

    def _climb(self, added: Added, stuck: tuple[Moment, Failure] | None) -> tuple[Spare, list[Takeover]]:
        """NICs are added one by one until no failure is stuck; then the dearest that are not needed are left out."""
        while stuck is not None:
            helpful = self._helpful(*stuck, added)
            if not helpful:
                return Spare(self.failures, None, tuple(nic.id for nic in stuck[1].nics)), []
            own = [kind for kind in helpful if kind in [nic.kind for nic in stuck[1].nics]]
            added = _with(added, (own or helpful)[0], 1)
            stuck = self._find_stuck(added)
        for kind in sorted(self.kinds, key=lambda kind: -kind.cost):
            while added[kind.index] and self._find_stuck(_with(added, kind, -1)) is None:
                added = _with(added, kind, -1)
        self._find_stuck(added)
        return self._spare(added)

    def _helpful(self, moment: Moment, failure: Failure, added: Added) -> list[NicKind]:
        """The kinds of which one more NIC may help, the cheapest first."""
        lost = [tenant for nic in failure.nics for tenant in moment.place_of[nic].tenants]
        own = {nic.kind for nic in failure.nics}
        if (
            not failure.nics
        ):  # too many to try each: with an empty NIC of the kind for each that fails, none needs to be
            own = {nic.kind for nic in moment.place_of}
            most = max(most for _, most in self._parts)
            own = {kind for kind in own if moment.empty[kind.index] + added[kind.index] < most}
        enough = len(lost) + max(most for _, most in self._parts)
        return [
            kind
            for kind in sorted(self.kinds, key=lambda kind: kind.cost)
            if kind.domain not in failure.domains
            and (kind.count is None or self.peak[kind.index] + added[kind.index] < kind.count)
            and added[kind.index] < enough
            and (kind in own or any(self.answers.take_alone(kind, tenant) for tenant in lost))
        ]

    def _is_hopeless(self, moment: Moment, failure: Failure) -> bool:
        """Whether a tenant has no place, however many NICs are added."""
        left = [
            kind
            for kind in self.kinds
            if kind.domain not in failure.domains
            and (kind.count is None or self.peak[kind.index] < kind.count or moment.empty[kind.index])
        ]
        with Room(self.kinds, self.answers, moment, failure, Counter()).opened() as room:
            for tenant in (tenant for place in room.lost if place.nic.kind not in left for tenant in place.tenants):
                if not any(self.answers.take_alone(kind, tenant) for kind in left) and not room.options(tenant):
                    return True
        return False

    # Moments and failures.

    def _look(self, plan: Plan) -> Iterator[Moment]:
        """The moments at which a failure may need more than an empty NIC of its kind, those with most NICs first."""
        fleet, found = Fleet(self.kinds), []
        arrivals = [placement.arrival for placement in plan.placements]
        leaving = {arrival.departure for arrival in arrivals}
        constrained = any(arrival.constraints.values for arrival in arrivals) or fleet.has_pools
        times = sorted({arrival.begins for arrival in arrivals} | {time for time in leaving if time is not None})
        for (time, _), following in zip(replay_plan(plan, fleet), [*times[1:], None], strict=True):
            if following is None or following in leaving:
                empty = {kind.index: self.peak[kind.index] - fleet.in_use(kind) for kind in self.kinds}
                kinds = {kind for kind in self.kinds if fleet.in_use(kind)}
                if kinds and any(not self._are_enough(part, kinds, empty) for part in self._parts):
                    found.append(self._moment(time, list(fleet.nics.values()), empty, constrained=constrained))
        yield from sorted(found, key=lambda moment: sum(moment.empty.values()))

    def _moment(self, time: float, nics: Sequence[Nic], empty: Mapping[int, int], *, constrained: bool) -> Moment:
        classes: defaultdict[tuple[int, Key], list[OccupiedNic]] = defaultdict(list)
        registry = Fleet(self.kinds) if constrained else None
        for nic in nics:
            tenants, kind = nic.tenants, nic.kind
            key = tuple(sorted(map(self.answers.class_of, tenants)))
            free = kind.cores - kind.cores_taken(tenant.workload for tenant in tenants)
            place = OccupiedNic(Nic(nic.id, kind, nic.number), tenants, key, free)
            classes[kind.index, key].append(place)
            if registry is not None:
                for tenant in tenants:
                    registry.groups.add(tenant.id, tenant.constraints, place.nic)
        # NICs that are fuller are harder to replace
        return Moment(time, dict(sorted(classes.items(), key=lambda item: item[1][0].free)), empty, registry)

    def _are_enough(self, part: tuple[bool, int], kinds: set[NicKind], empty: Mapping[int, int]) -> bool:
        """Whether there is an empty NIC of the same kind for all that fail, whatever fails."""
        by_domain, most = part
        return not most or (not by_domain and all(empty[kind.index] >= most for kind in kinds))

    def _find_stuck(self, added: Added) -> tuple[Moment, Failure] | None:
        """A failure without a place for all tenants; those that had none before are tried first."""
        for stuck in self._stuck:
            if stuck[1].nics and not self._survives(*stuck, added):
                self._stuck.remove(stuck)
                self._stuck.insert(0, stuck)
                return stuck
        for moment in self._moments:
            for failure in self._failures(moment, added):
                if not failure.nics or not self._survives(moment, failure, added):
                    self._stuck.insert(0, (moment, failure))
                    return moment, failure
        return None

    def _failures(self, moment: Moment, added: Added) -> Iterator[Failure]:
        """What may fail, one of each class, the fullest NICs first; one without NICs where there are too many."""
        empty = {kind.index: moment.empty[kind.index] + added[kind.index] for kind in self.kinds}
        kinds = {nic.kind for nic in moment.place_of}
        for by_domain, most in self._parts:
            if self._are_enough((by_domain, most), kinds, empty):
                continue
            units = list(self._units(moment, empty, by_domain))
            if sum(comb(len(units) + size - 1, size) for size in range(1, most + 1)) > max(MAX_FAILURES, len(units)):
                yield Failure(())
                continue
            for size in range(1, most + 1):
                for chosen in combinations_with_replacement(units, size):
                    times = [(unit, len(list(same))) for unit, same in groupby(chosen)]
                    if any(number > unit.count for unit, number in times):
                        continue
                    failure = Failure(
                        tuple(nic for unit, number in times for nic in unit.nics[: None if unit.domain else number]),
                        tuple((unit.empty, number) for unit, number in times if unit.empty is not None),
                        frozenset(unit.domain for unit, _ in times if unit.domain),
                    )
                    if failure.nics:
                        yield failure

    def _units(self, moment: Moment, empty: Mapping[int, int], by_domain: bool) -> Iterator[_Unit]:
        in_domains: defaultdict[str, list[Nic]] = defaultdict(list)
        for alike in moment.classes.values():
            nics = [place.nic for place in alike]
            if by_domain and nics[0].kind.domain:
                in_domains[nics[0].kind.domain] += nics
            else:
                yield _Unit(nics, len(nics))
        for domain, nics in in_domains.items():
            yield _Unit(nics, 1, domain=domain)
        for domain in {kind.domain: None for kind in self.kinds if by_domain and kind.domain not in in_domains}:
            if domain:
                yield _Unit((), 1, domain=domain)
        for kind in self.kinds:
            if empty[kind.index] and not (by_domain and kind.domain):
                yield _Unit((), empty[kind.index], kind.index)

    def _survives(self, moment: Moment, failure: Failure, added: Added) -> bool:
        """Whether all tenants have a place; where they go is kept."""
        known = self._known.get((moment, failure))
        if known is not None and _is_within(known.added, added):
            return True
        left = Counter({kind.index: moment.empty[kind.index] + added[kind.index] for kind in self.kinds})
        left.subtract(dict(failure.empty))
        if min(left.values()) < 0:
            return True  # there are not so many empty NICs that they could fail
        for kind in self.kinds:
            if kind.domain in failure.domains:
                left[kind.index] = 0
        found = self._combine(moment, failure, added, left) or self._search(moment, failure, left)
        if found is None:
            return False
        homes, more = found
        takeover = Takeover(
            moment.time, tuple(nic.id for nic in failure.nics), homes, dict(failure.empty), failure.domains
        )
        self._known[moment, failure] = _Known(
            added, takeover, more, frozenset(nic for nic, _ in homes.values() if not nic.startswith(NEW_NIC))
        )
        return True

    def _search(self, moment: Moment, failure: Failure, left: Counter[int]) -> tuple[Homes, float] | None:
        """Where the tenants go, and what it adds to the sum of chances; None where no place was found."""
        for together in (True, False):
            with Room(self.kinds, self.answers, moment, failure, left.copy()).opened() as room:
                alone = room.move_whole() if together else [tenant for place in room.lost for tenant in place.tenants]
                moved = len(room.homes)
                if room.place(alone):
                    return {identity: (nic.id, nic.kind) for identity, nic in room.homes.items()}, room.more
            if not moved:
                break
        return None

    def _combine(
        self, moment: Moment, failure: Failure, added: Added, left: Mapping[int, int]
    ) -> tuple[Homes, float] | None:
        """As `_search`, from where the tenants go when each NIC fails alone, if they do not meet then; else they move
        to an empty NIC together. None where that is not enough, or groups may meet."""
        if len(failure.nics) < 2 or moment.registry is not None or failure.domains:
            return None
        homes: Homes = {}
        empty, taken, more = Counter(left), {nic.id for nic in failure.nics}, 0.0
        for position, nic in enumerate(failure.nics):
            known = self._known.get((moment, Failure((nic,))))
            if known is not None and _is_within(known.added, added) and not taken.intersection(known.in_use):
                new = {home for home in known.takeover.nic_of.values() if home[0] not in known.in_use}
                empty.subtract(kind.index for _, kind in new)
                homes |= {
                    identity: (f"{home[0]}.{position}", home[1]) if home in new else home
                    for identity, home in known.takeover.nic_of.items()
                }
                taken |= known.in_use
                more += known.more
            else:
                empty[nic.kind.index] -= 1
                homes |= {tenant.id: (f"{NEW_NIC}.{position}", nic.kind) for tenant in moment.place_of[nic].tenants}
        return (homes, more) if min(empty.values()) >= 0 and more <= self.answers.slack else None


def _with(added: Added, kind: NicKind, more: int) -> Added:
    return tuple(number + more * (at == kind.index) for at, number in enumerate(added))


def _is_within(less: Added, more: Added) -> bool:
    return all(number <= of for number, of in zip(less, more, strict=True))
