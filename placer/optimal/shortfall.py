"""What a fleet lacks: who cannot be placed, and which NICs would have to be added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal import MOST_CO_LOCATIONS, Optimum, optimal_plan
from placer.optimal.demand import demands_of
from placer.optimal.merged_kinds import MergedKinds
from placer.optimal.patterns import co_locations_within, rated

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
        NICs, by model, with which all are placed who can be placed at all; None where that was not asked.
    fewest
        Whether it is proven that fewer do not do.
    hopeless
        Ids of those whose SLA no NIC of the fleet keeps, however many there are and whoever is beside them.
    why
        Of somebody whose SLA is not even kept alone: what is asked and what there is, in words.
    """

    left_out: tuple[str, ...]
    smallest: bool
    to_add: dict[str, int] | None = None
    fewest: bool = False
    hopeless: tuple[str, ...] = ()
    why: str = ""

    def told(self) -> str:
        """In a sentence or two."""
        least = ", no plan leaves out fewer" if self.smallest else ""
        number = len(self.left_out)
        text = f"No place for {number:,} arrival{'s' * (number != 1)}{least}: {_listed(self.left_out)}."
        if self.to_add:
            fewer = "" if self.fewest else " (perhaps fewer do)"
            text += f" NICs to add{fewer}: {', '.join(f'{count} {model}' for model, count in self.to_add.items())}."
        if self.hopeless:
            text += f" No NIC keeps the SLA of {_listed(self.hopeless)}."
        return text + (f" {self.why}." if self.why else "")


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
    told = left_out_of(optimum.unplaced, tenants, kinds, oracles)
    limited = [kind for kind in kinds if kind.count is not None]
    if not limited:
        return replace(told, smallest=optimum.proven)
    owned = [replace(kind, cost=0.0) for kind in kinds]
    added = [replace(kind, index=len(kinds) + i, count=None, cost=1.0) for i, kind in enumerate(limited)]
    more = [*oracles, *(oracles[kind.index] for kind in limited)]
    enlarged = optimal_plan(tenants, [*owned, *added], more, time_limit=seconds, solver=solver)
    needed = Counter(kind.model for kind, _ in enlarged.nics if kind.index >= len(kinds))
    return replace(told, smallest=optimum.proven, to_add=dict(sorted(needed.items())), fewest=enlarged.proven)


def left_out_of(
    left_out: Sequence[Tenant], tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]
) -> Shortfall:
    """Who is left out of all tenants, and who of them is hopeless; if all are, then nobody can leave out fewer."""
    hopeless = hopeless_of(tenants, kinds, oracles)
    ids = tuple(tenant.id for tenant in left_out)
    return Shortfall(
        left_out=ids,
        smallest=hopeless.issuperset(ids),
        hopeless=tuple(identity for identity in ids if identity in hopeless),
        why=next(filter(None, (_why(tenant, kinds, oracles) for tenant in left_out)), ""),
    )


def hopeless_of(tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> set[str]:
    """Ids of those whose SLA is kept on no NIC in no company of the others; of none where there are too many to ask."""
    merged = MergedKinds.of(kinds, oracles)
    demands = demands_of(tenants, merged.kinds, merged.oracles)
    content = np.zeros(len(demands), dtype=np.int64)
    for number, (kind, oracle) in enumerate(zip(merged.kinds, merged.oracles, strict=True)):
        co_locations = list(islice(co_locations_within(kind, demands), MOST_CO_LOCATIONS + 1))
        if len(co_locations) > MOST_CO_LOCATIONS:
            return set()
        levels = rated(number, co_locations, demands, oracle)[1]
        content = np.maximum(content, levels.max(axis=0, initial=0))
    return {
        tenant.id for demand, most in zip(demands, content.tolist(), strict=True) for tenant in demand.tenants[most:]
    }


def _why(tenant: Tenant, kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> str:
    """What is asked and what there is, where that is less; else nothing."""
    nf, asked = tenant.workload.nf, tenant.sla.min_kpps
    alone = [oracles[kind.index].solo(tenant.workload) for kind in kinds if kind.hosts(tenant.workload)]
    if not alone:
        return f"No NIC hosts {nf}"
    if asked is None or tenant.sla.is_met(max(alone), max(alone)):
        return ""
    return f"{tenant.id} asks for {asked:g} kpps, and {nf} makes {max(alone):g} alone"


def _listed(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more
