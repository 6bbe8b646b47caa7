"""What a fleet lacks: who cannot be placed, and which NICs would have to be added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from placer.fleet import NicKind, Tenant
from placer.optimal import Optimum, optimal_plan
from placer.oracle import Oracle

SHOWN = 20
"""Ids told at most."""


@dataclass(frozen=True)
class Shortfall:
    """Why a plan leaves somebody out.

    Parameters
    ----------
    left_out
        Ids of those without a place.
    smallest
        Whether it is proven that no plan leaves out fewer.
    to_add
        Fewest NICs, by model, with which all are placed who can be placed at all; None where that was not asked.
    hopeless
        Ids of those whose SLA no NIC of the fleet keeps, however many there are.
    """

    left_out: tuple[str, ...]
    smallest: bool
    to_add: dict[str, int] | None = None
    hopeless: tuple[str, ...] = ()

    def told(self) -> str:
        """In a sentence or two."""
        least = ", no plan leaves out fewer" if self.smallest else ""
        text = f"No place for {len(self.left_out):,} arrivals{least}: {_listed(self.left_out)}."
        if self.to_add:
            text += f" NICs to add: {', '.join(f'{count} {model}' for model, count in self.to_add.items())}."
        if self.hopeless:
            text += f" No NIC keeps the SLA of {_listed(self.hopeless)}."
        return text


def shortfall_of(
    optimum: Optimum,
    tenants: Sequence[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    *,
    seconds: float,
    solver: str,
) -> Shortfall | None:
    """What is lacking where the optimum leaves somebody out; None where it does not.

    The NICs to add are an optimum, too: of a fleet that has all NICs at no cost and any number of others at the cost
    of one each.
    """
    if not optimum.unplaced:
        return None
    left_out = tuple(tenant.id for tenant in optimum.unplaced)
    limited = [kind for kind in kinds if kind.count is not None]
    if not limited:
        return Shortfall(left_out, optimum.proven, None, left_out if optimum.proven else ())
    owned = [replace(kind, cost=0.0) for kind in kinds]
    added = [replace(kind, index=len(kinds) + i, count=None, cost=1.0) for i, kind in enumerate(limited)]
    more = [*oracles, *(oracles[kind.index] for kind in limited)]
    enlarged = optimal_plan(tenants, [*owned, *added], more, time_limit=seconds, solver=solver)
    needed = Counter(kind.model for kind, _ in enlarged.nics if kind.index >= len(kinds))
    hopeless = tuple(tenant.id for tenant in enlarged.unplaced) if enlarged.proven else ()
    return Shortfall(left_out, optimum.proven, dict(sorted(needed.items())), hopeless)


def _listed(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more
