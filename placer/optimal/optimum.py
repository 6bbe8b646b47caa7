"""What the optimum is: a plan, what it costs, and a proof of how little it could cost."""

from __future__ import annotations

from dataclasses import dataclass

from placer.model.fleet import NicKind, Tenant
from placer.optimal.duals import Duals


@dataclass(frozen=True, eq=False)
class Optimum:
    """A plan in which every SLA is met, and bounds on every such plan that places as many tenants.

    Parameters
    ----------
    nics
        NICs in use: the kind of each, and who runs on it.
    unplaced
        Tenants for which no place was found: their SLA cannot be met, or the fleet has too few NICs.
    cost
        Sum of the costs of `nics`.
    lower_bound
        What no plan that places as many tenants can cost less than; at unit cost a whole number of NICs.
    nics_lower_bound
        The least number of NICs of any such plan, whatever its cost.
    proven
        Whether no plan places more tenants, and none that places as many costs less.
    duals
        Prices that prove a bound, the same or the relaxation's lower one; None where not all companies are known.
    departure_safe
        Whether every SLA is known to hold whoever of a NIC's tenants has not come yet, or leaves.
    seconds
        From oracle answers known to the plan.
    oracle_seconds
        Asking the oracles.
    """

    nics: list[tuple[NicKind, tuple[Tenant, ...]]]
    unplaced: list[Tenant]
    cost: float
    lower_bound: float
    nics_lower_bound: int
    proven: bool
    duals: Duals | None = None
    departure_safe: bool = False
    seconds: float = 0.0
    oracle_seconds: float = 0.0
