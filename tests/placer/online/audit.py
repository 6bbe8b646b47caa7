"""The auditor: recomputes a fleet from its log of events and answers alone, and tells what is wrong with each answer.

It shares nothing with the engine but the events and the oracle, and does everything the long way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.online.events import Answer, Arrive, Change, Depart, Drain, Event, Fail, Rebalance, Return


class Auditor:
    """Follows a fleet that began empty.

    Parameters
    ----------
    kinds, oracles
        The kinds of NIC, and who tells the throughputs on each.
    exhaustive
        Whether nobody may be turned away while some NIC would do.
    """

    def __init__(self, kinds: Sequence[NicKind], oracles: Sequence[Oracle], *, exhaustive: bool = True) -> None:
        self.kinds = kinds
        self.oracles = oracles
        self.exhaustive = exhaustive
        self.tenants: dict[str, Tenant] = {}
        self.places: dict[str, str] = {}
        self.waiting: set[str] = set()
        self.closed: dict[str, bool] = {}
        self.at_risk: set[str] = set()

    def follow(self, event: Event, answer: Answer, kind_of: Mapping[str, int]) -> list[str]:
        """What is wrong with the answer, a sentence a fault; `kind_of` is the index of every NIC's kind."""
        self._take_note(event)
        faults = list(self._moves(answer, kind_of, each=isinstance(event, Rebalance)))
        self._conclude(event, answer)
        faults += [*self._full(kind_of), *self._slas(answer, kind_of)]
        if isinstance(event, Fail) and event.nic in self.places.values():
            faults.append(f"{event.nic} failed and still has tenants")
        if self.exhaustive and self.waiting:
            for identity in sorted(self.waiting):
                faults += self._turned_away(self.tenants[identity], kind_of)
        if self.exhaustive and isinstance(event, Arrive) and answer.status == "rejected":
            faults += self._turned_away(event.tenant, kind_of)
        return faults

    def co_location(self, nic: str) -> list[Tenant]:
        """Who is on the NIC."""
        return [self.tenants[identity] for identity, place in self.places.items() if place == nic]

    def keeps(self, kind: int, tenants: Sequence[Tenant]) -> list[str]:
        """Ids of those who miss their SLA when these share a NIC of that kind."""
        co_location = tuple(sorted(tenant.workload for tenant in tenants))
        answer = self.oracles[kind].throughput([co_location])[0]
        below = []
        for tenant in tenants:
            alone = self.oracles[kind].throughput([(tenant.workload,)])[0][0]
            got = min(kpps for workload, kpps in zip(co_location, answer, strict=True) if workload == tenant.workload)
            if not tenant.sla.is_met(got, alone):
                below.append(tenant.id)
        return below

    def fits(self, kind: int, tenants: Sequence[Tenant]) -> bool:
        """Whether these can share a NIC of that kind: hosted, with cores enough, and everybody at the SLA."""
        cores_of = self.kinds[kind].cores_of
        if any(tenant.workload.nf not in cores_of for tenant in tenants):
            return False
        taken = sum(cores_of[tenant.workload.nf] for tenant in tenants)
        return taken <= self.kinds[kind].cores and not self.keeps(kind, tenants)

    def _take_note(self, event: Event) -> None:
        if isinstance(event, Arrive):
            self.tenants[event.tenant.id] = event.tenant
        elif isinstance(event, Change):
            before = self.tenants[event.id]
            self.tenants[event.id] = Tenant(event.id, event.workload or before.workload, event.sla or before.sla)
        elif isinstance(event, Fail | Drain):
            self.closed[event.nic] = True
        elif isinstance(event, Return):
            del self.closed[event.nic]

    def _moves(self, answer: Answer, kind_of: Mapping[str, int], *, each: bool) -> Iterator[str]:
        """Replay the moves; where nobody had to move, the fleet must be sound after `each` of them."""
        for move in answer.moves:
            if self.places.get(move.id) != move.source:
                yield f"{move.id} moved from {move.source}, but was on {self.places.get(move.id)}"
            if move.target is None:
                self.places.pop(move.id, None)
            else:
                self.places[move.id] = move.target
                self.waiting.discard(move.id)
                if move.target in self.closed:
                    yield f"{move.id} moved to {move.target}, which is out of service"
            if each:
                yield from (*self._full(kind_of), *self._slas(answer, kind_of))

    def _conclude(self, event: Event, answer: Answer) -> None:
        if isinstance(event, Arrive) and answer.status == "queued":
            self.waiting.add(event.tenant.id)
        self.waiting.update(answer.queued)
        if isinstance(event, Depart):
            self.waiting.discard(event.id)
            del self.tenants[event.id]
        if isinstance(event, Arrive) and answer.status == "rejected":
            del self.tenants[event.tenant.id]
        for identity in answer.rejected:
            del self.tenants[identity]

    def _full(self, kind_of: Mapping[str, int]) -> Iterator[str]:
        in_use = Counter(kind_of[nic] for nic in set(self.places.values()) | set(self.closed))
        for index, kind in enumerate(self.kinds):
            if kind.count is not None and in_use[index] > kind.count:
                yield f"{in_use[index]} NICs of kind {index}, there are {kind.count}"
        for nic, tenants in self._by_nic().items():
            kind = self.kinds[kind_of[nic]]
            taken = sum(kind.cores_of[tenant.workload.nf] for tenant in tenants)
            if taken > kind.cores:
                yield f"{nic}: {taken} of {kind.cores} cores taken"

    def _slas(self, answer: Answer, kind_of: Mapping[str, int]) -> Iterator[str]:
        """Nobody misses the SLA but those who were told to; they are forgiven until they are well again."""
        below = {identity for nic, tenants in self._by_nic().items() for identity in self.keeps(kind_of[nic], tenants)}
        self.at_risk = (self.at_risk | set(answer.at_risk)) & below
        for identity in sorted(below - self.at_risk):
            yield f"{identity} on {self.places[identity]} misses its SLA"

    def _turned_away(self, tenant: Tenant, kind_of: Mapping[str, int]) -> Iterator[str]:
        by_nic = self._by_nic()
        for nic, tenants in by_nic.items():
            if nic not in self.closed and self.fits(kind_of[nic], [*tenants, tenant]):
                yield f"{tenant.id} has no place, but would fit {nic}"
        in_use = Counter(kind_of[nic] for nic in set(by_nic) | set(self.closed))
        for index, kind in enumerate(self.kinds):
            if (kind.count is None or in_use[index] < kind.count) and self.fits(index, [tenant]):
                yield f"{tenant.id} has no place, but a NIC of kind {index} could be opened"

    def _by_nic(self) -> dict[str, list[Tenant]]:
        by_nic: dict[str, list[Tenant]] = defaultdict(list)
        for identity, nic in self.places.items():
            by_nic[nic].append(self.tenants[identity])
        return by_nic
