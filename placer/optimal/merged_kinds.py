"""Merging NIC kinds: kinds of one model, cost and oracle are one kind to the optimum, with their counts added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal.duals import Duals
from placer.optimal.optimum import Optimum

NicPlan = Sequence[tuple[NicKind, Sequence[Tenant]]]
"""The NICs of a plan: the kind of each, and its tenants."""


@dataclass(frozen=True, eq=False)
class MergedKinds:
    """NIC kinds after merging.

    Parameters
    ----------
    kinds, oracles
        The merged kinds, numbered by their `index`, and the oracle of each.
    members
        By merged kind, the kinds of the fleet that it stands for.
    """

    kinds: tuple[NicKind, ...]
    oracles: tuple[Oracle, ...]
    members: tuple[tuple[NicKind, ...], ...]

    @classmethod
    def of(cls, kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> MergedKinds:
        """Merge the kinds that share model, cores, cost and oracle."""
        members: dict[object, list[int]] = {}
        for number, (kind, oracle) in enumerate(zip(kinds, oracles, strict=True)):
            key = kind.model, kind.cores, frozenset(kind.cores_of.items()), kind.cost, id(oracle)
            members.setdefault(key, []).append(number)
        return cls(
            tuple(_merged(index, [kinds[number] for number in same]) for index, same in enumerate(members.values())),
            tuple(oracles[same[0]] for same in members.values()),
            tuple(tuple(kinds[number] for number in same) for same in members.values()),
        )

    def merge(self, nics: NicPlan) -> NicPlan:
        """The NICs of a plan, each of its merged kind."""
        merged_of = {
            member.index: kind for kind, members in zip(self.kinds, self.members, strict=True) for member in members
        }
        return [(merged_of[kind.index], tenants) for kind, tenants in nics]

    def kind_of(self, merged: int, number: int) -> NicKind:
        """The fleet's kind of NIC number `number`, from 0, of a merged kind: each has as many as there are of it."""
        for kind in self.members[merged]:
            if kind.count is None or number < kind.count:
                return kind
            number -= kind.count
        raise ValueError(f"There is no NIC number {number} of merged kind {merged}.")

    def separate(self, optimum: Optimum) -> Optimum:
        """The same plan and bounds in terms of the fleet's own kinds."""
        duals = optimum.duals
        return replace(
            optimum,
            nics=list(self._separated(optimum.nics)),
            duals=None if duals is None else self.separate_prices(duals),
        )

    def separate_prices(self, duals: Duals) -> Duals:
        """The prices in terms of the fleet's own kinds: those of one merged kind share its price."""
        prices = {
            member.index: price
            for price, members in zip(duals.of_kinds, self.members, strict=True)
            for member in members
        }
        return replace(duals, of_kinds=tuple(prices[index] for index in sorted(prices)))

    def _separated(self, nics: NicPlan) -> Iterator[tuple[NicKind, tuple[Tenant, ...]]]:
        used: Counter[int] = Counter()
        for kind, tenants in nics:
            yield self.kind_of(kind.index, used[kind.index]), tuple(tenants)
            used[kind.index] += 1


def _merged(index: int, same: Sequence[NicKind]) -> NicKind:
    counts = [kind.count for kind in same]
    limited = [count for count in counts if count is not None]
    return replace(same[0], index=index, count=sum(limited) if len(limited) == len(counts) else None)
