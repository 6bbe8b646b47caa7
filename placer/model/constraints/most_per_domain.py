"""At most so many of a group in one domain, as a rack, at the same time: `2 web` allows two of `web`."""

from collections.abc import Iterator

from placer.model.constraints import GroupConstraint, register
from placer.model.group_members import crowds
from placer.model.groups import limit_in, usable_limit
from placer.model.plan import Placement, Plan


@register
class MostPerDomain(GroupConstraint):
    """Replicas of which only some may fail with one rack. The number is part of the name of the group."""

    name = "most_per_domain"
    text = "at most so many of the group in one domain"
    same = False
    by_domain = True

    @classmethod
    def check_value(cls, value: str) -> None:
        usable_limit(value)

    @classmethod
    def most(cls, value: str) -> int:
        return limit_in(value)

    @classmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        for ids, value, place in crowds(plan, cls.name, _place):
            yield f"{ids} of group '{value}' ({cls.name}) are all in {place}"


def _place(placement: Placement) -> str:
    named = placement.kind.domain if placement.kind else ""
    return f"domain {named}" if named else f"NIC {placement.nic}"
