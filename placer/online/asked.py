"""Asked: the index of NICs where workloads are too many to ask for all companies beforehand.

Then hardly two NICs are alike. A decision asks the oracle, in one batch, about a few NICs that are likely to do: those
that the rule prefers by the cores left, and among them those whose tenants are furthest above their SLAs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from placer.fleet import Nic, NicKind, Tenant
from placer.online.reasons import CORES, NOT_HOSTED, SOME_SLA, Reason, Tally
from placer.online.spare import spare
from placer.oracle import Oracle, company_of

BATCHES = (8, 16)
"""NICs asked about at first, and when none of them does, before a new one is opened."""

STEPS_PER_UNIT = 50
"""How finely NICs are sorted by how far their tenants are above their SLAs: in steps of two percent."""

STEPS = 20


class Stall:
    """What the index keeps of a NIC: free cores, and how far its tenants are above their SLAs, in steps."""

    __slots__ = ("free", "step")

    def __init__(self, free: int) -> None:
        self.free = free
        self.step = STEPS


class Asked:
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
        nic.note = Stall(self.kind.cores - self.kind.cores_taken(t.workload for t in nic.housed.values()))
        self._put(nic)

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved in."""
        self.close(nic)
        nic.note.free -= self.kind.cores_of[tenant.workload.nf]
        nic.note.step = self._step(nic)
        self._put(nic)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved out; those who stay are no worse off."""
        self.close(nic)
        nic.note.step = max(nic.note.step, STEPS // 2)
        nic.note.free += self.kind.cores_of[tenant.workload.nf]
        if nic.housed:
            self._put(nic)

    def close(self, nic: Nic) -> None:
        """The NIC takes no more newcomers."""
        if self.nics.pop(nic.number, None) is not None:
            del self._stalls[nic.note.free, nic.note.step][nic.number]

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers among those asked about, with its score; None when none keeps every SLA."""
        if not self.kind.hosts(tenant.workload):
            return None
        likely = iter(list(islice(self._likely(self.kind.cores_of[tenant.workload.nf]), sum(BATCHES))))
        for size in BATCHES:
            batch = list(islice(likely, size))
            scored = self._scored(batch, tenant) if batch else []
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
        companies = [company_of([*(t.workload for t in nic.housed.values()), tenant.workload]) for nic in nics]
        self.oracle.throughput([(tenant.workload,), *companies])
        scored = []
        for nic, company in zip(nics, companies, strict=True):
            above = spare(self.oracle, company, [*nic.housed.values(), tenant])
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

    def _step(self, nic: Nic) -> int:
        above = spare(self.oracle, nic.company, nic.tenants)
        return int(np.clip(above * STEPS_PER_UNIT, 0, STEPS))

    def _put(self, nic: Nic) -> None:
        self.nics[nic.number] = nic
        self._stalls[nic.note.free, nic.note.step][nic.number] = nic
