"""Asked: the index of NICs where workloads are too many to ask for all companies beforehand.

Then hardly two NICs are alike. A decision asks the oracle, in one batch, about a few NICs that are likely to do: those
that the rule prefers by the cores left, and among them those whose tenants are furthest above their SLAs.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from placer.model.fleet import Nic, NicKind, Tenant
from placer.model.oracle import Oracle
from placer.policy.rejection import CORES, NOT_HOSTED, SOME_SLA, Reason, Tally
from profiles import Workload

BATCHES = (4, 12)
"""NICs asked about at first, and when none of them does, before a new one is opened."""

LAST_RESORT = (64,) * 16
"""NICs asked about before a newcomer is turned away."""

STEPS_PER_UNIT = 50
"""How finely NICs are sorted by how far their tenants are above their SLAs: in steps of two percent."""

STEPS = 20


class NicState:
    """What the index keeps of a NIC: who is there in order of workload, each with what it requires (kpps), the free
    cores, and how far the tenants are above their SLAs, in steps."""

    __slots__ = ("free", "seated", "step")

    def __init__(self, free: int) -> None:
        self.free = free
        self.seated: list[tuple[Workload, float]] = []
        self.step = STEPS


class SampledIndex:
    """NICs of one kind by free cores and by how far their tenants are above their SLAs.

    Parameters
    ----------
    kind
        The kind.
    oracle
        Who tells the throughputs.
    after
        The rule's weight of the room that is left: above 0 the least is preferred, else the most.
    """

    def __init__(self, kind: NicKind, oracle: Oracle, after: float) -> None:
        self.kind = kind
        self.oracle = oracle
        self.fullest_first = after >= 0
        self.nics: dict[int, Nic] = {}
        self._stalls: dict[tuple[int, int], dict[int, Nic]] = defaultdict(dict)

    def foresee(self, recent: Iterable[Tenant]) -> None:
        """Nothing is foreseen here."""

    def enter(self, nic: Nic) -> None:
        """Take the NIC in, with all its tenants."""
        nic.note = NicState(self.kind.cores)
        for tenant in nic.housed.values():
            self._seat(nic.note, tenant)
        self._put(nic)

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved in."""
        stall: NicState = nic.note
        self.close(nic)
        self._seat(stall, tenant)
        co_location = tuple(workload for workload, _ in stall.seated)
        above = _spare(stall.seated, self.oracle.throughput([co_location])[0])
        stall.step = int(np.clip(above * STEPS_PER_UNIT, 0, STEPS))
        self._put(nic)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved out; those who stay are no worse off."""
        stall: NicState = nic.note
        self.close(nic)
        stall.seated.remove((tenant.workload, self._required(tenant)))
        stall.free += self.kind.cores_of[tenant.workload.nf]
        stall.step = max(stall.step, STEPS // 2)
        if nic.housed:
            self._put(nic)

    def close(self, nic: Nic) -> None:
        """The NIC takes no more newcomers."""
        if self.nics.pop(nic.number, None) is not None:
            del self._stalls[nic.note.free, nic.note.step][nic.number]

    def best(self, tenant: Tenant, batches: Sequence[int] = BATCHES) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers among those asked about, with its score; None when none keeps every SLA."""
        if not self.kind.hosts(tenant.workload):
            return None
        likely = iter(list(islice(self._likely(self.kind.cores_of[tenant.workload.nf]), sum(batches))))
        for size in batches:
            scored = self._scored(list(islice(likely, size)), tenant)
            if scored:
                score, number = min(scored)
                return score, self.nics[number]
        return None

    def opening(self, tenant: Tenant) -> float | None:
        """The score of a new NIC, above any other; None when the tenant would not keep its SLA there."""
        if not self.kind.hosts(tenant.workload):
            return None
        solo = self.oracle.solo(tenant.workload)
        return 0.0 if tenant.sla.is_met(solo, solo) else None

    def tally(self, tenant: Tenant) -> Tally:
        """How many NICs have too few cores for the tenant; of the others a few were asked about."""
        needed = self.kind.cores_of.get(tenant.workload.nf, self.kind.cores + 1)
        short = sum(len(alike) for (free, _), alike in self._stalls.items() if free < needed)
        return Tally(len(self.nics), short, None)

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why nobody can take the tenant, by free cores; of those with enough, a part was asked."""
        needed = self.kind.cores_of.get(tenant.workload.nf)
        for free in range(self.kind.cores + 1):
            nics = sum(len(alike) for (cores, _), alike in self._stalls.items() if cores == free)
            if nics:
                cause = NOT_HOSTED if needed is None else CORES if free < needed else SOME_SLA
                yield Reason(self.kind.model, (), nics, cause)

    def _likely(self, cores: int) -> Iterator[Nic]:
        order = range(cores, self.kind.cores + 1) if self.fullest_first else range(self.kind.cores, cores - 1, -1)
        for free in order:
            for step in range(STEPS, -1, -1):
                yield from self._stalls.get((free, step), {}).values()

    def _scored(self, nics: list[Nic], tenant: Tenant) -> list[tuple[float, int]]:
        """Scores below 0 of the NICs on which everybody keeps the SLA, with their numbers."""
        if not nics:
            return []
        runs = tenant.workload
        co_locations = [tuple(sorted([*(workload for workload, _ in nic.note.seated), runs])) for nic in nics]
        answers = self.oracle.throughput([(runs,), *co_locations])[1:]
        arriving = runs, self._required(tenant)
        seated = [sorted([*nic.note.seated, arriving]) for nic in nics]
        scored = []
        for nic, everybody, answer in zip(nics, seated, answers, strict=True):
            above = _spare(everybody, answer)
            if above < 0:
                self._less_likely(nic)
            else:
                left = nic.note.free - self.kind.cores_of[tenant.workload.nf] + min(above, 0.99)
                share = left / (self.kind.cores + 1)
                scored.append((share - 1.0 if self.fullest_first else -share, nic.number))
        return scored

    def _less_likely(self, nic: Nic) -> None:
        """A NIC that would not do is asked later the next time."""
        self.close(nic)
        nic.note.step //= 2
        self._put(nic)

    def _required(self, tenant: Tenant) -> float:
        return tenant.sla.required_kpps(self.oracle.solo(tenant.workload))

    def _seat(self, stall: NicState, tenant: Tenant) -> None:
        insort(stall.seated, (tenant.workload, self._required(tenant)))
        stall.free -= self.kind.cores_of[tenant.workload.nf]

    def _put(self, nic: Nic) -> None:
        self.nics[nic.number] = nic
        self._stalls[nic.note.free, nic.note.step][nic.number] = nic


def _spare(seated: Sequence[tuple[Workload, float]], kpps: Sequence[float]) -> float:
    """How far the one nearest to its SLA is above what it requires; of equal workloads, the slowest counts for all."""
    least = float("inf")
    for place, (workload, required) in enumerate(seated):
        got = kpps[place]
        for other in (place - 1, place + 1):
            if 0 <= other < len(seated) and seated[other][0] == workload:
                got = min(got, kpps[other])
        if got < required:
            return min(got / required - 1.0, -1e-12)
        least = min(least, got / required - 1.0 if required > 0 else least)
    return least
