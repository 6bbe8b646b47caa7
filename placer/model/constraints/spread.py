"""Spread: no two instances of a group are on one NIC at the same time."""

from collections.abc import Iterator

from placer.model.constraints import GroupConstraint, register
from placer.model.group_members import meetings
from placer.model.plan import Plan


@register
class Spread(GroupConstraint):
    """Replicas that must not fail with one NIC."""

    name = "spread"
    text = "no two of the group on one NIC"
    same = False

    @classmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        for ids, value, nic in meetings(plan, cls.name, lambda placement: placement.nic):
            yield f"{ids} of group '{value}' (spread) are both on {nic}"
