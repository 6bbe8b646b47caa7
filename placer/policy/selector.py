"""The chooser: picks a NIC for a newcomer by a rule, from an index that it keeps in step with the fleet."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from placer.model.fleet import Fleet, Nic, NicKind, Service, Tenant
from placer.model.oracle import Oracle
from placer.policy.class_index import ClassIndex
from placer.policy.patterns import MOST_PATTERNS, Patterns, too_many
from placer.policy.rejection import ALONE, NONE_LEFT, OUT_OF_SERVICE, Reason, Tally
from placer.policy.rules import LOOK_AHEAD, Rule
from placer.policy.sampled_index import LAST_RESORT, SampledIndex
from profiles import Workload

FORESEEN_FROM = 10
"""Fewest arrivals from which those to come are foreseen; before, every slot is free."""

FEW = 8
"""Workloads of which all companies are asked for, however seldom they come."""

REMEMBERED = 4_096
"""Arrivals of late from which those to come are foreseen."""

RENEWED_EVERY = 65_536
"""Arrivals after which prices are made anew; until then, whenever twice as many arrivals were seen."""


class Selector:
    """Watches a fleet, and picks for each newcomer the NIC that the rule prefers among those where every SLA is kept.

    Parameters
    ----------
    fleet
        The fleet, with whatever is on it.
    oracles
        Per kind, who tells the throughputs.
    rule
        Which of several NICs.
    most_patterns
        Companies that are asked for beforehand, at most.
    """

    def __init__(
        self,
        fleet: Fleet,
        oracles: Sequence[Oracle],
        rule: Rule = LOOK_AHEAD,
        *,
        most_patterns: int = MOST_PATTERNS,
    ) -> None:
        self.fleet = fleet
        self.most_patterns = most_patterns
        self.oracles = oracles
        self.rule = rule
        self.workloads: set[Workload] = set()
        self.index: list[ClassIndex | SampledIndex] = []
        self._recent: deque[Tenant] = deque(maxlen=REMEMBERED)
        fleet.watcher = self
        present = [tenant for nic in fleet.nics.values() for tenant in nic.housed.values()]
        self._recent.extend(present)
        self._arrivals = len(present)
        self._foreseen_at = max(FORESEEN_FROM, self._arrivals + min(self._arrivals, RENEWED_EVERY))
        self.workloads.update(tenant.workload for tenant in present)
        if present:
            self._know(present[0].workload)

    def choose(self, tenant: Tenant, *, opens: bool = True) -> Nic | NicKind | None:
        """The NIC in use on which to put the tenant, the kind of which to open another if it may, or None when
        nothing keeps every SLA."""
        if self._is_new(tenant):
            self._know(tenant.workload)
        best: tuple[float, Nic] | None = None
        for nics in self.index:
            found = nics.best(tenant)
            if found is not None and (best is None or found[0] < best[0]):
                best = found
        if best is None:
            return self._cheapest(tenant) or self._last_resort(tenant) if opens else None
        if self.rule.opening_cost is not None and opens:
            new = self._cheapest(tenant)
            if new is not None and new.count is None:
                opening = self.index[new.index].opening(tenant)
                if opening is not None and best[0] > opening + self.rule.opening_cost * new.cost:
                    return new
        return best[1]

    def foresee(self, tenant: Tenant) -> None:
        """Count the tenant among the arrivals of late; prices are renewed when there are twice as many."""
        self._recent.append(tenant)
        self._arrivals += 1
        if self._arrivals >= self._foreseen_at:
            self._foreseen_at = self._arrivals + min(self._arrivals, RENEWED_EVERY)
            if self._asks:
                self._know(tenant.workload)
            else:
                self._price()

    def tally(self, tenant: Tenant) -> Tally:
        """How many NICs would take the tenant, and what keeps it out of the others."""
        if self._is_new(tenant):
            self._know(tenant.workload)
        return sum((nics.tally(tenant) for nics in self.index), Tally(0, 0, 0))

    def reasons(self, tenant: Tenant) -> list[Reason]:
        """Why the tenant has no place, by class of NICs, the largest class first; those that could be opened last."""
        if self._is_new(tenant):
            self._know(tenant.workload)
        found = [reason for nics in self.index for reason in nics.reasons(tenant)]
        found.sort(key=lambda reason: -reason.nics)
        out = Counter(nic.kind.model for nic in self.fleet.out_of_service.values())
        found += [Reason(model, (), nics, OUT_OF_SERVICE) for model, nics in out.items()]
        free = self.fleet.available()
        for kind in self.fleet.kinds:
            alone = self.index[kind.index].opening(tenant) is not None
            found.append(Reason(kind.model, (), 0, NONE_LEFT if alone and kind not in free else ALONE))
        return found

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved in."""
        if nic.service is not Service.UP:
            return
        if self._is_new(tenant):
            self._know(tenant.workload)
        elif nic.note is None:
            self.index[nic.kind.index].enter(nic)
        else:
            self.index[nic.kind.index].joined(nic, tenant)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved out."""
        if nic.service is Service.UP:
            self.index[nic.kind.index].left(nic, tenant)

    def serves(self, nic: Nic) -> None:
        """The NIC began or ceased to take newcomers."""
        if nic.service is not Service.UP:
            if nic.note is not None:
                self.index[nic.kind.index].close(nic)
                nic.note = None
        elif new := [tenant for tenant in nic.tenants if self._is_new(tenant)]:
            for tenant in new:
                self._know(tenant.workload)
        else:
            self.index[nic.kind.index].enter(nic)

    def _last_resort(self, tenant: Tenant) -> Nic | None:
        """A NIC in use, where not all were asked about."""
        found = (nics.best(tenant, LAST_RESORT) for nics in self.index if isinstance(nics, SampledIndex))
        return next((nic for _, nic in filter(None, found)), None)

    def _cheapest(self, tenant: Tenant) -> NicKind | None:
        """The cheapest kind that can be opened and on which the tenant keeps its SLA alone."""
        for kind in self.fleet.available():
            if self.index[kind.index].opening(tenant) is not None:
                return kind
        return None

    @property
    def _asks(self) -> bool:
        """Whether workloads are too many to be known beforehand."""
        return bool(self.index) and isinstance(self.index[0], SampledIndex)

    def _is_new(self, tenant: Tenant) -> bool:
        return tenant.workload not in self.workloads and not self._asks

    def _know(self, new: Workload) -> None:
        """Ask for all companies of the workloads known and the new one, and sort all NICs into rooms of them; forget
        who is gone where they are too many, and where they still are, ask from case to case."""
        self.workloads = self.workloads | {new}
        if self._asks or self._too_many(self.workloads):
            self.workloads = {tenant.workload for nic in self.fleet.nics.values() for tenant in nic.housed.values()}
            self.workloads.add(new)
        both = list(zip(self.fleet.kinds, self.oracles, strict=True))
        if self._too_many(self.workloads):
            present = dict.fromkeys(tenant.workload for nic in self.fleet.nics.values() for tenant in nic.tenants)
            for kind, oracle in both:
                oracle.throughput([(workload,) for workload in present if kind.hosts(workload)])
            self.index = [SampledIndex(kind, oracle, self.rule.after) for kind, oracle in both]
        else:
            known = sorted(self.workloads)
            self.index = [ClassIndex(Patterns(kind, known, oracle), self.rule) for kind, oracle in both]
        for nic in self.fleet.nics.values():
            if nic.service is Service.UP:
                self.index[nic.kind.index].enter(nic)
        self._price()

    def _too_many(self, workloads: set[Workload]) -> bool:
        """Whether there are more companies than are worth asking for, or hardly a workload comes twice."""
        return (len(workloads) > FEW and 2 * len(workloads) > self._arrivals) or any(
            too_many(kind, list(workloads), self.most_patterns) for kind in self.fleet.kinds
        )

    def _price(self) -> None:
        for nics in self.index:
            nics.foresee(self._recent if self._arrivals >= FORESEEN_FROM else ())
