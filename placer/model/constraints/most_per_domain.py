"""At most so many of a group in one domain, as a rack, at the same time: `2 web` allows two of `web`."""

from placer.model.constraints import register
from placer.model.constraints.most_per_nic import MostPerNic
from placer.model.group_members import domain_place
from placer.model.plan import Placement


@register
class MostPerDomain(MostPerNic):
    """Replicas of which only some may fail with one rack. The number is part of the name of the group."""

    name = "most_per_domain"
    text = "at most so many of the group in one domain"
    by_domain = True

    @classmethod
    def place(cls, placement: Placement) -> object:
        return domain_place(placement)
