"""What a fleet lacks: the arrivals that cannot be placed, why, and the NICs to add."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.model.arrival import RunningNic, have_priorities
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.optimal import MOST_CO_LOCATIONS, Optimum, optimal_plan
from placer.optimal.merged_kinds import MergedKinds
from placer.optimal.patterns import co_locations_on, group_tenants, slots_and_levels

MAX_LISTED_IDS = 20


@dataclass(frozen=True)
class Shortfall:
    """Why a plan rejects arrivals.

    `left_out`: ids of the rejected arrivals. `proven`: whether it is proven that no plan rejects fewer. `everything`:
    whether no arrival is placed at all. `to_add`: NICs, by model, with which every arrival is placed whose SLA any NIC
    can meet; None where that is not known. `to_add_proven`: whether it is proven that fewer NICs are not enough.
    `unsatisfiable`: ids of rejected arrivals whose SLA no NIC of the fleet meets, with any neighbours and any number of
    NICs. `reason`: for an arrival whose SLA is not even met alone: the throughput it requires and the one it gets, in
    words.
    """

    left_out: tuple[str, ...]
    proven: bool
    everything: bool = False
    to_add: dict[str, int] | None = None
    to_add_proven: bool = False
    unsatisfiable: tuple[str, ...] = ()
    reason: str = ""

    def sentence(self) -> str:
        text = f"{self._reject()}: {list_ids(self.left_out)}."
        if self.to_add:
            fewer = "" if self.to_add_proven else " (fewer may be enough)"
            text += f" NICs to add{fewer}: {', '.join(f'{count} {model}' for model, count in self.to_add.items())}."
        if self.unsatisfiable:
            text += f" No NIC meets the SLA of {list_ids(self.unsatisfiable)}."
        return text + (f" {self.reason}." if self.reason else "")

    def _reject(self) -> str:
        number = len(self.left_out)
        arrivals = f"{number:,} arrival{'s' * (number != 1)}"
        if self.everything:
            none = "no plan places any" if self.proven else "no plan that places any was found"
            return f"The optimum places nothing and rejects all {arrivals}; {none}"
        return f"The optimum rejects {arrivals}{'; no plan rejects fewer' if self.proven else ''}"


def shortfall_of(
    optimum: Optimum,
    tenants: Sequence[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    running: Sequence[RunningNic] = (),
    *,
    seconds: float,
    solver: str,
) -> Shortfall | None:
    """What the fleet lacks where the optimum leaves tenants out; None where it places all beside what already runs.

    The NICs to add are an optimum, too: that of a fleet with all its NICs at no cost, and any number of others of the
    same kinds at a cost of one each.
    """
    if not optimum.unplaced:
        return None
    everybody = [*tenants, *(tenant for nic in running for tenant in nic.tenants)]
    shortfall = shortfall_of_left_out(optimum.unplaced, everybody, kinds, oracles)
    fewest = optimum.proven and not have_priorities(tenants)
    limited = [kind for kind in kinds if kind.count is not None]
    if not limited:
        return replace(shortfall, proven=fewest)
    owned = [replace(kind, cost=0.0, owned=None) for kind in kinds]
    added = [replace(kind, index=len(kinds) + i, count=None, cost=1.0, owned=None) for i, kind in enumerate(limited)]
    more = [*oracles, *(oracles[kind.index] for kind in limited)]
    enlarged = optimal_plan(tenants, [*owned, *added], more, time_limit=seconds, solver=solver, running=running)
    needed = Counter(kind.model for kind, _ in enlarged.nics if kind.index >= len(kinds))
    return replace(shortfall, proven=fewest, to_add=dict(sorted(needed.items())), to_add_proven=enlarged.proven)


def shortfall_of_left_out(
    left_out: Sequence[Tenant], tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]
) -> Shortfall:
    """The shortfall where these of all tenants are left out; proven if no NIC could meet the SLA of any of them."""
    unsatisfiable = unsatisfiable_of(tenants, kinds, oracles)
    ids = tuple(tenant.id for tenant in left_out)
    return Shortfall(
        left_out=ids,
        proven=unsatisfiable.issuperset(ids),
        everything=len(left_out) == len(tenants),
        unsatisfiable=tuple(identity for identity in ids if identity in unsatisfiable),
        reason=next(filter(None, (_reason(tenant, kinds, oracles) for tenant in left_out)), ""),
    )


def unsatisfiable_of(tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> set[str]:
    """Ids of tenants whose SLA no NIC meets in any co-location; none where there are too many to query."""
    merged = MergedKinds.of(kinds, oracles)
    groups = group_tenants(tenants, merged.kinds, merged.oracles)
    satisfied = np.zeros(len(groups), dtype=np.int64)
    for number, (kind, oracle) in enumerate(zip(merged.kinds, merged.oracles, strict=True)):
        most = 0 if kind.paced else MOST_CO_LOCATIONS
        co_locations = co_locations_on(kind, groups, oracle, most)
        if kind.paced:  # beside others, no SLA is met that is not met alone
            co_locations = [members for members in co_locations if len(members) == 1]
        elif len(co_locations) > most:
            return set()
        levels = slots_and_levels(number, co_locations, groups, oracle)[1]
        satisfied = np.maximum(satisfied, levels.max(axis=0, initial=0))
    return {
        tenant.id for group, most in zip(groups, satisfied.tolist(), strict=True) for tenant in group.tenants[most:]
    }


def _reason(tenant: Tenant, kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> str:
    """The throughput that the tenant requires and the one it gets alone, where that is less; else nothing."""
    nf, required = tenant.workload.nf, tenant.sla.min_kpps
    alone = [oracles[kind.index].solo(tenant.workload) for kind in kinds if kind.hosts(tenant.workload)]
    if not alone:
        return f"No NIC of the fleet runs {nf}"
    if required is None or tenant.is_met(max(alone), max(alone)):
        return ""
    return f"{tenant.id} requires {required:g} kpps, and {nf} gets {max(alone):g} kpps alone on a NIC"


def list_ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - MAX_LISTED_IDS:,} more" if len(ids) > MAX_LISTED_IDS else ""
    return ", ".join(ids[:MAX_LISTED_IDS]) + more
