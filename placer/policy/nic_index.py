"""What a selector needs of an index over the NICs of one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from placer.model.fleet import Nic, NicKind, Tenant
from placer.model.oracle import Oracle
from placer.policy.rejection import Reason, Tally


class NicIndex(Protocol):
    """Finds a NIC of one kind for an arrival, among the NICs in use that take arrivals."""

    def observe(self, tenant: Tenant) -> None:
        """Count an arrival: future arrivals are like the recent ones."""

    def renew(self, *, at_once: bool = False) -> None:
        """Begin to renew what future arrivals are worth, over the next arrivals or at once."""

    @property
    def renewing(self) -> bool:
        """Whether a renewal is under way."""

    def settle(self) -> None:
        """Go on with a renewal by one step."""

    def follow(self, oracle: Oracle) -> None:
        """Check what is found by this oracle from now on."""

    def refresh(self) -> None:
        """Take notice of answers of the oracle that changed."""

    def has(self, nic: Nic) -> bool:
        """Whether the NIC is here."""

    def begin_trial(self) -> None:
        """NICs are changed from here on only to be changed back before `end_trial`, which leaves no trace."""

    def end_trial(self) -> None:
        """All is as it was."""

    def covers(self, tenant: Tenant) -> bool:
        """Whether everything that a decision on the tenant needs is known."""

    def holds(self, tenant: Tenant) -> bool:
        """Whether a decision on the tenant is predicted in advance, as it is and not as another workload."""

    def close_with(self, arrivals: int) -> bool:
        """Prefer NICs by what they are worth to so many last arrivals; False where that is not known."""

    def enter(self, nic: Nic) -> None:
        """Add the NIC with all its tenants."""

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that was placed on the NIC, which is added if it is new."""

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that left the NIC."""

    def close(self, nic: Nic) -> None:
        """Remove the NIC, if it is there: it takes no more arrivals."""

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers, with its score (lower is better); None when none is found."""

    def rank(self, tenant: Tenant, most: int) -> list[tuple[float, Nic]]:
        """Scores and NICs that take the tenant, at most one of each class, best first; nothing is learnt by it."""

    def scores_on(self, tenant: Tenant, nics: Sequence[Nic]) -> list[float]:
        """The score of the tenant on each of these NICs; infinite where it is not known."""

    def most_free(self) -> int:
        """The most cores that are free on one NIC that may take an arrival; 0 without one."""

    def last_resort(self, tenant: Tenant) -> Nic | None:
        """A NIC that `best` did not find, after a longer search; None when there is none."""

    def opening_score(self, tenant: Tenant) -> float | None:
        """The score of a new NIC; None when the SLA of the tenant would not be met there."""

    def tally(self, tenant: Tenant) -> Tally:
        """How many NICs would take the tenant, and how many have too few cores."""

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why no NIC takes the tenant, by class of NICs."""


# What several indexes answer together: the best NIC of all, the best few, and why none takes an arrival.


def best_of(indexes: Iterable[NicIndex], tenant: Tenant) -> tuple[float, Nic] | None:
    """The lowest score and its NIC; None where no NIC takes the tenant."""
    best: tuple[float, Nic] | None = None
    for index in indexes:
        found = index.best(tenant)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return best


def rank_over(indexes: Iterable[NicIndex], tenant: Tenant, most: int) -> list[tuple[float, Nic | NicKind]]:
    """Scores and NICs that take the tenant, best first, at most so many of each index."""
    found: list[tuple[float, Nic | NicKind]] = [scored for index in indexes for scored in index.rank(tenant, most)]
    return sorted(found, key=lambda one: one[0])


def last_resort_of(indexes: Iterable[NicIndex], tenant: Tenant) -> Nic | None:
    """A NIC that takes the tenant although none of those that were compared does; None where there is none."""
    return next(filter(None, (index.last_resort(tenant) for index in indexes)), None)


def reasons_of(indexes: Iterable[NicIndex], tenant: Tenant) -> list[Reason]:
    """Why no NIC takes the tenant: one reason for each class of NICs, the largest first."""
    nics = Counter[Reason]()
    for index in indexes:
        for reason in index.reasons(tenant):
            nics[replace(reason, nics=0)] += reason.nics
    found = [replace(one, nics=count) for one, count in nics.items()]
    return sorted(found, key=lambda one: -one.nics)
