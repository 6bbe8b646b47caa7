"""Plans for instances at offered rates: how many cores each gets, and which share a NIC.

Rates differ from instance to instance, so hardly two workloads are alike, and co-locations are too many to be listed. A
plan is searched with a fleet that begins at the bound of `rate_bound.py`: instances are dealt out so that no NIC has
much more of a resource than another, then they are moved, swapped or given more cores until the violations are few
enough, or the search gets no further and a larger fleet is taken. All NICs that change in a round are judged in one
batch."""

import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.model.arrival import Arrival, running_nics
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan
from placer.optimal.planned.chances import LIKELIEST_VIOLATION
from placer.optimal.planned.rate_bound import FewestNics, fewest_nics
from placer.optimal.planned.rate_deal import deal
from placer.optimal.planned.rate_nics import Choice, KnownKind, RateNic, RateNics, stays_of

MOST_ROUNDS = 400  # rounds of changes after which a fleet is given up, whatever they gained
FIRST_PATIENCE, PATIENCE = (8, 0.25), (25, 0.03)
"""Rounds without a better plan after which a fleet is given up, and the share of the violations beyond what is allowed
that a better plan has fewer: before a plan was found, and after."""
EMPTIED_AT_MOST = 12  # NICs that are tried to be emptied, one after the other, before a plan is left as it is
USUAL_EFFORT = 400
"""How often each instance is judged, in one co-location or another, before a search ends with what it has."""
LEAST_EFFORT = 20_000  # that many instances are judged, however few there are
PROPOSALS = 16  # moves that are tried at once for each NIC that is to get better
TRIMMED_CHANCE = 1e-3  # violations more that cores are taken back for
COSTLY_SHARE, COSTLY_NICS = 0.1, 4
"""Of the NICs with the most violations, the share that is looked at in a round, and how many at least."""

NicPlan = Sequence[tuple[NicKind, Sequence[Tenant]]]  # NICs, with their instances


@dataclass(eq=False)
class _Tried:
    """A plan on a fleet, and whether it keeps what is allowed."""

    nics: list[RateNic]
    kept: bool
    cores: list[tuple[Choice, list[int]]]

    def restore(self) -> None:
        """Give every instance the cores that it has in this plan."""
        for choice, at in self.cores:
            choice.at = list(at)


class RatePlanner:
    """Plans for these instances on NICs of these kinds.

    `allowed` is the share of the instances that may be expected to violate their SLA. `deadline`, of `time.monotonic`,
    only ends what takes far longer than usual: else a search ends after it has judged so many co-locations, so that a
    busy machine finds the same plan. `effort`: how often each instance may be judged.
    """

    def __init__(self, arrivals: Sequence[Arrival], known: Sequence[KnownKind], *, effort: int = USUAL_EFFORT) -> None:
        self.kinds, self.effort = [of.kind for of in known], effort
        stays = stays_of(arrivals)
        parts = max((len(arrival.day) for arrival in arrivals), default=0) or 1
        self.rates = RateNics(known, max((last for _, last in stays), default=1), parts)
        stay_of = {arrival.id: stay for arrival, stay in zip(arrivals, stays, strict=True)}
        self._running = [
            RateNic(at, [self.rates.running(tenant, at, stay_of[tenant.id]) for tenant in nic.tenants])
            for nic in running_nics(arrivals, self.kinds)
            for at in [nic.kind.index]
        ]
        self.rates.judge(self._running)
        # none joins where what already runs violates an SLA anyway
        self._closed = [nic for nic in self._running if max(nic.costs, default=0.0) > LIKELIEST_VIOLATION]
        new = [arrival for arrival in arrivals if arrival.nic is None]
        found = self.rates.choices_of(new, [stay_of[arrival.id] for arrival in new])
        self.choices = [choice for choice in found if choice]
        self._number = len(self.choices) + sum(len(nic.choices) for nic in self._running)
        self._draw = np.random.default_rng(0)
        self._most_judged = 0
        self.fewest = self._fewest(self.choices, 0.0)

    def _fewest(self, choices: Sequence[Choice], slack: float) -> FewestNics:
        fixed = [choice for nic in self._running for choice in nic.choices]
        counts = Counter(nic.kind for nic in self._running)
        running = [counts[number] for number in range(len(self.kinds))]
        return fewest_nics([choice.need for choice in [*choices, *fixed]], self.kinds, running, slack)

    def bound_of(self, plan: Plan) -> FewestNics:
        """What bounds all plans that place the same instances."""
        placed = {placement.arrival.id for placement in plan.placed}
        if len(placed) == self._number:
            return self.fewest
        return self._fewest([choice for choice in self.choices if choice.id in placed], 0.0)

    def _fleet(self, step: int) -> FewestNics:
        """The fleet of the bound with so many steps of room, each of about a NIC."""
        nics = max(sum(self.fewest.counts), 1)
        return self._fewest(self.choices, step / (nics + step)) if step else self.fewest

    def plan(self, allowed: float, deadline: float) -> NicPlan:
        """The cheapest plan that is found.

        Fleets are tried upwards in steps that double, then between the last two. At last, the one below the smallest is
        tried again where it was given up soon.
        """
        allowed *= self._number
        self._spend(self.effort)
        too_few, enough, step = -1, -1, 0
        found, before = None, None
        hasty: set[int] = set()
        while True:
            fleet = self._fleet(step)
            last = step >= len(self.choices) or (fleet.counts == before and step > sum(fleet.counts))
            before = fleet.counts
            tried = self._try(fleet, allowed, deadline, FIRST_PATIENCE if enough < 0 else PATIENCE)
            if tried.kept:
                found, enough = tried, step
            else:
                too_few = max(too_few, step)
                hasty = hasty - {step} if enough >= 0 else hasty | {step}
                found = found or (tried if last or self._late(deadline) else None)
            again = 0 <= too_few == enough - 1 and too_few in hasty
            if self._late(deadline) or (0 <= enough <= too_few + 1 and not again) or (enough < 0 and last):
                break
            too_few -= again
            step = (too_few + enough) // 2 if enough >= 0 else 2 * step + 1
        assert found is not None
        found.restore()
        nics = self._empty_nics(found.nics, allowed, deadline) if found.kept else found.nics
        return self._finish(nics, allowed)

    def shrink(self, begin: NicPlan, allowed: float, deadline: float) -> NicPlan:
        """A plan that is found from another one: it is mended first, then one NIC after the other is emptied."""
        allowed *= self._number
        self._spend(self.effort)
        nics = self._begin(begin)
        while not self._improve(nics, allowed, deadline, PATIENCE) and not self._late(deadline):
            shared = [nic for nic in nics if len(nic.choices) > 1 and nic.movable]
            worst = max(shared, key=lambda nic: nic.cost, default=None)
            opened = self._opened(nics, worst.worst) if worst else None
            if worst is None or opened is None:
                break
            worst.choices.remove(worst.worst)
            nics.append(opened)
        self.rates.judge(nics)
        if sum(nic.cost for nic in nics) <= allowed + 1e-9:
            nics = self._empty_nics(nics, allowed, deadline)
        return self._finish(nics, allowed)

    def _spend(self, effort: int) -> None:
        self._most_judged = self.rates.judged + max(effort * self._number, LEAST_EFFORT)

    def _late(self, deadline: float) -> bool:
        return self.rates.judged >= self._most_judged or time.monotonic() >= deadline

    def _finish(self, nics: list[RateNic], allowed: float) -> NicPlan:
        """The plan of these NICs, mended, with what else they take, and without cores that no SLA needs."""
        self._mend(nics, allowed)
        placed = {choice for nic in nics for choice in nic.choices}
        self._fill(nics, [choice for choice in self.choices if choice not in placed], allowed)
        self._trim(nics, allowed)
        return [
            (self.kinds[nic.kind], [choice.on(nic.kind) for choice in nic.choices])
            for nic in [*self._closed, *nics]
            if nic.choices
        ]

    def _open_running(self) -> list[RateNic]:
        return [
            replace(nic, choices=list(nic.choices), costs=list(nic.costs))
            for nic in self._running
            if nic not in self._closed
        ]

    def _opened(self, nics: Sequence[RateNic], choice: Choice) -> RateNic | None:
        """One more NIC for an instance, of the cheapest kind that has one left; None where there is none."""
        used = Counter(nic.kind for nic in [*self._closed, *nics])
        for kind in sorted(self.kinds, key=lambda kind: (kind.cost, kind.index)):
            if choice.tenants[kind.index] and (kind.count is None or used[kind.index] < kind.count):
                return RateNic(kind.index, [choice])
        return None

    def _fill(self, nics: list[RateNic], left: Sequence[Choice], allowed: float) -> None:
        """Put instances that are left, the smallest first, where the fewest violations are added."""
        for choice in sorted(left, key=lambda choice: min(filter(None, choice.need.cores))):
            choice.at = [0] * len(self.kinds)
            able = [nic for nic in nics if self.rates.fits(nic.kind, [*nic.choices, choice])]
            asked = [(nic.kind, [*nic.choices, choice], None) for nic in able]
            costs = self.rates.costs(asked)
            added = [(sum(found) - nic.cost, at) for at, (nic, found) in enumerate(zip(able, costs, strict=True))]
            more, at = min(added, default=(math.inf, 0))
            if sum(nic.cost for nic in nics) + more <= allowed + 1e-9:
                able[at].choices, able[at].costs = [*able[at].choices, choice], costs[at]

    def _empty_nics(self, nics: list[RateNic], allowed: float, deadline: float) -> list[RateNic]:
        """The plan with as many NICs emptied, one after the other, as the search finds."""
        failed = 0
        self._spend(self.effort // 4)
        self._trim(nics, allowed)
        while failed < EMPTIED_AT_MOST and len(nics) > self.fewest.nics and not self._late(deadline):
            before = [replace(nic, choices=list(nic.choices), costs=list(nic.costs)) for nic in nics]
            cores = [(choice, list(choice.at)) for choice in self.choices]
            if self._empty_one(nics, failed) and self._improve(nics, allowed, deadline, PATIENCE):
                failed = 0
                continue
            failed += 1
            for choice, at in cores:
                choice.at = at
            nics = before
        return nics

    def _begin(self, begin: NicPlan) -> list[RateNic]:
        """The NICs of a plan, with as many cores for each instance as there, or the next more on which it can run."""
        known, nics = {choice.id: choice for choice in self.choices}, self._open_running()
        home = {choice.id: nic for nic in nics for choice in nic.choices}
        for kind, tenants in begin:
            number = kind.index
            nic = next((home[tenant.id] for tenant in tenants if tenant.id in home), None)
            used = Counter(nic.kind for nic in [*self._closed, *nics])
            if nic is None and (kind.count is None or used[number] < kind.count):
                nic = RateNic(number)
                nics.append(nic)
            for tenant in tenants:
                choice = known.get(tenant.id)
                if choice is None or not choice.cores[number]:
                    continue
                counts = choice.cores[number]
                choice.at[number] = min(bisect_left(counts, tenant.workload.cores), len(counts) - 1)
                if nic is not None and self.rates.fits(number, [*nic.choices, choice]):
                    nic.choices.append(choice)
                    continue
                opened = self._opened(nics, choice)
                if opened is not None:
                    nics.append(opened)
        return [nic for nic in nics if nic.choices]

    def _empty_one(self, nics: list[RateNic], which: int) -> bool:
        """Deal the instances of one of the least filled NICs out to the others; false where they do not fit there."""
        new = [nic for nic in nics if not nic.running and self.kinds[nic.kind].cost > 0]
        if which >= len(new):
            return False
        least = sorted(new, key=lambda nic: nic.filled / self.kinds[nic.kind].cost)[which]
        nics.remove(least)
        for choice in sorted(least.choices, key=lambda choice: -choice.taken(least.kind)):
            roomy = sorted(nics, key=lambda nic: (nic.filled, nic.cost))
            where = next((nic for nic in roomy if self.rates.fits(nic.kind, [*nic.choices, choice])), None)
            while where is None and any(choice.at):
                choice.at = [max(at - 1, 0) for at in choice.at]
                where = next((nic for nic in roomy if self.rates.fits(nic.kind, [*nic.choices, choice])), None)
            if where is None:
                return False
            where.choices.append(choice)
        return True

    def _trim(self, nics: Sequence[RateNic], allowed: float) -> None:
        """Take cores back that lower hardly any violations while these stay allowed: others may need them later."""
        spare = allowed - sum(nic.cost for nic in nics)
        open_ = {at: sorted(nic.movable, key=lambda choice: choice.taken(nic.kind)) for at, nic in enumerate(nics)}
        while True:
            tried = [(nics[at], at, choices.pop()) for at, choices in open_.items() if choices]
            tried = [(nic, at, choice) for nic, at, choice in tried if choice.at[nic.kind] > 0]
            if not tried and not any(open_.values()):
                return
            for nic, _, choice in tried:
                choice.at[nic.kind] -= 1
            costs = self.rates.costs([(nic.kind, nic.choices, None) for nic, _, _ in tried])
            for (nic, at, choice), found in zip(tried, costs, strict=True):
                more = sum(found) - nic.cost
                if more <= max(min(TRIMMED_CHANCE, spare), 1e-12):
                    nic.costs, spare = found, spare - more
                    open_[at].append(choice)
                else:
                    choice.at[nic.kind] += 1

    def _try(self, fleet: FewestNics, allowed: float, deadline: float, patience: tuple[int, float]) -> _Tried:
        """A plan on a fleet, and whether it keeps what is allowed."""
        nics = self._open_running()
        here, closed = (Counter(nic.kind for nic in of) for of in (nics, self._closed))
        for kind, count in zip(self.kinds, fleet.counts, strict=True):
            count = count if kind.count is None else min(count, kind.count - closed[kind.index])
            nics += [RateNic(kind.index) for _ in range(count - here[kind.index])]
        most = len(nics)
        for choice in deal(self.choices, nics, fleet, self.rates):
            # what no NIC has room for in one piece
            further = (nic for nic in nics[most:] if self.rates.fits(nic.kind, [*nic.choices, choice]))
            if nic := next(further, None):
                nic.choices.append(choice)
            elif opened := self._opened(nics, choice):
                nics.append(opened)
        kept = self._improve(nics, allowed, deadline, patience)
        placed = sum(len(nic.movable) for nic in nics)
        kept = kept and len(nics) <= most and (placed == len(self.choices) or not fleet.enough)
        return _Tried(nics, kept, [(choice, list(choice.at)) for choice in self.choices])

    def _improve(self, nics: list[RateNic], allowed: float, deadline: float, patience: tuple[int, float]) -> bool:
        """Change NICs until at most so many violations are to be expected; whether that is so."""
        self.rates.judge(nics)
        best, waited, (rounds, gain) = sum(nic.cost for nic in nics), 0, patience
        for _ in range(MOST_ROUNDS):
            total = sum(nic.cost for nic in nics)
            if total <= allowed + 1e-9:
                return True
            waited += 1
            if total < best - max(gain * (best - allowed), 1e-3):
                best, waited = total, 0
            if waited > rounds or self._late(deadline):
                return False
            self._change(nics)
        return sum(nic.cost for nic in nics) <= allowed + 1e-9

    def _change(self, nics: list[RateNic]) -> None:
        """One round: several changes of each costly NIC are judged together, and the best of each are made."""
        costly = sorted((at for at, nic in enumerate(nics) if nic.cost > 0), key=lambda at: -nics[at].cost)
        costly = costly[: max(COSTLY_NICS, math.ceil(COSTLY_SHARE * len(nics)))]
        drawn = [(at, self._propose(nics, at)) for at in costly for _ in range(PROPOSALS)]
        proposals = [(at, *proposal) for at, proposal in drawn if proposal is not None]
        asked: list[tuple[int, Sequence[Choice], Choice | None]] = []
        for at, other, here, there, larger in proposals:
            asked += [(nics[at].kind, here, larger), (nics[other].kind, there, larger)]
        costs = self.rates.costs(asked)
        gains = []
        for number, (at, other, *_) in enumerate(proposals):
            before = nics[at].cost + (nics[other].cost if other != at else 0.0)
            gains.append((sum(costs[2 * number]) + sum(costs[2 * number + 1]) - before, number))
        touched: set[int] = set()
        for gain, number in sorted(gains):
            at, other, here, there, larger = proposals[number]
            if gain >= -1e-9 or at in touched or other in touched:
                continue
            touched |= {at, other}
            if larger is not None:
                larger.at[nics[at].kind] += 1
            nics[at].choices, nics[at].costs = here, costs[2 * number]
            if other != at:
                nics[other].choices, nics[other].costs = there, costs[2 * number + 1]

    def _propose(
        self, nics: Sequence[RateNic], at: int
    ) -> tuple[int, list[Choice], list[Choice], Choice | None] | None:
        """Another NIC, what both carry then, and an instance that gets more cores; None where a draw is no change."""
        nic = nics[at]
        short, movable = nic.choices[int(np.argmax(nic.costs))], nic.movable
        drawn = self._draw.random()
        if not movable:
            return None
        grows = drawn < 0.25 and short.at[nic.kind] + 1 < len(short.tenants[nic.kind])
        if grows and self.rates.fits(nic.kind, nic.choices, short):
            return at, nic.choices, [], short
        # mostly the one that is short leaves, else one that may disturb it
        leaves = drawn < 0.6 and not short.stays
        mover = short if leaves else movable[int(self._draw.integers(len(movable)))]
        other = int(self._draw.integers(len(nics)))
        if other == at or not mover.cores[nics[other].kind]:
            return None
        goal = nics[other]
        stay = [choice for choice in nic.choices if choice is not mover]
        if self.rates.fits(goal.kind, [*goal.choices, mover]):
            return other, stay, [*goal.choices, mover], None
        large = mover.taken(goal.kind)
        back = [choice for choice in goal.movable if choice.taken(goal.kind) >= large or len(goal.choices) < 3]
        back = back or goal.movable
        swapped = back[int(self._draw.integers(len(back)))] if back else None
        if swapped is None:
            return None
        there = [*(choice for choice in goal.choices if choice is not swapped), mover]
        here = [*stay, swapped]
        fit = self.rates.fits(nic.kind, here) and self.rates.fits(goal.kind, there)
        return (other, here, there, None) if fit else None

    def _mend(self, nics: list[RateNic], allowed: float) -> None:
        """Give the most doubtful instances NICs of their own while too many violations are to be expected.

        Where there is no further NIC, or an instance is doubtful alone, it is left out.
        """
        while sum(nic.cost for nic in nics) > allowed + 1e-9:
            nic = max((nic for nic in nics if nic.movable), key=lambda nic: nic.cost, default=None)
            if nic is None or nic.cost <= 0:
                return
            leaving, alone = nic.worst, len(nic.choices) < 2
            nic.choices = [choice for choice in nic.choices if choice is not leaving]
            if alone:
                nics.remove(nic)
                continue
            opened = self._opened(nics, leaving)
            changed = [nic, *([opened] if opened else [])]
            self.rates.judge(changed)
            nics += changed[1:]
