"""How many NICs instances at rates need at least by cores and line rate, and of which kinds they cost least.

Each instance takes at least the fewest cores on which it keeps its SLA alone, and neighbours never make that fewer. So
the NICs of a kind must have the cores and the line rate for all that are on them at one moment, and no two instances of
more than half a NIC share one. Of one kind that is a quotient. Of several it is an integer program:

    minimise    sum over kinds k of cost(k) n(k)
    subject to  sum over k of x(i, k) = 1                                    for each class i of equal instances
                sum over i of cores(i, k) x(i, k) <= cores(k) (1 - slack) n(k)   for each k, at each moment
                the same of Gb/s; and x(i, k) summed over those of more than half a NIC <= n(k)
                running(k) <= n(k) <= count(k), an integer; 0 <= x

Only the numbers of NICs are integers, so it is solved at once, whatever the number of instances. Without slack it is a
bound; with slack it says which further NICs to take where contention leaves fewer instances together."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import coo_array

from placer.model.nic_kind import NicKind
from profiles.arrays import Floats, Ints
from profiles.linear_programs import milp

LEFT_OUT_COST = 1e5  # what an instance without a NIC costs, in NICs of the dearest kind
NIC_COST = 1e-5
"""What a NIC costs besides, relative to the dearest kind, so that of fleets of equal cost one has fewest NICs."""
MOMENTS = 8  # moments that the program looks at, the fullest and others that are far from them
NODES = 2_000  # the program of integers ends after so many nodes; its bound holds then, too


@dataclass(frozen=True)
class LeastNeed:
    """What one instance takes at least, per kind of NIC, and during which moments.

    `cores`: the fewest on which it keeps its SLA alone, 0 where it cannot. `gbps`: what is offered to it in each part
    of the day. `first`, `last`: its first moment, and the one after its last.
    """

    cores: tuple[int, ...]
    gbps: tuple[float, ...]
    first: int
    last: int


@dataclass(frozen=True)
class FewestNics:
    """A fleet, and the lower bounds that its program proves.

    `counts`: NICs of each kind. `kind_of`: the kind of each instance, -1 where NICs are too few. `enough`: whether the
    NICs that there are may be enough. `cost`, `nics`: if so, no plan that places all instances costs less, or uses
    fewer NICs; 0 with slack.
    """

    counts: tuple[int, ...]
    kind_of: tuple[int, ...]
    enough: bool
    cost: float = 0.0
    nics: int = 0


def fewest_nics(
    needs: Sequence[LeastNeed], kinds: Sequence[NicKind], running: Sequence[int], slack: float = 0.0
) -> FewestNics:
    """The cheapest fleet on which `slack` of the cores and of the line rate may stay free.

    `running`: NICs of each kind that are in use anyway.
    """
    at_once = _at_once(needs)
    if len(kinds) == 1:
        return _of_one_kind(needs, kinds[0], running[0], at_once, slack)
    if not needs:
        cost = float(np.dot(running, [kind.cost for kind in kinds]))
        return FewestNics(tuple(running), (), True, cost, sum(running))
    most = max(kind.cost for kind in kinds) or 1.0
    costs = np.array([kind.cost for kind in kinds])
    moments = _far_apart(at_once[:, 0])
    program = _Program(needs, kinds, running, moments, slack)
    fleet = program.solve(costs + NIC_COST * most, LEFT_OUT_COST * most)
    if slack or -1 in fleet.kind_of:
        return FewestNics(fleet.counts, fleet.kind_of, -1 not in fleet.kind_of)
    cost, nics = (program.solve(of, None).bound for of in (costs, np.ones(len(kinds))))
    return FewestNics(fleet.counts, fleet.kind_of, True, cost, math.ceil(nics - 1e-6))


def _at_once(needs: Sequence[LeastNeed]) -> Floats:
    """Per moment, the fewest cores of those present on any kind, and their Gb/s in each part of the day.

    Shape (moments, 1 + parts).
    """
    moments = max((need.last for need in needs), default=0)
    change = np.zeros((moments + 1, 1 + max((len(need.gbps) for need in needs), default=1)))
    for need in needs:
        value = min(filter(None, need.cores)), *need.gbps
        change[need.first] += value
        change[need.last] -= value
    return np.cumsum(change, axis=0)[:moments]


def _of_one_kind(needs: Sequence[LeastNeed], kind: NicKind, running: int, at_once: Floats, slack: float) -> FewestNics:
    cores, *gbps = at_once.max(axis=0, initial=0.0).tolist()
    large = [need for need in needs if 2 * need.cores[0] > kind.cores]
    together = max((sum(need.first <= at.first < need.last for need in large) for at in large), default=0)
    exact = max(
        math.ceil(cores / kind.cores - 1e-9), together, math.ceil(max(gbps) / kind.line_rate_gbps - 1e-9), running
    )
    wanted = max(exact, math.ceil(exact / (1.0 - slack) - 1e-9))
    if kind.count is not None and exact > kind.count:
        return FewestNics((kind.count,), (0,) * len(needs), enough=False)
    count = wanted if kind.count is None else min(wanted, kind.count)
    return FewestNics((count,), (0,) * len(needs), True, exact * kind.cost, exact)


def _far_apart(cores: Floats) -> list[int]:
    """The fullest moment, then again and again the fullest of those that are far from all before."""
    left = cores.copy()
    chosen: list[int] = []
    near = max(len(left) // (2 * MOMENTS), 1)
    while len(chosen) < MOMENTS and (left > -np.inf).any():
        at = int(np.argmax(left))
        chosen.append(at)
        left[max(at - near + 1, 0) : at + near] = -np.inf
    return chosen


@dataclass(frozen=True)
class _Solved:
    counts: tuple[int, ...]
    kind_of: tuple[int, ...]
    bound: float


class _Program:
    """The integer program; instances with equal needs at these moments are a class, with Gb/s rounded downwards."""

    def __init__(
        self, needs: Sequence[LeastNeed], kinds: Sequence[NicKind], running: Sequence[int], moments: Sequence[int],
        slack: float,
    ) -> None:  # fmt: skip
        self.kinds, self.running, self.needs = kinds, running, needs
        found: dict[tuple[tuple[int, ...], tuple[float, ...], tuple[bool, ...]], list[int]] = defaultdict(list)
        for at, need in enumerate(needs):
            present = tuple(need.first <= moment < need.last for moment in moments)
            found[need.cores, tuple(map(_floor, need.gbps)), present].append(at)
        self.classes = list(found)
        self.members = list(found.values())
        self.left_out = len(self.classes) * len(kinds)
        self.number = self.left_out + len(self.classes)
        rows: list[tuple[dict[int, float], float]] = []
        for number, kind in enumerate(kinds):
            for at in range(len(moments)):
                here = [place for place, (_, _, present) in enumerate(self.classes) if present[at]]
                able = [place for place in here if self.classes[place][0][number]]
                demands = [({place: float(self.classes[place][0][number]) for place in able}, float(kind.cores))]
                parts = len(needs[0].gbps) if math.isfinite(kind.line_rate_gbps) else 0
                demands += [
                    ({place: self.classes[place][1][part] for place in able}, kind.line_rate_gbps)
                    for part in range(parts)
                ]
                for demand, capacity in demands:
                    rows.append((self._row(demand, number, (1.0 - slack) * capacity), 0.0))
                large = {place: 1.0 for place in able if 2 * self.classes[place][0][number] > kind.cores}
                rows.append((self._row(large, number, 1.0), 0.0))
        self.rows = rows

    def _row(self, demand: dict[int, float], kind: int, capacity: float) -> dict[int, float]:
        row = {place * len(self.kinds) + kind: value for place, value in demand.items()}
        return {**row, self.number + kind: -capacity}

    def solve(self, costs: Floats, left_out_cost: float | None) -> _Solved:
        """`left_out_cost`: what an instance without a NIC costs; None where all are placed."""
        kinds, variables = len(self.kinds), self.number + len(self.kinds)
        sizes = np.array([len(members) for members in self.members], dtype=np.float64)
        row, column, value = (
            np.array(part)
            for part in zip(
                *((at, place, value) for at, (of, _) in enumerate(self.rows) for place, value in of.items()),
                strict=True,
            )
        )
        at_most = LinearConstraint(coo_array((value, (row, column)), shape=(len(self.rows), variables)).tocsr(), ub=0.0)
        place = np.arange(len(self.classes))
        own = [*(place * kinds + kind for kind in range(kinds)), self.left_out + place]
        once = coo_array(
            (np.ones(len(place) * (kinds + 1)), (np.tile(place, kinds + 1), np.concatenate(own))),
            shape=(len(place), variables),
        )
        high = np.repeat(sizes, kinds)
        high[[not cores for of, _, _ in self.classes for cores in of]] = 0.0
        counts = [np.inf if kind.count is None else kind.count for kind in self.kinds]
        high = np.concatenate([high, sizes if left_out_cost is not None else 0.0 * sizes, counts])
        low = np.concatenate([np.zeros(self.number), np.array(self.running, dtype=np.float64)])
        found = milp(
            np.concatenate([np.zeros(self.left_out), np.full(len(place), left_out_cost or 0.0), costs]),
            constraints=[at_most, LinearConstraint(once.tocsr(), sizes, sizes)],
            bounds=Bounds(low, np.maximum(high, low)),
            integrality=np.concatenate([np.zeros(self.number), np.ones(kinds)]),
            options={"mip_rel_gap": 0.0, "node_limit": NODES},
        )
        if found.x is None:
            return _Solved(tuple(self.running), (-1,) * len(self.needs), 0.0)
        numbers = np.rint(found.x[self.number :]).astype(np.int64)
        exact = float(costs @ numbers) if found.status == 0 else float(found.mip_dual_bound) - 1e-6
        return _Solved(tuple(numbers.tolist()), self._kinds_of(found.x), exact)

    def _kinds_of(self, values: Floats) -> tuple[int, ...]:
        """The kind of each instance: of each class whole numbers, the largest remainders rounded upwards."""
        kind_of = [-1] * len(self.needs)
        for place, members in enumerate(self.members):
            shares = [*values[place * len(self.kinds) :][: len(self.kinds)], values[self.left_out + place]]
            whole: Ints = np.floor(np.array(shares) + 1e-6).astype(np.int64)
            for most in np.argsort(whole - np.array(shares), kind="stable")[: len(members) - int(whole.sum())].tolist():
                whole[most] += 1
            kinds = np.repeat([*range(len(self.kinds)), -1], whole)
            for at, kind in zip(members, kinds.tolist(), strict=True):
                kind_of[at] = kind
        return tuple(kind_of)


def _floor(gbps: float) -> float:
    """Rounded downwards to two digits, so that there are few classes."""
    if gbps <= 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(gbps)) - 1)
    return math.floor(gbps / unit) * unit
