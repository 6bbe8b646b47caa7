"""Exclusive: a NIC is for one owner alone."""

from collections import defaultdict
from collections.abc import Iterator

from placer.model.constraints import SharingConstraint, register
from placer.model.group_members import is_present
from placer.model.plan import Placement, Plan


@register
class Exclusive(SharingConstraint):
    """The name of an owner, beside whose instances only those run that have the same name here."""

    name = "exclusive"
    text = "its NIC is for one owner alone"

    @classmethod
    def may_share(cls, value: str, other: str) -> bool:
        return value == other

    @classmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        on_nic: defaultdict[str | None, list[Placement]] = defaultdict(list)
        for placement in sorted(plan.placed, key=lambda placement: placement.arrival.begins):
            arrival = placement.arrival
            owner = arrival.constraints.of(cls.name)
            present = [other for other in on_nic[placement.nic] if is_present(other.arrival, arrival.begins)]
            for other in present:
                others = other.arrival.constraints.of(cls.name)
                decided = arrival.nic is None or other.arrival.nic is None
                if owner != others and decided:
                    whose = " and ".join(f"'{name}'" for name in (others, owner) if name)
                    ids = f"{other.arrival.id} and {arrival.id}"
                    yield f"{ids} share {placement.nic}, which is for owner {whose} alone (exclusive)"
            on_nic[placement.nic] = [*present, placement]
