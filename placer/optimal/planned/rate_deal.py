"""Where a search at rates begins: instances on the NICs of a fleet, by the shares of resources that each takes."""

import heapq
from collections.abc import Mapping, Sequence

import numpy as np

from placer.optimal.planned.rate_bound import FewestNics
from placer.optimal.planned.rate_nics import Choice, RateNic, RateNics
from profiles import Workload
from profiles.arrays import Floats

CORES = "cores"  # the share that is the same all day (`Catalogue.shares`)
DEALT_CORES = 0.97  # the share of all cores that instances have before the search; the rest lets it move them


def deal(choices: Sequence[Choice], nics: Sequence[RateNic], fleet: FewestNics, rates: RateNics) -> list[Choice]:
    """Put instances on these NICs, the largest first, each where the resources are used most evenly then.

    Before that, cores that no instance needs alone are given to those that have least to spare. Where there are too few
    NICs, the small ones come first, of which more fit. What fits on no NIC comes back.
    """
    kind_of = dict(zip(choices, fleet.kind_of, strict=False))
    for choice in choices:
        choice.at = [0] * len(rates.known)
        if kind_of[choice] < 0:
            kind_of[choice] = next(number for number, cores in enumerate(choice.cores) if cores)
    _spend_cores(choices, kind_of, nics, rates)
    shares = _Shares(rates)
    left = _Left(
        nics, rates, shares, sorted({name for choice in choices for name in shares.of(choice, kind_of[choice])})
    )
    sign = -1.0 if fleet.enough else 1.0

    def size(choice: Choice) -> tuple[float, float]:
        number = kind_of[choice]
        return sign * choice.taken(number), sign * max(shares.of(choice, number).values(), default=0.0)

    remaining = []
    for choice in sorted(choices, key=size):
        own_first = [kind_of[choice], *(number for number in range(len(rates.known)) if number != kind_of[choice])]
        found = (left.evenest(choice, number) for number in own_first if choice.cores[number])
        where = next((at for at in found if at is not None), None)
        if where is None:
            remaining.append(choice)
            continue
        left.take(where, choice)
        nics[where].choices.append(choice)
    return remaining


class _Shares:
    """The shares that instances take of the resources of a kind of NIC, each asked for once."""

    def __init__(self, rates: RateNics) -> None:
        self._rates = rates
        self._known: dict[tuple[int, Workload, tuple[float, ...]], dict[str, float]] = {}

    def of(self, choice: Choice, number: int) -> dict[str, float]:
        """By the names of resources; where loads change, of each but the cores in each part of the day."""
        tenant = choice.on(number)
        key = number, tenant.workload, tenant.day
        if key not in self._known:
            shares = self._rates.known[number].shares(tenant.workload)
            if (parts := self._rates.parts) > 1:
                day = tenant.day or (1.0,) * parts
                shares = {name: share for name, share in shares.items() if name == CORES} | {
                    f"{name} {part}": share * day[part]
                    for name, share in shares.items()
                    if name != CORES
                    for part in range(parts)
                }
            self._known[key] = shares
        return self._known[key]


class _Left:
    """What is left of each NIC at each moment: cores and line rate; and which shares of its resources are used."""

    def __init__(self, nics: Sequence[RateNic], rates: RateNics, shares: _Shares, names: Sequence[str]) -> None:
        self._shares, self._place = shares, {name: at for at, name in enumerate(names)}
        kinds = [rates.known[nic.kind].kind for nic in nics]
        self._kind = np.array([nic.kind for nic in nics], dtype=np.int64)
        self._used = np.zeros((len(nics), rates.moments, len(names)))
        self._cores = np.repeat(np.array([float(kind.cores) for kind in kinds]).reshape(-1, 1), rates.moments, axis=1)
        self._gbps = np.zeros((len(nics), rates.moments, rates.parts))
        self._gbps += np.array([kind.line_rate_gbps for kind in kinds]).reshape(-1, 1, 1)
        for at, nic in enumerate(nics):
            for choice in nic.choices:
                self.take(at, choice)

    def take(self, at: int, choice: Choice) -> None:
        """Put an instance on the NIC of that number."""
        stay, number = slice(choice.first, choice.last), int(self._kind[at])
        self._used[at, stay] += self._demand(choice, number)
        self._cores[at, stay] -= choice.taken(number)
        self._gbps[at, stay] -= choice.gbps

    def evenest(self, choice: Choice, number: int) -> int | None:
        """The NIC of that kind whose resources an instance leaves most evenly used; None where it fits on none."""
        stay = slice(choice.first, choice.last)
        able = (self._kind == number) & (self._cores[:, stay].min(axis=1) >= choice.taken(number))
        able &= (self._gbps[:, stay].min(axis=1) >= choice.gbps).all(axis=1)
        if not able.any():
            return None
        # the sum of squares grows by this, and by as much on each
        uneven = (self._used[:, stay] @ self._demand(choice, number)).sum(axis=1)
        return int(np.argmin(np.where(able, uneven, np.inf)))

    def _demand(self, choice: Choice, number: int) -> Floats:
        demand = np.zeros(len(self._place))
        for name, share in self._shares.of(choice, number).items():
            if name in self._place:
                demand[self._place[name]] = share
        return demand


def _spend_cores(
    choices: Sequence[Choice], kind_of: Mapping[Choice, int], nics: Sequence[RateNic], rates: RateNics
) -> None:
    """Give cores that no instance needs alone to those that have least to spare, per kind of NIC."""
    for number, known in enumerate(rates.known):
        here = [choice for choice in choices if kind_of[choice] == number]
        own = [nic for nic in nics if nic.kind == number]
        spare = np.full(rates.moments, int(DEALT_CORES * len(own) * known.kind.cores), dtype=np.int64)
        for choice in [*here, *(choice for nic in own for choice in nic.choices)]:
            spare[choice.first : choice.last] -= choice.taken(number)
        tight = [(choice.room[number][0], at) for at, choice in enumerate(here) if len(choice.cores[number]) > 1]
        heapq.heapify(tight)
        while tight:
            _, at = heapq.heappop(tight)
            choice = here[at]
            counts, has, stay = choice.cores[number], choice.at[number], slice(choice.first, choice.last)
            more = counts[has + 1] - counts[has]
            if more > spare[stay].min():
                continue
            spare[stay] -= more
            choice.at[number] += 1
            if choice.at[number] + 1 < len(counts):
                heapq.heappush(tight, (choice.room[number][choice.at[number]], at))
