"""Spread: no two instances of a group are on one NIC at the same time."""

from collections import defaultdict
from collections.abc import Iterator

from placer.model.constraints import GroupConstraint, meetings, members_by_value, register
from placer.model.plan import Placement, Plan


@register
class Spread(GroupConstraint):
    """Replicas that must not fail with one NIC."""

    name = "spread"
    text = "no two of the group on one NIC"
    same = False

    @classmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        for value, members in members_by_value(plan, cls.name).items():
            by_nic: defaultdict[str | None, list[Placement]] = defaultdict(list)
            for placement in members:
                by_nic[placement.nic].append(placement)
            for nic, on_nic in by_nic.items():
                for first, second in meetings(on_nic):
                    yield f"{first.arrival.id} and {second.arrival.id} of group '{value}' (spread) are both on {nic}"
