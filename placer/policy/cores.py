"""In which order numbers of cores are tried for an instance with a rate.

The fewest cores that carry its rate with little to spare are a bad choice where there is much contention: what is
spared there is lost by its neighbours, and nobody joins a NIC on which one instance has nothing to spare.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import compress, islice
from operator import not_
from statistics import median
from typing import TypeVar

import numpy as np

from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind, choices_on
from placer.model.oracle import Oracle, co_location_of
from profiles import Workload

FIRST_ROOM = 1.0
"""What an instance must be able to carry beside usual neighbours on the cores that it gets first, relative to its
rate."""
USUAL_ROOM = 1.1
"""What an NF must be able to carry alone on the cores that it gets first, relative to what is offered to it."""

Choice = TypeVar("Choice")


def order_choices(
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    workload: Workload,
    room: float = USUAL_ROOM,
    neighbours: UsualNeighbours | None = None,
) -> list[Workload]:
    """The workload on each number of cores that it may be given, in the order in which they are tried.

    First come those on which it could carry `room` times its rate, the fewest first; then the others, the most first.
    It is what it could carry alone, or beside usual neighbours. As it is where its number is fixed.
    """
    choices = choices_on(kinds, workload)
    if len(choices) == 1:
        return choices
    tight = [most < room * workload.rate_kpps for most in most_carried(kinds, oracles, choices, neighbours)]
    return order_by_room(choices, tight)


def order_by_room(choices: Sequence[Choice], tight: Sequence[bool]) -> list[Choice]:
    """Choices of ascending cores in the order of `order_choices`, given which of them carry too little."""
    return [*compress(choices, map(not_, tight)), *reversed([*compress(choices, tight)])]


def choose_with_cores(
    tenant: Tenant, choices: Iterable[Workload], choose: Callable[[Tenant], Nic | NicKind | None]
) -> tuple[Nic | NicKind | None, Workload]:
    """The first choice of cores that a NIC in use takes; else the first with which a NIC can be opened, or none.

    Returns the NIC or the kind that `choose` finds, None where it rejects each, and the workload on these cores."""
    choice, workload = None, tenant.workload
    for tried in choices:
        found = choose(replace(tenant, workload=tried))
        if found is not None and (choice is None or isinstance(found, Nic)):
            choice, workload = found, tried
        if isinstance(found, Nic):
            break
    return choice, workload


def most_carried(
    kinds: Sequence[NicKind], oracles: Sequence[Oracle], choices: Sequence[Workload], neighbours: UsualNeighbours | None
) -> list[float]:
    """The most that a NIC of some kind carries of each of these choices of cores, kpps; a GPU's part does not depend on
    cores."""
    # the truth of a testbed is never above the rate: what it could carry is what it carries of more
    asked = [choice if choice.promises_latency else choice.saturated for choice in choices]
    carried = [0.0] * len(choices)
    for kind in kinds:
        able = [] if kind.paced else [at for at, choice in enumerate(choices) if kind.hosts(choice)]
        oracle, able_asked = oracles[kind.index], [asked[at] for at in able]
        found = map(oracle.solo, able_asked) if neighbours is None else neighbours.carried(kind, oracle, able_asked)
        for at, kpps in zip(able, found, strict=True):
            carried[at] = max(carried[at], kpps)
    return carried


REMEMBERED_NEIGHBOURS = 128
FEWEST_NEIGHBOURS = 16  # with fewer, NFs are taken to lose what `USUAL_ROOM` allows for
DRAWN_NICS = 5  # full NICs of which the median counts
MOST_BETWEEN = 4_096  # instances after which neighbours are found anew at the latest


class UsualNeighbours:
    """What NFs carry on a NIC that is full of instances like the last ones, on the cores that those got.

    It is found anew whenever twice as many have come, and after `MOST_BETWEEN`. `renewals`: how often that was.
    """

    def __init__(self, placed: Iterable[Workload] = ()) -> None:
        self.renewals = 0
        self._latest: deque[Workload] = deque(maxlen=REMEMBERED_NEIGHBOURS)
        self._came, self._renew_at = 0, FEWEST_NEIGHBOURS
        self._draw = np.random.default_rng(0)
        self._orders: list[list[Workload]] = []
        self._examples: dict[str, Workload] = {}
        self._kept: dict[tuple[int | str, ...], tuple[int, list[float]]] = {}
        for workload in placed:
            self.add(workload)

    def add(self, workload: Workload) -> None:
        """Count one that was placed."""
        self._latest.append(workload)
        self._came += 1
        if self._came == self._renew_at:
            self._renew_at += min(self._came, MOST_BETWEEN)
            self.renewals += 1
            self._kept.clear()
            latest = list(self._latest)
            self._orders = [[latest[at] for at in self._draw.permutation(len(latest))] for _ in range(DRAWN_NICS)]
            self._examples = {workload.nf: workload for workload in reversed(self._orders[0])}

    def carried(self, kind: NicKind, oracle: Oracle, choices: Sequence[Workload]) -> list[float]:
        """What an NF carries there on several numbers of cores, kpps: the share of what it carries alone that one of
        its last instances keeps on so many cores, or where there was none, that it keeps itself."""
        alone = [oracle.solo(choice) for choice in choices]
        if not self._orders or not choices:
            return [kpps / USUAL_ROOM for kpps in alone]
        example = self._examples.get(choices[0].nf)
        if example is None:
            shares = self._shares(kind, oracle, choices)
        else:
            key = kind.key, *(choice.cores for choice in choices), example.nf
            revision, shares = self._kept.get(key, (-1, []))
            if revision != oracle.revision:
                alike = [replace(example.saturated, cores=choice.cores) for choice in choices]
                shares = self._shares(kind, oracle, alike)
                self._kept[key] = oracle.revision, shares
        return [kpps * share for kpps, share in zip(alone, shares, strict=True)]

    def _shares(self, kind: NicKind, oracle: Oracle, choices: Sequence[Workload]) -> list[float]:
        """The share that each keeps on full NICs, the median."""
        full = [co_location_of(_fill(kind, choice, order)) for choice in choices for order in self._orders]
        answers, shares = iter(zip(full, oracle.throughput(full), strict=True)), []
        for choice in choices:
            beside = median(kpps[nic.index(choice)] for nic, kpps in islice(answers, len(self._orders)))
            alone = oracle.solo(choice)
            shares.append(float(beside / alone) if alone else 0.0)
        return shares


def _fill(kind: NicKind, workload: Workload, others: Sequence[Workload]) -> list[Workload]:
    """The workload, and those of the others that fit beside it, in their order."""
    nic = [workload]
    for other in others:
        if kind.cores_taken(nic) >= kind.cores:
            break
        if kind.fits([*nic, other]):
            nic.append(other)
    return nic
