"""What an arrival demands of its place beside throughput, and which tenants of a fleet belong to which group."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

NicT = TypeVar("NicT")

LONGEST_GROUP = 256  # characters of the value of a constraint
BETWEEN_POOLS = "|"


def usable_group(value: str) -> str:
    """The value of a constraint, if it is a name, or names between `|`; else ValueError."""
    names = value.split(BETWEEN_POOLS)
    if len(names) > 1 and not all(names):
        raise ValueError(f"{value[:40]!r} has no name on one side of '{BETWEEN_POOLS}'")
    if len(value) > LONGEST_GROUP or not value.isprintable() or not value or value != value.strip():
        raise ValueError(f"{value[:40]!r} is no name: up to {LONGEST_GROUP} printable characters, no blanks around it")
    return value


_LIMIT = re.compile(r"([1-9][0-9]{0,5}) (.+)")


def usable_limit(value: str) -> str:
    """The value of a constraint that limits a group, if it is a number and a name, such as `2 web`; else ValueError."""
    usable_group(value)
    if _LIMIT.fullmatch(value) is None:
        raise ValueError(f"{value[:40]!r} is no number with a name, such as '2 web'")
    return value


def limit_in(value: str) -> int:
    """The number in a `usable_limit`."""
    return int(value.partition(" ")[0])


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints of an instance.

    `values`: by the name of a constraint, in alphabetical order, its value; those without one are not listed.
    """

    values: tuple[tuple[str, str], ...] = ()

    def of(self, name: str) -> str:
        """The value of the constraint of that name; empty where there is none."""
        for constraint, value in self.values:
            if constraint == name:
                return value
        return ""

    def without(self, name: str) -> Constraints:
        """The others."""
        return Constraints(tuple(pair for pair in self.values if pair[0] != name))


UNCONSTRAINED = Constraints()


class Groups(Generic[NicT]):
    """By constraint and value, the tenants that have it, and the NIC of each."""

    def __init__(self) -> None:
        self._members: defaultdict[str, dict[str, dict[str, NicT]]] = defaultdict(dict)

    @property
    def some(self) -> bool:
        """Whether a tenant has a constraint."""
        return any(self._members.values())

    def members(self, constraint: str, value: str) -> Mapping[str, NicT]:
        """The NIC of each tenant that has this value of the constraint, by id."""
        return self.by_value(constraint).get(value, {})

    def by_value(self, constraint: str) -> Mapping[str, Mapping[str, NicT]]:
        """As `members`, for each value of the constraint that a tenant has."""
        return self._members.get(constraint, {})

    def add(self, tenant_id: str, constraints: Constraints, nic: NicT) -> None:
        """Count a tenant that was placed."""
        for constraint, value in constraints.values:
            self._members[constraint].setdefault(value, {})[tenant_id] = nic

    def remove(self, tenant_id: str, constraints: Constraints) -> None:
        """Forget a tenant that left its NIC."""
        for constraint, value in constraints.values:
            members = self._members[constraint][value]
            del members[tenant_id]
            if not members:
                del self._members[constraint][value]
