"""For checks of plans: who of a group is present at the same time, and at the same place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from placer.model.arrival import Arrival
from placer.model.plan import Placement, Plan


def is_present(arrival: Arrival, moment: float) -> bool:
    """Whether the instance is present at the moment, s."""
    return arrival.begins <= moment and (arrival.departure is None or moment < arrival.departure)


def domain_place(placement: Placement) -> str:
    """The domain of a placement, in words; a NIC without a domain is one of its own."""
    named = placement.kind.domain if placement.kind else ""
    return f"domain {named}" if named else f"NIC {placement.nic}"


def members_by_value(plan: Plan, name: str) -> dict[str, list[Placement]]:
    """The placed instances that have a value of the constraint, by value, in the order in which they begin."""
    members: defaultdict[str, list[Placement]] = defaultdict(list)
    constrained = [placement for placement in plan.placed if placement.arrival.constraints.of(name)]
    for placement in sorted(constrained, key=lambda placement: placement.arrival.begins):
        members[placement.arrival.constraints.of(name)].append(placement)
    return members


def meetings(plan: Plan, name: str, place: Callable[[Placement], object]) -> Iterator[tuple[str, str, object]]:
    """For each instance that begins where one of its group is: the ids of both, the group, and the place.

    `place` says where a placement is. Pairs that both already run were nobody's decision.
    """
    for value, members in members_by_value(plan, name).items():
        present: defaultdict[object, list[Placement]] = defaultdict(list)
        for placement in members:
            where, begins = place(placement), placement.arrival.begins
            others = [other for other in present[where] if is_present(other.arrival, begins)]
            present[where] = [*others, placement]
            met = next((o for o in others if o.arrival.nic is None or placement.arrival.nic is None), None)
            if met is not None:
                yield f"{met.arrival.id} and {placement.arrival.id}", value, where


def crowds(plan: Plan, name: str, place: Callable[[Placement], object]) -> Iterator[tuple[str, str, object]]:
    """For each instance that begins where as many of its group are as the number before its name says, or more: the
    ids of all, the group, and the place.

    `place` says where a placement is. Instances that all already run were nobody's decision.
    """
    for value, members in members_by_value(plan, name).items():
        allowed, at = int(value.split()[0]), defaultdict[object, list[Placement]](list)
        for placement in members:
            at[place(placement)].append(placement)
        for placement in members:
            where, begins = place(placement), placement.arrival.begins
            present = [other for other in at[where] if is_present(other.arrival, begins)]
            if len(present) > allowed and any(other.arrival.nic is None for other in present):
                yield " and ".join(other.arrival.id for other in present), value, where
