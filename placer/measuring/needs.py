"""Which co-locations must be measured before a plan rests on measurements, and which of them to run first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from placer.model.fleet import Fleet, NicKind
from placer.model.oracle import CoLocation
from placer.model.plan import Plan
from placer.model.replay import replay_plan

OnCard = tuple[int, CoLocation]
"""A co-location and the card that it is on, by the index of the first kind of NIC with that testbed."""


@dataclass(frozen=True)
class Needs:
    """What the instances of a plan need.

    Parameters
    ----------
    groups
        How many instances need each set of co-locations: those of their NIC at every moment of their stay, and
        themselves alone where their SLA is relative to that.
    """

    groups: Counter[frozenset[OnCard]]

    @property
    def all(self) -> set[OnCard]:
        """Every co-location that an instance needs."""
        return set().union(*self.groups)

    def measured_pct(self, measured: Collection[OnCard]) -> float:
        """The share of instances (%) all of whose co-locations were measured; 100 % of no instances."""
        placed = self.groups.total()
        on = sum(instances for group, instances in self.groups.items() if all(one in measured for one in group))
        return 100.0 * on / placed if placed else 100.0

    def next_runs(self, measured: Collection[OnCard], most: int) -> list[OnCard]:
        """At most `most` unmeasured co-locations: those that complete most instances per run come first."""
        left = {group: set(group.difference(measured)) for group in self.groups}
        order = sorted(left, key=lambda group: sorted(group))
        chosen: list[OnCard] = []
        while most > len(chosen):
            open_groups = [group for group in order if left[group]]
            if not open_groups:
                break
            weight: Counter[frozenset[OnCard]] = Counter()
            for group in open_groups:
                weight[frozenset(left[group])] += self.groups[group]
            fitting = [group for group in open_groups if len(left[group]) <= most - len(chosen)] or open_groups
            best = max(fitting, key=lambda group: weight[frozenset(left[group])] / len(left[group]))
            runs = sorted(left[best])[: most - len(chosen)]
            chosen += runs
            for missing in left.values():
                missing.difference_update(runs)
        return chosen


def needs_of(plan: Plan, kinds: Sequence[NicKind], cards: Sequence[int]) -> Needs:
    """The needs of a plan's instances.

    Parameters
    ----------
    plan
        The plan.
    kinds
        The kinds of NIC.
    cards
        Per kind, the index of the first kind with the same testbed.
    """
    needed: defaultdict[str, set[OnCard]] = defaultdict(set)
    for _, changed in replay_plan(plan, Fleet(kinds)):
        for nic in changed:
            card = cards[nic.kind.index]
            for tenant in nic.tenants:
                needed[tenant.id].add((card, nic.co_location))
                if tenant.sla.max_drop is not None:
                    needed[tenant.id].add((card, (tenant.workload,)))
    return Needs(Counter(map(frozenset, needed.values())))
