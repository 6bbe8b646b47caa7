"""What several indexes answer together: the best NIC of all, the best few, and why none takes an arrival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from placer.model.fleet import Nic, NicKind, Tenant
from placer.policy.nic_index import NicIndex
from placer.policy.rejection import Reason


def best_of(indexes: Iterable[NicIndex], tenant: Tenant) -> tuple[float, Nic] | None:
    """The lowest score and its NIC; None where no NIC takes the tenant."""
    best: tuple[float, Nic] | None = None
    for index in indexes:
        found = index.best(tenant)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return best


def ranked_of(indexes: Iterable[NicIndex], tenant: Tenant, most: int) -> list[tuple[float, Nic | NicKind]]:
    """Scores and NICs that take the tenant, best first, at most so many of each index."""
    found: list[tuple[float, Nic | NicKind]] = [one for index in indexes for one in index.ranked(tenant, most)]
    return sorted(found, key=lambda one: one[0])


def last_resort_of(indexes: Iterable[NicIndex], tenant: Tenant) -> Nic | None:
    """A NIC that takes the tenant although none of those that were compared does; None where there is none."""
    return next(filter(None, (index.last_resort(tenant) for index in indexes)), None)


def reasons_of(indexes: Iterable[NicIndex], tenant: Tenant) -> list[Reason]:
    """Why no NIC takes the tenant: one reason for each class of NICs, the largest first."""
    nics = Counter[Reason]()
    for index in indexes:
        for one in index.reasons(tenant):
            nics[replace(one, nics=0)] += one.nics
    found = [replace(one, nics=count) for one, count in nics.items()]
    return sorted(found, key=lambda one: -one.nics)
