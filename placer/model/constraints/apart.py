"""Apart: no two instances of a group are in one domain, as a rack, at the same time."""

from collections.abc import Iterator

from placer.model.constraints import GroupConstraint, register
from placer.model.group_members import domain_place, meetings
from placer.model.plan import Plan


@register
class Apart(GroupConstraint):
    """Replicas that must not fail with one rack. A NIC without a domain is one of its own."""

    name = "apart"
    text = "no two of the group in one domain"
    same = False
    by_domain = True

    @classmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        for ids, value, place in meetings(plan, cls.name, domain_place):
            yield f"{ids} of group '{value}' (apart) are both in {place}"
