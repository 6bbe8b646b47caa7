"""Software preferred: every NF on a server that can run there (Lemur, section 5.1)."""

from collections.abc import Sequence

import numpy as np

from placer.rack.chain import Chain
from placer.rack.heuristics.fixed_layouts import plan_with_even_cores
from placer.rack.layout_arrays import Layouts
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from placer.rack.strategies import Notify, register


@register("software-preferred")
def software_preferred(chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
    """A core for each subgroup; spare cores evenly among chains with a replicable subgroup, to its slowest."""
    return plan_with_even_cores(chains, rack, most_on_servers, time_limit, notify)


def most_on_servers(layouts: Layouts, rack: Rack) -> int:
    """The layout with most NFs on a server, then most on a SmartNIC."""
    servers = [number for number, device in enumerate(rack.devices) if not device.is_smartnic]
    smartnics = [number for number, device in enumerate(rack.devices) if device.is_smartnic]
    on_server = np.isin(layouts.sites, servers).sum(axis=1)
    on_smartnic = np.isin(layouts.sites, smartnics).sum(axis=1)
    return int(np.lexsort((-on_smartnic, -on_server))[0])
