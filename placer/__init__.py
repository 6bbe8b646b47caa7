"""Places network functions on as few SmartNICs as possible while meeting their SLAs.

    import placer

    trace = placer.read_trace("traces/arrivals-500.csv")
    result = placer.place(trace, ["monopolization", "contention-aware"])
    print(result)
    print(result.table()[["strategy", "predictor", "nics", "sla_violations_pct"]])
    result.plot("nics.svg")

Names are loaded when they are used, so that the command line starts fast."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placer.api import PlacementResult, Trace, place, read_trace
    from placer.evaluate.checks import InvalidPlan
    from placer.fleet.client import Client, ServiceError
    from placer.inputs.catalogue import Cards
    from placer.model.arrival import Arrival
    from placer.model.catalogue import Catalogue
    from placer.model.feasibility import feasible, smallest_margin
    from placer.model.fleet import Fleet
    from placer.model.nic import Nic, Tenant
    from placer.model.nic_kind import NicKind
    from placer.model.oracle import Oracle
    from placer.model.plan import Placement, Plan
    from placer.model.sla import Sla
    from placer.strategies import OnlineStrategy, Strategy, register
    from profiler.testbed import TestbedError
    from profiles import InputError, TrafficProfile, Workload

ROOMS = {
    "placer.fleet.client": ("Client", "ServiceError"),
    "placer.api": ("PlacementResult", "Trace", "place", "read_trace"),
    "placer.evaluate.checks": ("InvalidPlan",),
    "placer.inputs.catalogue": ("Cards",),
    "placer.model.arrival": ("Arrival",),
    "placer.model.catalogue": ("Catalogue",),
    "placer.model.feasibility": ("feasible", "smallest_margin"),
    "placer.model.fleet": ("Fleet",),
    "placer.model.nic": ("Nic", "Tenant"),
    "placer.model.nic_kind": ("NicKind",),
    "placer.model.oracle": ("Oracle",),
    "placer.model.plan": ("Placement", "Plan"),
    "placer.model.sla": ("Sla",),
    "placer.strategies": ("OnlineStrategy", "Strategy", "register"),
    "profiler.testbed": ("TestbedError",),
    "profiles": ("InputError", "TrafficProfile", "Workload"),
}
"""Where each public name is defined."""

__all__ = [
    "Arrival",
    "Cards",
    "Catalogue",
    "Client",
    "Fleet",
    "InputError",
    "InvalidPlan",
    "Nic",
    "NicKind",
    "OnlineStrategy",
    "Oracle",
    "Placement",
    "PlacementResult",
    "Plan",
    "ServiceError",
    "Sla",
    "Strategy",
    "Tenant",
    "TestbedError",
    "Trace",
    "TrafficProfile",
    "Workload",
    "feasible",
    "place",
    "read_trace",
    "register",
    "smallest_margin",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for room, names in ROOMS.items():
        if name in names:
            return getattr(import_module(room), name)
    raise AttributeError(f"module 'placer' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
