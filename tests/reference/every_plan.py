"""The best plan of a small trace, by a search of every plan that shares no code with placer.

It reads arrivals and kinds of NIC of the toy world (`placer.testing.strategies`), in which a neighbour never helps: a
co-location that violates an SLA is not completed. Nobody moves. NICs of a kind are interchangeable.

Within a budget, what is predicted errs: throughput beside others is lognormal around its median. Of an instance the
largest chance of its stay counts that it violates its SLA, and none may be above one half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import erfc, inf, log, sqrt

from placer.model.arrival import Arrival
from placer.model.nic_kind import NicKind
from placer.testing.strategies import CORES_BY_NF, NF_PRESSURE, NF_SENSITIVITY

SLACK = 1e-9  # of sums of pressures, which depend on their order
SPREAD = 0.05  # the standard deviation of the logarithm of a throughput beside others
LIKELIEST = 0.5  # the largest chance of a violation at which an instance is placed

Assignment = Sequence[tuple[str, int] | None]
"""For each arrival its NIC and the number of its kind; None where it is rejected."""

BitNic = tuple[int, int, int]
"""The number of a NIC in use, that of its kind, and its tenants, a bit for each arrival."""

Losses = tuple[int, ...]
"""How many arrivals of each priority are rejected, the highest priority first."""


@dataclass(frozen=True)
class BestPlan:
    """The plan that loses least, then is worth least: its cost, or its NICs where those were asked for."""

    losses: Losses
    worth: float
    assignment: Assignment


def losses_of(arrivals: Sequence[Arrival], assignment: Assignment) -> Losses:
    """What an assignment loses of each priority."""
    ranks = sorted({arrival.priority for arrival in arrivals}, reverse=True)
    lost = [arrival.priority for arrival, place in zip(arrivals, assignment, strict=True) if place is None]
    return tuple(lost.count(rank) for rank in ranks)


def breaks_constraint(arrivals: Sequence[Arrival], kinds: Sequence[NicKind], assignment: Assignment) -> bool:
    """By every pair of placed instances, whether a group or a pool is violated."""
    placed = [(arrival, place) for arrival, place in zip(arrivals, assignment, strict=True) if place is not None]
    for (first, (nic, kind)), (second, (other_nic, other_kind)) in combinations(placed, 2):
        if not _overlap(first, second):
            continue
        own, others = dict(first.constraints.values), dict(second.constraints.values)
        if nic == other_nic and own.get("exclusive") != others.get("exclusive"):
            return True
        shared = {name for name, value in own.items() if others.get(name) == value}
        domains = [kinds[at].domain or name for at, name in ((kind, nic), (other_kind, other_nic))]
        if ("spread" in shared and nic == other_nic) or ("together" in shared and nic != other_nic):
            return True
        if "apart" in shared and domains[0] == domains[1]:
            return True
    for newest, (nic, kind) in placed:
        for name, value in newest.constraints.values:
            if not name.startswith("most_per_"):
                continue
            place = kinds[kind].domain or nic if name == "most_per_domain" else nic
            here = [
                arrival
                for arrival, (at, of) in placed
                if dict(arrival.constraints.values).get(name) == value
                and arrival.time <= newest.time < (arrival.departure or inf)
                and (kinds[of].domain or at if name == "most_per_domain" else at) == place
            ]
            if len(here) > int(value[0]):
                return True
    return any(not _may_be_in(arrival, kinds[kind].pool) for arrival, (_, kind) in placed)


def keeps_slas(arrivals: Sequence[Arrival], assignment: Assignment) -> bool:
    """Whether every placed instance keeps its SLA at every arrival."""
    placed = [(arrival, place[0]) for arrival, place in zip(arrivals, assignment, strict=True) if place is not None]
    for newest, nic in placed:
        present = [a for a, at in placed if at == nic and a.time <= newest.time < (a.departure or inf)]
        if not _slas_kept(present):
            return False
    return True


def expected_violations_of(arrivals: Sequence[Arrival], assignment: Assignment) -> float:
    """How many of the placed instances violate their SLA, by the sum of the largest chance of each."""
    placed = [(arrival, place[0]) for arrival, place in zip(arrivals, assignment, strict=True) if place is not None]
    worst = dict.fromkeys((arrival.id for arrival, _ in placed), 0.0)
    for newest, nic in placed:
        present = [a for a, at in placed if at == nic and a.time <= newest.time < (a.departure or inf)]
        for tenant, chance in zip(present, _chances(present), strict=True):
            worst[tenant.id] = max(worst[tenant.id], chance)
    return sum(worst.values())


def cost_of(arrivals: Sequence[Arrival], kinds: Sequence[NicKind], assignment: Assignment) -> float:
    """Of each kind the most NICs in use at one time, times the cost of one."""
    return sum(kind.cost * _peak(arrivals, assignment, at) for at, kind in enumerate(kinds))


def nics_of(arrivals: Sequence[Arrival], assignment: Assignment) -> int:
    """The most NICs in use at one time."""
    return _peak(arrivals, assignment, None)


def _peak(arrivals: Sequence[Arrival], assignment: Assignment, kind: int | None) -> int:
    peak = 0
    for moment in {arrival.time for arrival in arrivals}:
        in_use = {
            place[0]
            for arrival, place in zip(arrivals, assignment, strict=True)
            if place is not None and kind in (None, place[1]) and arrival.time <= moment < (arrival.departure or inf)
        }
        peak = max(peak, len(in_use))
    return peak


def _overlap(first: Arrival, second: Arrival) -> bool:
    return max(first.time, second.time) < min(first.departure or inf, second.departure or inf)


def _may_be_in(arrival: Arrival, pool: str) -> bool:
    asked = dict(arrival.constraints.values).get("pool", "")
    return pool in asked.split("|") if asked else not pool


def _slas_kept(tenants: Sequence[Arrival]) -> bool:
    total = sum(NF_PRESSURE[tenant.workload.nf] for tenant in tenants)
    for tenant in tenants:
        nf = tenant.workload.nf
        drop = min(NF_SENSITIVITY[nf] * (total - NF_PRESSURE[nf]), 0.99)
        if tenant.sla.max_drop is None or drop > tenant.sla.max_drop + SLACK:
            return False
    return True


def _chances(tenants: Sequence[Arrival]) -> list[float]:
    """The chance of each that it falls short of its SLA beside the others; alone, what an NF does is known."""
    total = sum(NF_PRESSURE[tenant.workload.nf] for tenant in tenants)
    found = []
    for tenant in tenants:
        nf, drop = tenant.workload.nf, tenant.sla.max_drop
        if drop is None:
            raise ValueError(f"{tenant.id}: the toy world knows drops only")
        kept = max(1.0 - NF_SENSITIVITY[nf] * (total - NF_PRESSURE[nf]), 0.01)
        short = log((1.0 - drop) / kept) / SPREAD
        found.append(erfc(-short / sqrt(2.0)) / 2.0 if len(tenants) > 1 else 0.0)
    return found


class _Search:
    """Decides arrival after arrival; leaves a branch that is no better than the best plan.

    `budget`: the share of the instances placed that may be expected to violate their SLA; None where none may, by what
    is predicted.
    """

    def __init__(
        self, arrivals: Sequence[Arrival], kinds: Sequence[NicKind], by_nics: bool, budget: float | None
    ) -> None:
        self.arrivals, self.kinds, self.by_nics, self.budget = arrivals, kinds, by_nics, budget
        numbers = range(len(arrivals))
        ranks = sorted({arrival.priority for arrival in arrivals}, reverse=True)
        self.rank = [ranks.index(arrival.priority) for arrival in arrivals]
        self.alive = [
            sum(1 << at for at in range(new) if arrivals[new].time < (arrivals[at].departure or inf)) for new in numbers
        ]
        names = ("spread", "apart", "together", "most_per_nic", "most_per_domain")
        self.alike = {name: [self._mask(new, name) for new in numbers] for name in names}
        owners = [dict(one.constraints.values).get("exclusive") for one in arrivals]
        self.foreign = [sum(1 << at for at in numbers if owners[at] != owners[new]) for new in numbers]
        self.most = [{name: int(value[0]) for name, value in one.constraints.values if value[0].isdigit()}
                     for one in arrivals]  # fmt: skip
        self.allowed = [[_may_be_in(arrival, kind.pool) for kind in kinds] for arrival in arrivals]
        self.kept: dict[int, bool] = {}
        self.chances: dict[int, dict[int, float]] = {}
        self.worst = [0.0] * len(arrivals)
        self.best: tuple[Losses, float] = ((len(arrivals) + 1,), inf)
        self.found: list[tuple[int, int] | None] = []

    def _mask(self, new: int, name: str) -> int:
        value = dict(self.arrivals[new].constraints.values).get(name)
        group = [dict(arrival.constraints.values).get(name) for arrival in self.arrivals]
        return sum(1 << at for at, other in enumerate(group) if value and other == value and at != new)

    def decide(
        self,
        new: int,
        nics: tuple[BitNic, ...],
        peaks: tuple[int, ...],
        losses: Losses,
        path: list[tuple[int, int] | None],
    ) -> None:
        """`nics`: those in use before; `peaks`: the most of each kind so far, or of all; `path`: the decisions."""
        worth = (
            peaks[0] if self.by_nics else sum(kind.cost * peak for kind, peak in zip(self.kinds, peaks, strict=True))
        )
        if (losses, worth) >= self.best or self._expects_too_many(sum(losses)):
            return
        if new == len(self.arrivals):
            self.best, self.found = (losses, worth), list(path)
            return
        alive = self.alive[new]
        now = tuple((nic, kind, members & alive) for nic, kind, members in nics if members & alive)
        for after, place in self._options(new, now):
            path.append(place)
            before = self.worst
            self._expect(next(members for _, _, members in after if members >> new & 1))
            self.decide(new + 1, after, self._raise(peaks, after), losses, path)
            self.worst = before
            path.pop()
        rank = self.rank[new]
        path.append(None)
        self.decide(new + 1, now, peaks, (*losses[:rank], losses[rank] + 1, *losses[rank + 1 :]), path)
        path.pop()

    def _options(self, new: int, nics: tuple[BitNic, ...]) -> Iterator[tuple[tuple[BitNic, ...], tuple[int, int]]]:
        """The NICs after the arrival has gone to each that it may go to."""
        for at, (nic, kind, members) in enumerate(nics):
            if self._may(new, nics, kind, members):
                yield (*nics[:at], (nic, kind, members | 1 << new), *nics[at + 1 :]), (nic, kind)
        for number, opened in enumerate(self.kinds):
            in_use = sum(other == number for _, other, _ in nics)
            if (opened.count is None or in_use < opened.count) and self._may(new, nics, number, 0):
                yield (*nics, (new, number, 1 << new)), (new, number)

    def _may(self, new: int, nics: tuple[BitNic, ...], kind: int, members: int) -> bool:
        if not self.allowed[new][kind] or members & self.alike["spread"][new]:
            return False
        together = self.alike["together"][new]
        domain, apart = self.kinds[kind].domain, self.alike["apart"][new]
        for _, other, there in nics:
            if there & together and there != members:
                return False
            if there & apart and (there == members or (domain and self.kinds[other].domain == domain)):
                return False
        if not self._is_within_limits(new, nics, kind, members) or members & self.foreign[new]:
            return False
        on_nic = [self.arrivals[at] for at in range(new + 1) if (members | 1 << new) >> at & 1]
        if sum(CORES_BY_NF[arrival.workload.nf] for arrival in on_nic) > self.kinds[kind].cores:
            return False
        key = members | 1 << new
        if key not in self.kept:
            if self.budget is None:
                self.kept[key] = _slas_kept(on_nic)
            else:
                numbers = (at for at in range(new + 1) if key >> at & 1)
                self.chances[key] = dict(zip(numbers, _chances(on_nic), strict=True))
                self.kept[key] = max(self.chances[key].values()) <= LIKELIEST
        return self.kept[key]

    def _expect(self, members: int) -> None:
        """Let these share a NIC: of each the largest chance so far counts."""
        for at, chance in self.chances.get(members, {}).items():
            if chance > self.worst[at]:
                self.worst = [*self.worst[:at], chance, *self.worst[at + 1 :]]

    def _expects_too_many(self, lost: int) -> bool:
        if self.budget is None:
            return False
        return sum(self.worst) > self.budget * (len(self.arrivals) - lost) * (1 + SLACK) + 1e-12

    def _is_within_limits(self, new: int, nics: tuple[BitNic, ...], kind: int, members: int) -> bool:
        domain, most = self.kinds[kind].domain, self.most[new]
        near = members
        for _, other, there in nics:
            near |= there if domain and self.kinds[other].domain == domain else 0
        places = {"most_per_nic": members, "most_per_domain": near}
        return all((places[name] & self.alike[name][new]).bit_count() < most[name] for name in most)

    def _raise(self, peaks: tuple[int, ...], nics: tuple[BitNic, ...]) -> tuple[int, ...]:
        if self.by_nics:
            return (max(peaks[0], len(nics)),)
        return tuple(max(peak, sum(kind == at for _, kind, _ in nics)) for at, peak in enumerate(peaks))


def find_best(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind], *, by_nics: bool = False, budget: float | None = None
) -> BestPlan:
    """The plan that rejects fewest of the highest priority, then of the next, and so on, then costs least.

    `by_nics`: whether the last is to have the fewest NICs at one time instead. `budget`: the share of the instances
    placed that may be expected to violate their SLA; None for no violation, by what is predicted. Takes time
    exponential in the arrivals.
    """
    search = _Search(arrivals, kinds, by_nics, budget)
    ranks = len({arrival.priority for arrival in arrivals})
    search.decide(0, (), (0,) * (1 if by_nics else len(kinds)), (0,) * ranks, [])
    losses, worth = search.best
    named = [None if place is None else (f"nic-{place[0]}", place[1]) for place in search.found]
    return BestPlan(losses, worth, named)
