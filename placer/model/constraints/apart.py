"""Apart: no two instances of a group are in one domain, as a rack, at the same time."""

from collections import defaultdict
from collections.abc import Iterator

from placer.model.constraints import GroupConstraint, meetings, members_by_value, register
from placer.model.plan import Placement, Plan


@register
class Apart(GroupConstraint):
    """Replicas that must not fail with one rack. A NIC without a domain is one of its own."""

    name = "apart"
    text = "no two of the group in one domain"
    same = False
    by_domain = True

    @classmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        for value, members in members_by_value(plan, cls.name).items():
            by_domain: defaultdict[tuple[str, str | None], list[Placement]] = defaultdict(list)
            for placement in members:
                named = placement.kind.domain if placement.kind else ""
                by_domain[("domain", named) if named else ("NIC", placement.nic)].append(placement)
            for (noun, place), inside in by_domain.items():
                for first, second in meetings(inside):
                    ids = f"{first.arrival.id} and {second.arrival.id}"
                    yield f"{ids} of group '{value}' (apart) are both in {noun} {place}"
