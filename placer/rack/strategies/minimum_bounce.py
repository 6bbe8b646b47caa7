"""Minimum bounce: as few changes between switch and servers as possible (Lemur, section 5.1; E2)."""

from collections.abc import Sequence

import numpy as np

from placer.rack.chain import Chain
from placer.rack.heuristics.fixed_layouts import plan_with_even_cores
from placer.rack.layout_arrays import CAP_TOLERANCE, Layouts
from placer.rack.options import core_rates
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from placer.rack.strategies import Notify, register
from profiles.arrays import Floats, Ints


@register("minimum-bounce")
def minimum_bounce(chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
    """Per chain the fewest subgroups, then the largest rate with its even part of the cores; these as they are."""
    part = max(len(chains) // max(len(rack.servers), 1), 1)

    def choose(layouts: Layouts, one_server: Rack) -> int:
        groups = (~np.isnan(layouts.cycles)).sum(axis=1)
        fewest = np.flatnonzero(groups == groups.min())
        rates = rates_with_even_cores(layouts, one_server, fewest, part)
        return int(fewest[np.argmax(rates >= rates.max() * (1 - CAP_TOLERANCE))])

    return plan_with_even_cores(chains, rack, choose, time_limit, notify)


def rates_with_even_cores(layouts: Layouts, rack: Rack, rows: Ints, chains: int) -> Floats:
    """What a chain reaches with its part of the cores, and what the NIC of the server carries of it alone, Mbps.

    `rows`: which layouts. `chains`: among how many the cores of each device are divided.
    """
    once, each = (rates[rows] for rates in core_rates(layouts, rack))
    cores = (~np.isnan(layouts.cycles[rows])).astype(np.int64)
    for number, device in enumerate(rack.devices):
        here = (layouts.sites[rows] == number) & (cores > 0)
        spare = np.maximum(device.cores // chains - here.sum(axis=1), 0)
        replicable = here & (each > 0) & np.isfinite(each)
        for given in range(int(spare.max(initial=0))):
            rates = np.where(replicable, _group_rates(cores, once, each), np.inf)
            slowest = rates.argmin(axis=1)
            takes = (spare > given) & np.isfinite(rates.min(axis=1))
            cores[np.flatnonzero(takes), slowest[takes]] += 1
    reached = _group_rates(cores, once, each).min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        nic = np.array([float(server.nic_mbps) for server in rack.servers])[:, None] / layouts.nic_shares[rows]
    caps = np.minimum(np.nanmin(nic, axis=(1, 2), initial=np.inf), float(layouts.chain.slo.t_max_mbps))
    allowed: Floats = np.minimum(reached, caps)
    return allowed


def _group_rates(cores: Ints, once: Floats, each: Floats) -> Floats:
    """Mbps that each subgroup allows; infinite where there is none."""
    with np.errstate(invalid="ignore"):
        rates: Floats = np.where(cores > 1, cores * each, once)
    return rates
