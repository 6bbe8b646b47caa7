"""At most so many of a group on one NIC at the same time: `2 web` allows two of `web`."""

from collections.abc import Iterator

from placer.model.constraints import GroupConstraint, register
from placer.model.group_members import crowds
from placer.model.groups import limit_in, usable_limit
from placer.model.plan import Placement, Plan


@register
class MostPerNic(GroupConstraint):
    """Replicas of which only some may fail with one NIC. The number is part of the name of the group."""

    name = "most_per_nic"
    text = "at most so many of the group on one NIC"
    same = False

    @classmethod
    def check_value(cls, value: str) -> None:
        usable_limit(value)

    @classmethod
    def most(cls, value: str) -> int:
        return limit_in(value)

    @classmethod
    def place(cls, placement: Placement) -> object:
        """Where so many may be."""
        return placement.nic

    @classmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        for ids, value, place in crowds(plan, cls.name, cls.place):
            yield f"{ids} of group '{value}' ({cls.name}) are all {'in' if cls.by_domain else 'on'} {place}"
