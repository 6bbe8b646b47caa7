"""Together: all instances of a group that are present are on one NIC."""

from collections.abc import Iterator

from placer.model.constraints import GroupConstraint, register
from placer.model.group_members import is_present, members_by_value
from placer.model.plan import Plan


@register
class Together(GroupConstraint):
    """Instances that hand packets to one another. An arrival follows the member that is placed."""

    name = "together"
    text = "all of the group on one NIC"
    same = True

    @classmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        for value, members in members_by_value(plan, cls.name).items():
            for at, placement in enumerate(members):
                for other in members[:at]:
                    moves = other.arrival.nic is None or placement.arrival.nic is None
                    if moves and other.nic != placement.nic and is_present(other.arrival, placement.arrival.begins):
                        ids = f"{other.arrival.id} and {placement.arrival.id}"
                        yield f"{ids} of group '{value}' (together) are on {other.nic} and {placement.nic}"
                        break
