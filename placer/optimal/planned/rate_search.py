"""Plans for instances at offered rates: how many cores each gets, and which share a NIC.

Rates differ from instance to instance, so hardly two workloads are alike, and co-locations are too many to be listed. A
plan is searched with a number of NICs that begins at the bound of cores: instances are dealt out so that no NIC has
much more of a resource than another, then single ones are moved, swapped or given more cores until the violations are
few enough, or the search gets no further and one NIC more is taken. All NICs that change in a round are judged in one
batch.

The bound: each instance takes at least the fewest cores on which it keeps its SLA alone, and neighbours never make that
fewer. NICs with C cores that are filled with pieces of these sizes are a bin packing with few sizes; the sum of the
cores bounds it from below, and so do the pieces that are larger than half a NIC.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.day import gbps_over_day, has_days
from placer.model.fleet import NicKind, Tenant
from placer.optimal.planned.chances import LIKELIEST_VIOLATION
from placer.optimal.planned.judges import DayJudge, Judge
from profiles import COUNTERS, Workload

Alone = Callable[[Sequence[Workload]], Sequence[float]]
"""What workloads could carry alone, kpps."""
Shares = Callable[[Workload], dict[str, float]]
"""The share of each of a NIC's resources that a workload takes alone."""

MOST_ROUNDS = 400
"""Rounds of changes after which a number of NICs is given up, whatever they gained."""
FIRST_PATIENCE, PATIENCE = 8, 25
"""Rounds without a better plan after which a number of NICs is given up: before a plan was found, and after."""
EMPTIED_AT_MOST = 3
"""NICs that are tried to be emptied, one after the other, before a plan is left as it is."""
LEAST_GAIN = 0.03
"""The share of the violations beyond what is allowed that a better plan has fewer."""
DEALT_CORES = 0.97
"""The share of all cores that instances have before the search; the rest lets it move them."""
PROPOSALS = 16
"""Moves that are tried at once for each NIC that is to get better."""
TRIMMED_CHANCE = 1e-3
"""Violations more that cores are taken back for."""
COSTLY_SHARE = 0.1
"""Of the NICs with the most violations, the share that is looked at in a round, at least one."""


@dataclass(frozen=True)
class LoadPlan:
    """NICs with their tenants, each with the number of cores that it gets, and who is left out."""

    nics: list[list[Tenant]]
    left_out: list[Tenant]
    bound: int
    """No plan that places as many uses fewer NICs."""


@dataclass(eq=False)
class _Choice:
    """An instance with each number of cores on which it keeps its SLA alone, the fewest first."""

    tenants: list[Tenant]
    cores: list[int]
    room: list[float]
    """What it could carry alone on each, relative to what its SLA requires."""
    at: int = 0
    """Which of them it has now."""

    @property
    def tenant(self) -> Tenant:
        return self.tenants[self.at]

    @property
    def taken(self) -> int:
        return self.cores[self.at]


@dataclass(eq=False)
class _Tried:
    """A plan on a number of NICs, and whether it keeps what is allowed."""

    nics: list[_Nic]
    kept: bool
    cores: list[tuple[_Choice, int]]

    def restore(self) -> None:
        """Give every instance the cores that it has in this plan."""
        for choice, at in self.cores:
            choice.at = at


@dataclass(eq=False)
class _Nic:
    choices: list[_Choice] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    @property
    def cost(self) -> float:
        return sum(self.costs)


class LoadPlanner:
    """Plans for these instances on NICs of one kind.

    `allowed` is the share of the instances that may be expected to violate their SLA.
    """

    def __init__(
        self, tenants: Sequence[Tenant], kind: NicKind, judge: Judge, shares: Shares, alone: Alone, seed: int = 0
    ) -> None:
        self.kind, self.judge, self.shares, self.alone = kind, judge, shares, alone
        self.left_out: list[Tenant] = []
        self.parts = max([1, *(len(tenant.day) for tenant in tenants)])
        self.choices = self._choices(tenants)
        self.bound = self._cores_bound()
        self._draw = np.random.default_rng(seed)
        self._demand: dict[tuple[Workload, tuple[float, ...]], dict[str, float]] = {}

    def _choices(self, tenants: Sequence[Tenant]) -> list[_Choice]:
        asked = [
            replace(tenant, workload=workload)
            for tenant in tenants
            for workload in (self.kind.choices(tenant.workload) if self.kind.hosts(tenant.workload) else ())
        ]
        costs = self.judge.costs([[tenant] for tenant in asked])
        able: dict[str, list[Tenant]] = {tenant.id: [] for tenant in tenants}
        for tenant, (cost,) in zip(asked, costs, strict=True):
            if cost <= LIKELIEST_VIOLATION:
                able[tenant.id].append(tenant)
        self.left_out = [tenant for tenant in tenants if not able[tenant.id]]
        return [
            _Choice(found, [self.kind.cores_for(tenant.workload) for tenant in found], self._room(found))
            for found in able.values()
            if found
        ]

    def _room(self, tenants: Sequence[Tenant]) -> list[float]:
        alone = self.alone([tenant.workload for tenant in tenants])
        return [kpps / tenant.required_kpps(kpps) for tenant, kpps in zip(tenants, alone, strict=True)]

    def _cores_bound(self) -> int:
        """The fewest NICs by the fewest cores of each instance."""
        fewest = [choice.cores[0] for choice in self.choices]
        large = sum(2 * cores > self.kind.cores for cores in fewest)
        port = max(self._gbps_of(self.choices)) / self.kind.line_rate_gbps
        return max(math.ceil(sum(fewest) / self.kind.cores), large, math.ceil(port - 1e-9))

    def _gbps_of(self, choices: Iterable[_Choice]) -> list[float]:
        """What these take of a port in each part of the day, Gb/s."""
        of_each = [gbps_over_day(self.kind, choice.tenants[0], self.parts) for choice in choices]
        return [sum(of_part) for of_part in zip(*of_each, strict=True)] or [0.0] * self.parts

    def plan(self, allowed: float, deadline: float) -> LoadPlan:
        """The plan of fewest NICs that is found; `deadline` as of `time.monotonic`.

        Numbers of NICs are tried upwards in steps that double, then between the last two.
        """
        most = len(self.choices) if self.kind.count is None else min(self.kind.count, len(self.choices))
        too_few, enough, step = self.bound - 1, 0, 1
        number, found = min(self.bound, most), None
        while True:
            tried = self._try(number, allowed, deadline, PATIENCE if enough else FIRST_PATIENCE)
            if tried.kept:
                found, enough = tried, number
            elif number >= most or time.monotonic() >= deadline:
                found = found or tried
            else:
                too_few = number
            if (enough and enough <= too_few + 1) or (number >= most and not enough) or time.monotonic() >= deadline:
                break
            number = (too_few + enough) // 2 if enough else min(number + step, most)
            step *= 2
        assert found is not None
        found.restore()
        if found.kept:
            found.nics = self._empty_nics(found.nics, allowed * len(self.choices), deadline)
        return self._finish(found.nics, allowed * len(self.choices), most)

    def shrink(self, begin: Sequence[Sequence[Tenant]], allowed: float, deadline: float) -> LoadPlan:
        """A plan that is found from another one: it is mended first, then one NIC after the other is emptied."""
        most = len(self.choices) if self.kind.count is None else min(self.kind.count, len(self.choices))
        nics = self._begin(begin)
        allowed *= len(self.choices)
        while not self._improve(nics, allowed, deadline, PATIENCE) and len(nics) < most:
            worst = max(nics, key=lambda nic: nic.cost if len(nic.choices) > 1 else 0.0)
            if len(worst.choices) < 2:
                break
            leaving = worst.choices.pop(int(np.argmax(worst.costs)))
            nics.append(_Nic([leaving]))
            if time.monotonic() >= deadline:
                break
        self._judge([nic for nic in nics if nic.choices])
        if sum(nic.cost for nic in nics) <= allowed + 1e-9:
            nics = self._empty_nics(nics, allowed, deadline)
        return self._finish(nics, allowed, most)

    def _finish(self, nics: list[_Nic], allowed: float, most: int) -> LoadPlan:
        """The plan of these NICs, mended, with what else they take, and without cores that no SLA needs."""
        self._mend(nics, allowed, most)
        placed = {id(choice) for nic in nics for choice in nic.choices}
        self._fill(nics, [choice for choice in self.choices if id(choice) not in placed], allowed)
        self._trim(nics)
        placed = {id(choice) for nic in nics for choice in nic.choices}
        left = [choice.tenants[0] for choice in self.choices if id(choice) not in placed]
        carried = [[choice.tenant for choice in nic.choices] for nic in nics if nic.choices]
        return LoadPlan(carried, [*self.left_out, *left], self.bound)

    def _fill(self, nics: Sequence[_Nic], left: Sequence[_Choice], allowed: float) -> None:
        """Put instances that are left, the smallest first, where the fewest violations are added."""
        for choice in sorted(left, key=lambda choice: choice.cores[0]):
            choice.at = 0
            able = [nic for nic in nics if self._fits([*nic.choices, choice])]
            if not able:
                continue
            costs = self.judge.costs([[*(other.tenant for other in nic.choices), choice.tenant] for nic in able])
            added, at = min(
                (sum(found) - nic.cost, at) for at, (nic, found) in enumerate(zip(able, costs, strict=True))
            )
            if sum(nic.cost for nic in nics) + added <= allowed + 1e-9:
                able[at].choices, able[at].costs = [*able[at].choices, choice], costs[at]

    def _empty_nics(self, nics: list[_Nic], allowed: float, deadline: float) -> list[_Nic]:
        """The plan with as many NICs emptied, one after the other, as the search finds."""
        failed = 0
        while len(nics) > self.bound and failed < min(EMPTIED_AT_MOST, len(nics)) and time.monotonic() < deadline:
            before = [(list(nic.choices), list(nic.costs)) for nic in nics]
            cores = [(choice, choice.at) for choice in self.choices]
            if self._empty_one(nics, failed) and self._improve(nics, allowed, deadline, PATIENCE):
                failed = 0
                continue
            failed += 1
            for choice, at in cores:
                choice.at = at
            nics = [_Nic(choices, costs) for choices, costs in before]
        return nics

    def _begin(self, begin: Sequence[Sequence[Tenant]]) -> list[_Nic]:
        """The NICs of a plan, with as many cores for each instance as there, or the next more on which it can run."""
        known = {choice.tenants[0].id: choice for choice in self.choices}
        nics = []
        for tenants in begin:
            nic, found = _Nic(), [tenant for tenant in tenants if tenant.id in known]
            for tenant in found:
                choice, cores = known[tenant.id], tenant.workload.cores
                enough = [at for at, count in enumerate(choice.cores) if count >= cores]
                choice.at = enough[0] if enough else len(choice.cores) - 1
                if not self._fits([*nic.choices, choice]):
                    nics.append(nic)
                    nic = _Nic()
                nic.choices.append(choice)
            nics.append(nic)
        return [nic for nic in nics if nic.choices]

    def _empty_one(self, nics: list[_Nic], which: int) -> bool:
        """Deal the instances of one of the least filled NICs out to the others; false where they do not fit there."""
        least = sorted(nics, key=lambda nic: sum(choice.taken for choice in nic.choices))[which]
        nics.remove(least)
        for choice in sorted(least.choices, key=lambda choice: -choice.taken):
            roomy = sorted(nics, key=lambda nic: (sum(other.taken for other in nic.choices), nic.cost))
            where = next((nic for nic in roomy if self._fits([*nic.choices, choice])), None)
            while where is None and choice.at > 0:
                choice.at -= 1
                where = next((nic for nic in roomy if self._fits([*nic.choices, choice])), None)
            if where is None:
                return False
            where.choices.append(choice)
        return True

    def _trim(self, nics: Sequence[_Nic]) -> None:
        """Take cores back that lower no violations: they are left for what comes later."""
        open_ = {at: sorted(nic.choices, key=lambda choice: choice.taken) for at, nic in enumerate(nics)}
        while True:
            tried = [(at, choices.pop()) for at, choices in open_.items() if choices]
            tried = [(at, choice) for at, choice in tried if choice.at > 0]
            if not tried and not any(open_.values()):
                return
            for _, choice in tried:
                choice.at -= 1
            costs = self.judge.costs([[choice.tenant for choice in nics[at].choices] for at, _ in tried])
            for (at, choice), found in zip(tried, costs, strict=True):
                if sum(found) <= nics[at].cost + TRIMMED_CHANCE:
                    nics[at].costs = found
                    open_[at].append(choice)
                else:
                    choice.at += 1

    def _try(self, number: int, allowed: float, deadline: float, patience: int) -> _Tried:
        """A plan on so many NICs, and whether it keeps what is allowed."""
        for choice in self.choices:
            choice.at = 0
        self._spend_cores(number)
        nics = self._deal(number)
        kept = self._improve(nics, allowed * len(self.choices), deadline, patience)
        return _Tried(nics, kept and len(nics) <= number, [(choice, choice.at) for choice in self.choices])

    def _spend_cores(self, number: int) -> None:
        """Give cores that no instance needs alone to those that have least to spare."""
        spare = int(DEALT_CORES * number * self.kind.cores) - sum(choice.taken for choice in self.choices)
        tight = [(choice.room[choice.at], at) for at, choice in enumerate(self.choices) if len(choice.tenants) > 1]
        heapq.heapify(tight)
        while tight:
            _, at = heapq.heappop(tight)
            choice = self.choices[at]
            more = choice.cores[choice.at + 1] - choice.taken
            if more > spare:
                continue
            spare -= more
            choice.at += 1
            if choice.at + 1 < len(choice.tenants):
                heapq.heappush(tight, (choice.room[choice.at], at))

    def _deal(self, number: int) -> list[_Nic]:
        """Instances on so many NICs, the largest first, each where the resources are used most evenly then."""
        nics = [_Nic() for _ in range(number)]
        names = sorted({name for choice in self.choices for name in self._shares(choice)})
        at = {name: place for place, name in enumerate(names)}
        used, free = np.zeros((number, len(names))), np.full(number, self.kind.cores)
        port = np.full((number, self.parts), self.kind.line_rate_gbps)
        left = []
        # where there are too few NICs, the small ones come first, of which more fit
        sign = -1.0 if number >= self.bound else 1.0
        ordered = sorted(
            self.choices,
            key=lambda choice: (sign * choice.taken, sign * max(self._shares(choice).values(), default=0.0)),
        )
        for choice in ordered:
            demand, gbps = np.zeros(len(names)), np.array(self._gbps_of([choice]))
            for name, share in self._shares(choice).items():
                demand[at[name]] = share
            able = (free >= choice.taken) & (port >= gbps).all(axis=1)
            if not able.any():
                left.append(choice)
                continue
            uneven = ((used + demand) ** 2 - used**2).sum(axis=1)
            where = int(np.argmin(np.where(able, uneven, np.inf)))
            nics[where].choices.append(choice)
            used[where] += demand
            free[where] -= choice.taken
            port[where] -= gbps
        while left and (self.kind.count is None or len(nics) < self.kind.count):
            # what no NIC has room for in one piece
            nic = _Nic()
            for choice in list(left):
                if self._fits([*nic.choices, choice]):
                    nic.choices.append(choice)
                    left.remove(choice)
            nics.append(nic)
        return nics

    def _shares(self, choice: _Choice) -> dict[str, float]:
        """The shares of each resource; with a load over the day, of each but the cores in each part."""
        workload, day = choice.tenant.workload, choice.tenant.day
        if (workload, day) not in self._demand:
            shares = self.shares(workload)
            if self.parts > 1:
                day = day or (1.0,) * self.parts
                cores = {name: share for name, share in shares.items() if name == CORES}
                shares = cores | {
                    f"{name} {part}": share * of_rate
                    for name, share in shares.items()
                    if name != CORES
                    for part, of_rate in enumerate(day)
                }
            self._demand[workload, choice.tenant.day] = shares
        return self._demand[workload, choice.tenant.day]

    def _fits(self, choices: Sequence[_Choice]) -> bool:
        return sum(choice.taken for choice in choices) <= self.kind.cores and (
            self.kind.line_rate_gbps == math.inf or max(self._gbps_of(choices)) <= self.kind.line_rate_gbps
        )

    def _judge(self, nics: Sequence[_Nic]) -> None:
        costs = self.judge.costs([[choice.tenant for choice in nic.choices] for nic in nics])
        for nic, found in zip(nics, costs, strict=True):
            nic.costs = found

    def _improve(self, nics: list[_Nic], allowed: float, deadline: float, patience: int) -> bool:
        """Change NICs until at most so many violations are to be expected; whether that is so."""
        self._judge([nic for nic in nics if nic.choices])
        best, waited = sum(nic.cost for nic in nics), 0
        for _ in range(MOST_ROUNDS):
            total = sum(nic.cost for nic in nics)
            if total <= allowed + 1e-9:
                return True
            waited += 1
            if total < best - max(LEAST_GAIN * (best - allowed), 1e-3):
                best, waited = total, 0
            if waited > patience or time.monotonic() >= deadline:
                return False
            self._change(nics)
        return sum(nic.cost for nic in nics) <= allowed + 1e-9

    def _change(self, nics: list[_Nic]) -> None:
        """One round: several changes of each costly NIC are judged together, and the best of each are made."""
        costly = sorted((at for at, nic in enumerate(nics) if nic.cost > 0), key=lambda at: -nics[at].cost)
        costly = costly[: max(1, math.ceil(COSTLY_SHARE * len(nics)))]
        proposals: list[tuple[int, int, list[_Choice], list[_Choice], _Choice | None]] = []
        for at in costly:
            for _ in range(PROPOSALS):
                proposal = self._propose(nics, at)
                if proposal is not None:
                    proposals.append((at, *proposal))
        asked: list[list[Tenant]] = []
        for _, _, here, there, larger in proposals:
            asked.append([self._tenant(choice, larger) for choice in here])
            asked.append([self._tenant(choice, larger) for choice in there])
        answers = iter(self.judge.costs([tenants for tenants in asked if tenants]))
        costs = [next(answers) if tenants else [] for tenants in asked]
        gains = []
        for number, (at, other, *_) in enumerate(proposals):
            before = nics[at].cost + (nics[other].cost if other != at else 0.0)
            after = sum(costs[2 * number]) + (sum(costs[2 * number + 1]) if other != at else 0.0)
            gains.append((after - before, number))
        touched: set[int] = set()
        for gain, number in sorted(gains):
            at, other, here, there, larger = proposals[number]
            if gain >= -1e-9 or at in touched or other in touched:
                continue
            touched |= {at, other}
            if larger is not None:
                larger.at += 1
            nics[at].choices, nics[at].costs = here, costs[2 * number]
            if other != at:
                nics[other].choices, nics[other].costs = there, costs[2 * number + 1]

    @staticmethod
    def _tenant(choice: _Choice, larger: _Choice | None) -> Tenant:
        return choice.tenants[choice.at + (choice is larger)]

    def _propose(self, nics: list[_Nic], at: int) -> tuple[int, list[_Choice], list[_Choice], _Choice | None] | None:
        """Another NIC, what both carry then, and an instance that gets more cores; None where a draw is no change."""
        nic = nics[at]
        short = nic.choices[int(np.argmax(nic.costs))]
        drawn = self._draw.random()
        if drawn < 0.25 and short.at + 1 < len(short.tenants):
            more = short.cores[short.at + 1] - short.taken
            if sum(choice.taken for choice in nic.choices) + more <= self.kind.cores:
                return at, nic.choices, [], short
        # mostly the one that is short leaves, else one that may disturb it
        mover = short if drawn < 0.6 else nic.choices[int(self._draw.integers(len(nic.choices)))]
        other = int(self._draw.integers(len(nics)))
        if other == at:
            return None
        goal = nics[other]
        stay = [choice for choice in nic.choices if choice is not mover]
        if self._fits([*goal.choices, mover]):
            return other, stay, [*goal.choices, mover], None
        back = [choice for choice in goal.choices if choice.taken >= mover.taken or len(goal.choices) < 3]
        back = back or goal.choices
        swapped = back[int(self._draw.integers(len(back)))] if back else None
        if swapped is None:
            return None
        there = [*(choice for choice in goal.choices if choice is not swapped), mover]
        here = [*stay, swapped]
        return (other, here, there, None) if self._fits(here) and self._fits(there) else None

    def _mend(self, nics: list[_Nic], allowed: float, most: int) -> None:
        """Give the most doubtful instances NICs of their own while too many violations are to be expected.

        Where there is no further NIC, or an instance is doubtful alone, it is left out.
        """
        while nics and sum(nic.cost for nic in nics) > allowed + 1e-9:
            nic = max(nics, key=lambda nic: nic.cost)
            leaving = nic.choices[int(np.argmax(nic.costs))]
            alone = len(nic.choices) < 2
            nic.choices = [choice for choice in nic.choices if choice is not leaving]
            if alone:
                nics.remove(nic)
                continue
            opened = [_Nic([leaving])] if len(nics) < most else []
            self._judge([nic, *opened])
            nics += opened


# What a search knows of arrivals and of the NICs.


CORES = "cores"
"""The share that is the same all day (`Catalogue.shares`)."""
ACCESS_COUNTERS = tuple(COUNTERS.index(name) for name in ("l2crd", "l2cwr"))
MANY_ACCESSES = 1e8
"""Cache accesses per second that count as one NIC's share where instances are dealt out evenly."""


def kind_of_loads(arrivals: Sequence[Arrival], catalogue: Catalogue) -> NicKind | None:
    """The kind of NIC that a search plans for; None where it cannot: instances leave, or kinds differ."""
    moves = any(arrival.departure is not None or arrival.nic is not None for arrival in arrivals)
    if moves or len(catalogue.kinds) != 1 or catalogue.gpus or catalogue.curves.get(0):
        return None
    return catalogue.kinds[0]


def load_planner(tenants: Sequence[Tenant], catalogue: Catalogue, predictor: str, judge: Judge) -> LoadPlanner:
    """What searches a plan; the predictor only says where a search begins."""
    kind, models = catalogue.kinds[0], catalogue.models[0]

    def shares(workload: Workload) -> dict[str, float]:
        counters = models.solo_behaviour([workload]).counters[0]
        accesses = sum(float(counters[at]) for at in ACCESS_COUNTERS)
        return {**catalogue.shares(kind, workload), "memory": accesses / MANY_ACCESSES}

    def alone(workloads: Sequence[Workload]) -> Sequence[float]:
        found: list[float] = models.predictors[predictor].solo(workloads).tolist()
        return found

    return LoadPlanner(tenants, kind, DayJudge(judge) if has_days(tenants) else judge, shares, alone)
